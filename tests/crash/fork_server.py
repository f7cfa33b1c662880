"""Hatches the processes that are killed: forked from one that has everything imported, each costs milliseconds.

`python -m tests.crash.fork_server` reads jobs as lines of JSON and prints what became of each."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
import traceback
from typing import Any

from tests.crash import scenarios
from tests.crash.boundaries import KillAt, watch
from tests.crash.faults import Fault
from twothirds.flows.cli.errors import explain

LONGEST_SECONDS = 200.0


def run_forked(job: dict[str, Any]) -> dict[str, Any]:
    """Run a job in a child: what it reported, or that it was killed, and after how many seconds."""
    reading, writing = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(job, writing)
    os.close(writing)
    after = job.get("kill_after")
    outcome = _read(reading, began + (LONGEST_SECONDS if after is None else after))
    took = time.monotonic() - began
    if outcome is None:
        os.kill(child, signal.SIGKILL)
        outcome = b""
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if outcome:
        return {**json.loads(outcome), "seconds": took}
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    ended = "killed" if killed and (after is not None or took < LONGEST_SECONDS) else f"status {status}, {took:.0f} s"
    return {"ended": ended, "seconds": took}


def _read(pipe: int, deadline: float) -> bytes | None:
    """All that the child writes until it ends; None where it is still at work when time is up."""
    received = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(pipe, 65536)
        if not part:
            return received
        received += part


def _work(job: dict[str, Any], report: int) -> None:
    """Never returns: a child that is done ends without the parent's clean-up."""
    hook = Fault(**job["fault"]) if "fault" in job else KillAt(job.get("kill_at"), job.get("of_kind"))
    watch(hook)
    try:
        outcome = {"ended": "clean", **getattr(scenarios, job["scenario"])(job, hook)}
        outcome["boundaries"] = hook.passed
    except BaseException as error:
        outcome = {"ended": "failed", "trace": traceback.format_exc(), "boundaries": hook.passed}
        if isinstance(error, Exception):
            outcome["status"], outcome["said"] = explain(error)
    os.write(report, json.dumps(outcome).encode())
    os._exit(0)


def main() -> None:
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run_forked(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
