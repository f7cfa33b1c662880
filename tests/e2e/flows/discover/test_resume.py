"""A run that is killed and repeated ends like one that was left alone, and pays for nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store import Store
from tests.support.made import few_faces

ROOT = Path(__file__).parents[4]
PRICE_MICRO = 1000
OPTIONS = [
    *("--oracle", "simulated?latency=0.02&price=0.001&flip=0.1&width=8"),
    *("--queries", "12", "--votes", "3", "--batch", "2", "--yes", "--json"),
]
# As `python -m flows`, but killed so many seconds after so many answers: whoever looks on may look too late.
KILLED = """
import os, runpy, signal, sys, threading
from store.ledger.answers import KeptAnswers
enough, later = int(sys.argv.pop(1)), float(sys.argv.pop(1))
keep, kept = KeptAnswers.record, 0

def record(answers, run_id, records):
    global kept
    first = keep(answers, run_id, records)
    kept += len(records)
    if kept >= enough:
        threading.Timer(later, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return first

KeptAnswers.record = record
runpy.run_module("flows", run_name="__main__", alter_sys=True)
"""


def start(
    folder: Path, prefect_url: str, dataset: Path, out: str = "run", program: tuple[str, ...] = ("-m", "flows")
) -> subprocess.Popen[str]:
    places = ["--store", str(folder / "store.sqlite"), "--out", str(folder / out)]
    return subprocess.Popen(
        [sys.executable, *program, "discover", str(dataset), *OPTIONS, *places],
        cwd=ROOT,
        env=os.environ | {"PREFECT_API_URL": prefect_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kept(folder: Path) -> int:
    with Store.open(str(folder / "store.sqlite")) as store:
        return store.answers.count()


def finish(process: subprocess.Popen[str]) -> dict[str, float]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    summary: dict[str, float] = json.loads(out)
    return summary


@pytest.mark.parametrize(
    ("kills", "faces"), [(1, 30), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((3, 50), (10, 100)))]
)
def test_killed_again_and_again_it_ends_like_an_undisturbed_run_and_pays_nothing_twice(
    kills: int, faces: int, prefect_url: str, tmp_path: Path
) -> None:
    dataset = few_faces(tmp_path / "faces", faces)
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    calm.mkdir()
    stormy.mkdir()
    undisturbed = finish(start(calm, prefect_url, dataset))
    total = int(undisturbed["paid_calls"])

    moments = random.Random(2015)
    for kill in range(kills):
        enough, later = moments.randrange(1, total // kills), moments.uniform(0.0, 0.05)
        process = start(stormy, prefect_url, dataset, program=("-c", KILLED, str(enough), str(later)))
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it ended before it could be killed for the {kill + 1}. time"
    committed = kept(stormy)
    last = finish(start(stormy, prefect_url, dataset))

    assert last["cached_calls"] == committed
    assert last["paid_calls"] == total - committed
    for name in ("labels.csv", "features.csv", "answers.jsonl"):
        assert (stormy / "run" / name).read_bytes() == (calm / "run" / name).read_bytes(), name
    with Store.open(str(stormy / "store.sqlite")) as store:
        assert not store.check.problems()
        lines = store.costs.lines()
        assert sum(line.paid_calls for line in lines) == total
        assert sum(line.paid for line in lines) == total * PRICE_MICRO


def test_two_processes_with_the_same_settings_pay_for_every_question_once(prefect_url: str, tmp_path: Path) -> None:
    dataset = few_faces(tmp_path / "faces", 20)
    both = [start(tmp_path, prefect_url, dataset, out) for out in ("one", "other")]
    one, other = (finish(process) for process in both)
    assert one["g_curve"] == other["g_curve"]
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        answers = store.answers.count()
        assert sum(line.paid_calls for line in store.costs.lines()) == answers
    assert one["paid_calls"] + other["paid_calls"] == answers
    assert one["paid_calls"] + one["cached_calls"] == answers
