"""A run that is killed and repeated ends like one that was left alone, and pays for nothing twice."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from tests.support.killed import AFTER_ANSWERS, kill_flows, start_flows
from tests.support.made import few_faces
from tests.support.slow import slow
from twothirds.flows.cli.app import main
from twothirds.store import Store

PRICE_MICRO = 1000
OPTIONS = [
    *("--oracle", "simulated?latency=0.02&price=0.001&flip=0.1&width=8"),
    *("--queries", "12", "--votes", "3", "--yes", "--json"),
]


def start(folder: Path, prefect_url: str, dataset: Path, out: str = "run") -> subprocess.Popen[str]:
    return start_flows(*command(folder, dataset, out), environment={"PREFECT_API_URL": prefect_url})


def command(folder: Path, dataset: Path, out: str = "run") -> list[str]:
    places = ["--store", str(folder / "store.sqlite"), "--out", str(folder / out)]
    return ["discover", str(dataset), *OPTIONS, *places]


def kept(folder: Path) -> int:
    with Store.open(str(folder / "store.sqlite")) as store:
        return store.requests.count()


def finish(process: subprocess.Popen[str]) -> dict[str, float]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    summary: dict[str, float] = json.loads(out)
    return summary


@pytest.mark.parametrize(("kills", "faces"), [(1, 30), *slow((3, 50), (10, 100))])
def test_killed_again_and_again_it_ends_like_an_undisturbed_run_and_pays_nothing_twice(
    kills: int, faces: int, prefect_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = few_faces(tmp_path / "faces", faces)
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    calm.mkdir()
    stormy.mkdir()
    assert main(command(calm, dataset)) == 0
    total = int(json.loads(capsys.readouterr().out)["paid_calls"])

    moments = random.Random(2015)
    for _ in range(kills):
        enough, later = moments.randrange(1, total // kills), moments.uniform(0.0, 0.05)
        by = (AFTER_ANSWERS, str(enough), str(later))
        kill_flows(*command(stormy, dataset), killed_by=by, environment={"PREFECT_API_URL": prefect_url})
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
        answers = store.requests.count()
        assert sum(line.paid_calls for line in store.costs.lines()) == answers
    assert one["paid_calls"] + other["paid_calls"] == answers
    assert one["paid_calls"] + one["cached_calls"] == answers
