"""The pure parts of the benchmark beside other tools: what is counted, and how it is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.finding import counted
from benchmarks.peers.measures import BUDGET_SHARE, Hazards, Measured, installed, missed_hazards, missed_speed
from benchmarks.peers.running import OURS, TOOLS, Case, Killed, Outcome, paid_again
from tests.support.fake_openai import Served
from twothirds.sources import load_dataset

ZOO = Path(__file__).parents[3] / "datasets" / "zoo" / "animals.csv"
OTHER = TOOLS[1]


def outcome(right: int = 100, wrong: int = 0, tokens: int = 1000, usd: float = 0.01) -> Outcome:
    return Outcome(100, right, wrong, 2.0, 1.0, 10, tokens, usd, {"tool": "1.0"})


def test_answers_that_had_arrived_are_told_from_those_under_way() -> None:
    earlier = [Served(0, 1, ((0, 0), (0, 1))), Served(0, 9, ((1, 0),)), Served(0, 10.4, ((2, 0),))]
    later = [Served(11, 12, ((0, 1), (2, 0))), Served(11, 12, ((0, 1), (3, 0)))]
    before, again, in_flight = paid_again(earlier, later, ended=10.0)
    assert (before, again, in_flight) == (4, 2, 1)  # (3, 0) was never answered before


def test_being_slower_or_dearer_than_wanted_is_said() -> None:
    case = Case("texts", ZOO, 5)
    others = Measured(OTHER, outcome(tokens=1900), rate=100.0)
    assert missed_speed(case, [Measured(OURS, outcome(tokens=900), rate=95.0), others]) == []
    assert len(missed_speed(case, [Measured(OURS, outcome(tokens=1000), rate=94.0), others])) == 2


def test_paying_twice_overshoot_and_lost_labels_are_missed_targets() -> None:
    calm = outcome()
    good = Hazards(OURS, calm, Killed(50, 0, 10, calm), outcome(usd=BUDGET_SHARE * 0.01), calm)
    bad = Hazards(OURS, calm, Killed(50, 1, 10, calm), outcome(usd=BUDGET_SHARE * 0.0101), outcome(right=99))
    assert missed_hazards([good]) == []
    assert len(missed_hazards([bad])) == 3


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


def test_a_tool_that_is_not_installed_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    there, missing = installed([OURS, OTHER])
    assert there == [OURS]
    assert missing == ["instructor: not installed: python -m benchmarks peers --setup instructor"]
