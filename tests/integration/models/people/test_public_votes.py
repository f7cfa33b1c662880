"""Public tables as their authors publish them, turned into what `compare` reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.discovery.public_votes import main
from tests.support.comparisons import compared

CROWD = """item,worker,label,truth
7,a,1,1
7,b,1,1
7,c,0,1
8,a,0,0
8,b,1,0
8,c,1,0
9,a,0,0
9,b,0,0
9,c,0,0
"""
LEUVEN = """exemplar,feature,rater1,rater2,rater3,rater4
alligator,swims,1,1,1,1
alligator,flies,0,0,0,0
owl,swims,0,0,0,1
owl,flies,1,1,1,1
eel,swims,1,1,0,1
eel,flies,0,0,1,0
"""


def test_public_tables_become_data_sets_and_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "birds.csv").write_text(CROWD, encoding="utf-8")
    (tmp_path / "animals.csv").write_text(LEUVEN, encoding="utf-8")
    arguments = ["--bluebirds", str(tmp_path / "birds.csv"), "--leuven", str(tmp_path / "animals.csv")]
    monkeypatch.setattr(sys, "argv", ["public_votes", *arguments, "--out", str(tmp_path / "public")])
    main()
    folder = tmp_path / "public" / "bluebirds"
    votes = f"recorded:{folder / 'votes.csv'}"
    birds = compared(tmp_path, str(folder / "bluebirds.csv"), votes, votes="3", comparisons=0)
    assert birds.qualities[0].single.value == pytest.approx(6 / 9)
    assert birds.qualities[0].majority.value == pytest.approx(2 / 3)
    folder = tmp_path / "public" / "leuven"
    oracles = [f"recorded:{folder / name}" for name in ("one.csv", "others.csv")]
    animals = compared(tmp_path, str(folder / "leuven.csv"), *oracles, votes="1,3", people=oracles[1], comparisons=0)
    assert animals.study.contenders[0].sheet.workers == ("rater4",)
    assert animals.pairs[0].overall["raw agreement"].value == pytest.approx(5 / 6)
