"""The pure parts of the benchmark beside other tools: what is counted, and how it is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import environments
from benchmarks.peers.__main__ import main
from benchmarks.peers.finding import counted
from benchmarks.peers.job import Field, Item, Job
from benchmarks.peers.labelling import BAD, PART, Hazards, Measured, hazard_verdicts, speed_table, speed_verdicts
from benchmarks.peers.running import OURS, TOOLS, Case, Killed, Outcome, field_of, paid_again
from sources import load_dataset
from tests.support.fake_openai import Served

ZOO = Path(__file__).parents[3] / "datasets" / "zoo" / "animals.csv"
OTHER = TOOLS[1]


def outcome(right: int = 100, wrong: int = 0, tokens: int = 1000, usd: float = 0.01) -> Outcome:
    return Outcome(100, right, wrong, 2.0, 1.0, 10, tokens, usd, {"tool": "1.0"})


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    items = (Item("a", "some text"), Item("b", picture="b.png"))
    job = Job("http://x/v1", "d", "f", "s", "r", items, (Field("no legs", "no_legs", "It has none."),), budget=0.5)
    job.write(tmp_path / "job.json")
    assert Job.read(str(tmp_path / "job.json")) == job


def test_a_label_that_is_missing_is_lost_and_one_that_is_not_true_is_wrong() -> None:
    assert outcome(right=90, wrong=4).lost == 6


def test_answers_that_had_arrived_are_told_from_those_under_way() -> None:
    earlier = [Served(0, 1, ((0, 0), (0, 1))), Served(0, 9, ((1, 0),)), Served(0, 10.4, ((2, 0),))]
    later = [Served(11, 12, ((0, 1), (2, 0))), Served(11, 12, ((0, 1), (3, 0)))]
    before, again, in_flight = paid_again(earlier, later, ended=10.0)
    assert (before, again, in_flight) == (4, 2, 1)  # (3, 0) was never answered before


def test_being_slower_or_dearer_than_wanted_is_said() -> None:
    case = Case("texts", ZOO, 5)
    others = Measured(OTHER, outcome(tokens=1900), rate=100.0)
    met = speed_verdicts(case, [Measured(OURS, outcome(tokens=900), rate=95.0), others])
    missed = speed_verdicts(case, [Measured(OURS, outcome(tokens=1000), rate=94.0), others])
    assert [well for _, well in met] == [True, True]
    assert [well for _, well in missed] == [False, False]


def test_a_tool_that_gives_other_answers_is_not_compared_with() -> None:
    case = Case("texts", ZOO, 5)
    wrong = Measured(OTHER, outcome(right=99, wrong=1, tokens=10), rate=1e6)
    assert speed_verdicts(case, [Measured(OURS, outcome(), 1.0), wrong]) == []


def test_a_tool_without_labels_says_why() -> None:
    broken = Outcome(100, 0, 0, 0.0, 3.0, 0, 0, 0.0, {}, "ended with status 1: no such module")
    rows = speed_table([Measured(OURS, outcome(), 10.0), Measured(OTHER, broken, 0.0)])
    assert "ended with status 1: no such module" in rows


def test_paying_twice_overshoot_and_lost_labels_are_missed_targets() -> None:
    whole = outcome()
    good = Hazards(OURS, whole, Killed(50, 0, 10, whole), outcome(usd=PART * 0.01), whole)
    bad = Hazards(OURS, whole, Killed(50, 1, 10, whole), outcome(usd=PART * 0.0101), outcome(right=99))
    assert [met for _, met in hazard_verdicts([good])] == [True, True, True]
    assert [met for _, met in hazard_verdicts([bad])] == [False, False, False]
    assert 0 < BAD < 1


def test_an_attribute_is_found_once_however_many_features_match_it() -> None:
    dataset = load_dataset(str(ZOO))
    assert dataset.truth is not None
    hair = dataset.truth.matrix[:, 0].astype(np.int8)
    unknown = np.where(np.arange(len(hair)) % 2, hair, -1).astype(np.int8)
    milk = dataset.truth.matrix[:, dataset.truth.columns.index("airborne")].astype(np.int8)
    assert counted(np.stack([hair, hair]), dataset)[0] == 1
    assert counted(np.stack([hair, milk]), dataset)[0] == 2
    assert counted(np.stack([hair, unknown]), dataset)[0] == 1
    assert counted(np.empty((0, len(hair)), np.int8), dataset)[0] == 0


def test_field_names_are_accepted_by_programs() -> None:
    assert field_of("no legs") == "no_legs"
    assert field_of("V-neck").isidentifier()


def test_an_environment_of_other_versions_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environments.python_of("instructor") is None
    folder = environments.cache_folder() / "instructor"
    folder.mkdir(parents=True)
    (folder / environments.READY).write_text("instructor==0.1", encoding="utf-8")
    assert environments.python_of("instructor") is None
    (folder / environments.READY).write_text("\n".join(environments.pinned()["instructor"]), encoding="utf-8")
    assert environments.python_of("instructor") == folder / "bin" / "python"


def test_all_packages_are_pinned() -> None:
    assert all("==" in package for packages in environments.pinned().values() for package in packages)
    assert {tool.environment for tool in TOOLS} - {""} <= set(environments.pinned())


def test_a_tool_that_is_not_installed_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["--only", "labels", "hazards", "--tools", "lotus"]) == 0
    assert "lotus: not installed: python -m benchmarks.peers --setup lotus" in capsys.readouterr().out
