"""The command line in a process of its own that is killed at a chosen moment: whoever looks on may look too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twothirds.store import Reply

ROOT = Path(__file__).parents[2]
# `twothirds`, killed some seconds after so many answers were kept.
AFTER_ANSWERS = """
import runpy, sys
from tests.support.killed import kill_after
kill_after(int(sys.argv.pop(1)), float(sys.argv.pop(1)))
runpy.run_module("twothirds", run_name="__main__", alter_sys=True)
"""
# A discovery without Prefect, with settings as JSON, killed when so many answers were kept.
DISCOVERY = """
import json, sys
from twothirds.flows.discover import DiscoverSettings, prepare, run_discovery
from tests.support.killed import kill_after
kill_after(int(sys.argv[1]))
run_discovery(prepare(DiscoverSettings.model_validate(json.loads(sys.argv[2]))), run_id="killed")
"""
# `twothirds`, killed before or after a change to a run is written to its log.
AT_CHANGE = """
import os, runpy, signal, sys
from twothirds.reports.curation import log
when, append = sys.argv.pop(1), log._append

def killed(*about):
    if when == "after":
        append(*about)
    os.kill(os.getpid(), signal.SIGKILL)

log._append = killed
runpy.run_module("twothirds", run_name="__main__", alter_sys=True)
"""


def kill_after(enough: int, later: float | None = None) -> None:
    """Kill this process once it has kept so many answers, at once or some seconds later."""
    from twothirds.store.requests import Requests

    keep, kept = Requests.record, set[tuple[int, int]]()

    def record(requests: Requests, /, run_id: str, replies: Collection[Reply]) -> dict[str, dict[str, Any]]:
        first = keep(requests, run_id, replies)
        kept.update((reply.request, position) for reply in replies for position in reply.answers)
        if len(kept) >= enough:
            if later is None:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Timer(later or 0.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return first

    Requests.record = record  # type: ignore[method-assign]


def start_flows(
    *arguments: str, killed_by: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """`killed_by` is one of the programs above with its arguments; without it, the command runs to its end."""
    program = ("-c", *killed_by) if killed_by else ("-m", "twothirds")
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=ROOT,
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_flows(*arguments: str, killed_by: tuple[str, ...], environment: dict[str, str] | None = None) -> None:
    """Until it is dead; it must not end before."""
    process = start_flows(*arguments, killed_by=killed_by, environment=environment)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, f"it ended before it could be killed: {errors}"
