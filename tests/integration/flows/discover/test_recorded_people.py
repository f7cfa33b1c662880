"""People's recorded answers in a discovery and in a comparison: sentences from one table, labels from another."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support.comparisons import compared, make_world, write_votes
from twothirds.discovery import StrategyError
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports import Run

COMPARISONS = """question,left,right,answer,worker
left-right,e0|e1,e2|e3,hat,ann
left-right,e4|e5,e6|e7,a hat,ben
left-right,e8|e9,e10|e11,beard,ann
left-right,e12|nowhere,e10|e11,not here,ann
two-of-three,e0|e2,e5,glasses,cat
"""


def people(folder: Path) -> tuple[str, Path]:
    """A world, and a table of what people said about it."""
    world = make_world(folder, n=16)
    table = folder / "comparisons.csv"
    table.write_text(COMPARISONS, encoding="utf-8")
    return world, table


def replayed(folder: Path, dataset: str, oracle: str, **settings: object) -> Run:
    chosen = {"store": str(folder / "store.sqlite"), "out": str(folder / "run"), **settings}
    run_discovery(prepare(DiscoverSettings(dataset=dataset, oracle=oracle, **chosen)), run_id="run")
    return Run(Path(str(chosen["out"])))


def test_a_discovery_asks_what_people_have_answered_and_a_crowd_labels(tmp_path: Path) -> None:
    world, table = people(tmp_path)
    run = replayed(tmp_path, world, f"recorded:{table}", labeller="simulated", beyond=True)
    assert run.summary.queries == 4  # one row of five is about an example that is not there
    assert sorted(run.features.name) == ["beard", "glasses", "hat"]
    assert run.summary.stopped_because == "nothing-unresolved"
    assert run.labels[["beard", "glasses", "hat"]].notna().all(axis=None)
    again = replayed(tmp_path, world, f"recorded:{table}", labeller="simulated", beyond=True, out=str(tmp_path / "2"))
    assert again.summary.paid_calls == 0


def test_labels_come_from_the_votes_where_there_are_votes(tmp_path: Path) -> None:
    world, table = people(tmp_path)
    votes = write_votes(
        tmp_path / "votes.csv", [("e0", "hat", "ann", 1), ("e1", "hat", "ann", 1), ("e2", "hat", "b", 0)]
    )
    run = replayed(tmp_path, world, f"{votes}?comparisons={table}")
    hat = run.labels["hat"]
    assert (hat["e0"], hat["e1"], hat["e2"]) == (1, 1, 0)
    assert hat.notna().sum() == 3


def test_a_strategy_cannot_choose_what_people_were_asked(tmp_path: Path) -> None:
    world, table = people(tmp_path)
    with pytest.raises(StrategyError, match="leave out --strategy"):
        replayed(tmp_path, world, f"recorded:{table}", strategy="adaptive-triple")


def test_a_comparison_puts_the_recorded_questions_to_the_others(tmp_path: Path) -> None:
    world, table = people(tmp_path)
    with (tmp_path / "truth.csv").open(newline="", encoding="utf-8") as file:
        truth = list(csv.DictReader(file))
    votes = write_votes(tmp_path / "votes.csv", [(row["id"], "hat", "ann", int(row["hat"])) for row in truth])
    found = compared(tmp_path, world, "simulated", f"{votes}?comparisons={table}", votes=1)
    assert [one.kind.value for one in found.study.asked] == ["left-right"] * 3 + ["two-of-three"]
    (pair,) = found.same_questions
    said = {one.name: [each.name or each.verdict for each in one.compared] for one in found.study.raters}
    recorded = next(names for name, names in said.items() if name.startswith("recorded"))
    assert recorded == ["hat", "a hat", "beard", "glasses"]
    simulated = next(names for name, names in said.items() if name.startswith("simulated"))
    assert set(simulated) <= {"hat", "glasses", "beard", "none"}
    assert pair.both_named == sum(name != "none" for name in simulated)
    page = (tmp_path / "out" / "compare.html") if (tmp_path / "out" / "compare.html").exists() else None
    assert page is None or "against" in page.read_text(encoding="utf-8")


def test_where_the_question_says_which_examples_are_meant_nobody_can_differ_in_that(tmp_path: Path) -> None:
    world, table = people(tmp_path)
    table.write_text("\n".join(COMPARISONS.splitlines()[:2]) + "\n", encoding="utf-8")
    votes = write_votes(tmp_path / "votes.csv", [("e0", "hat", "ann", 1)])
    more = tmp_path / "more.csv"
    more.write_text(table.read_text(encoding="utf-8").replace("hat", "cap"), encoding="utf-8")
    other = write_votes(tmp_path / "other.csv", [("e0", "hat", "ben", 1)])
    found = compared(tmp_path, world, f"{votes}?comparisons={table}", f"{other}?comparisons={more}", votes=1)
    (pair,) = found.same_questions
    assert (pair.triples, pair.both_named) == (1, 1)
    assert pair.same_split.value is None
    assert pair.same_words.value == 0
