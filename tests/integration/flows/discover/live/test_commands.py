"""Features that people add, questions that they ask and budgets that they change while it runs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.growing_worlds import World
from tests.support.steered_runs import TRAITS, Killed, discovered, kill, settings, wishing
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.profiles import Profile
from twothirds.flows.discover.run import run_discovery
from twothirds.models import Answer, Asks, LabelBatch, Votes, collect_votes
from twothirds.reports.curation.events import read_events
from twothirds.reports.curation.log import read_log
from twothirds.reports.export import export_run
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset

WIDTH = 4


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 24, TRAITS)


def out_of(chosen: Any) -> Path:
    return Path(str(chosen.out))


def first_names(world: World, **changed: Any) -> list[str]:
    """What an unsteered run finds."""
    before = discovered(settings(world, out=str(world.folder.parent / "runs" / "before"), **changed))
    return [str(name) for name in before.features["name"]]


def unfound(world: World) -> str:
    return next(one for one in TRAITS if one not in first_names(world, queries=3))


def test_a_feature_of_ones_own_is_labelled_marked_and_known_to_the_next_questions(world: World) -> None:
    own, chosen, seen = unfound(world), settings(world), list[Any]()
    command = wishing(out_of(chosen), action="add", name=own, definition=f"It is {own}.")
    run = discovered(chosen, {2: command}, seen)
    row = run.features.set_index("name").loc[own]
    assert (row["question"], row["added_by"], row["labelled"]) == ("known", "Ann", 24)
    truth = [world.truth(name)[TRAITS.index(own)] for name in world.texts]
    assert run.labels[own].tolist() == truth
    assert [own in one.known for one in seen if hasattr(one, "known")] == [False, False, *[True] * 4]
    summary = run.summary
    assert summary.given is not None
    assert summary.given.by == {own: "Ann"}
    assert [(one.after, one.by, one.words) for one in summary.steered] == [(2, "Ann", f"adds {own}")]
    assert summary.features == len(run.features) - 1, "it is not counted among those that were found"
    assert [name for name in run.features["name"] if name == own] == [own]
    export_run(run, ["features", "card"], load_dataset(world.spec))
    table = pd.read_csv(run.folder / "export" / "features.csv", keep_default_na=False).set_index("name")
    assert table.loc[own, "added_by"] == "Ann"
    assert f"Ann adds {own}" in (run.folder / "export" / "README.md").read_text()


def test_three_examples_are_asked_about_next_and_their_feature_enters(world: World) -> None:
    chosen, seen = settings(world), list[Any]()
    ids = [*world.texts][3:6]
    run = discovered(chosen, {2: wishing(out_of(chosen), action="ask", examples=ids)}, seen)
    asked = run.findings.comparisons
    assert list(asked[2].examples) == ids, "right after the question during which it was wanted"
    assert asked[2].kind.value == "two-of-three"
    assert set(asked[2].known) == {one.feature for one in asked[:2] if one.feature}
    assert asked[2].cost == 1_000, "booked as any other"
    named = [one.feature for one in asked[2].by_feature if one.feature]
    assert named
    assert set(named) <= set(run.features["name"])
    assert run.summary.queries == 6, "it counts among the questions"
    again = discovered(chosen)
    assert [one.examples for one in again.findings.comparisons] == [one.examples for one in asked]
    assert again.summary.paid_calls == 0


@pytest.mark.parametrize(
    "strategy", ["adaptive-triple", "adaptive-hybrid", "random-triple", "tagging", "adaptive-pair"]
)
def test_strategies_of_the_paper_take_a_question_that_is_not_theirs(world: World, strategy: str) -> None:
    chosen = settings(world, strategy=strategy)
    ids = [*world.texts][5:8]
    run = discovered(chosen, {2: wishing(out_of(chosen), action="ask", examples=ids)})
    assert list(run.findings.comparisons[2].examples) == ids
    assert run.summary.queries == 6


def test_between_questions_whose_features_are_labelled_together_wishes_are_heeded_too(world: World) -> None:
    seen = list[Any]()
    chosen, at_end = settings(world), Profile(labels_after=None)
    plain = discovered(settings(world, out=str(world.folder.parent / "runs" / "before")), profile=at_end)
    first, second = (str(name) for name in plain.features["name"][:2])
    at = {2: wishing(out_of(chosen), action="veto", name=first), 5: wishing(out_of(chosen), action="stop")}
    run = discovered(chosen, at, seen, profile=at_end)
    assert [(one.after, one.words, one.rejected) for one in run.summary.steered] == [
        (2, f"vetoes {first}", ""),  # it is not labelled
        (5, "stops it", ""),
    ]
    assert all(first in question.exclude for question in seen[2:])
    assert (run.summary.stopped_because, run.summary.queries) == ("stopped", 5)
    assert first not in set(run.features["name"])
    assert second in set(run.features["name"])
    assert run.labels.drop(columns="id", errors="ignore").notna().all(axis=None), "what was named is labelled first"


def test_a_budget_is_raised_and_lowered_while_it_runs(world: World) -> None:
    kept = {"budget": "0.06"}
    poor = discovered(settings(world, **kept))
    assert poor.summary.stopped_because == "budget"
    again = settings(world, out=str(world.folder.parent / "runs" / "rich"), seed=1, **kept)
    run = discovered(again, {1: wishing(out_of(again), action="budget", usd="1")})
    assert (run.summary.stopped_because, run.summary.queries) == ("queries", 6)
    assert 0.06 < run.summary.cost_usd <= 1
    low = settings(world, out=str(world.folder.parent / "runs" / "low"), seed=2, budget="1")
    run = discovered(low, {2: wishing(out_of(low), action="budget", usd="0.03")})
    assert run.summary.stopped_because == "budget"
    assert run.summary.total_usd is not None
    assert run.summary.queries < 6
    same = discovered(low)
    assert same.summary.stopped_because == "budget", "the same command applies it again"
    more = discovered(low.with_budget(Decimal(2)))
    assert more.summary.stopped_because == "queries", "another budget in the settings outranks it"


def test_a_lowered_budget_does_not_wait_for_the_labels_of_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twothirds.models.people.simulated.AT_ONCE", WIDTH)
    monkeypatch.setattr("twothirds.flows.discover.control.LOOK_SECONDS", 0)
    world = World(tmp_path / "large", 400, TRAITS)
    chosen = settings(world, budget="1")
    lower, answered = wishing(out_of(chosen), action="budget", usd="0.01"), 0

    def label(oracle: Asks, batch: LabelBatch) -> Votes:
        heard = batch.on_answer
        assert heard is not None

        def on_answer(answer: Answer) -> None:
            nonlocal answered
            answered += 1
            if answered == 2:
                lower()
            heard(answer)

        batch.on_answer = on_answer
        return collect_votes(oracle, batch)

    run_discovery(prepare(chosen), run_id="run", label=label)
    run = Run(out_of(chosen))
    assert (run.summary.stopped_because, run.summary.queries) == ("budget", 1)
    assert run.summary.cost_usd < 0.1, "what was on its way, of 400 labels"
    assert [steered.words for steered in run.summary.steered] == ["allows 0.01 USD in all"]


def test_what_was_wanted_while_it_lay_dead_comes_after_all_that_was_paid(world: World) -> None:
    chosen, own = settings(world), unfound(world)
    with pytest.raises(Killed):
        discovered(chosen, {5: kill})
    wishing(out_of(chosen), action="add", name=own)()
    with pytest.raises(Killed):
        discovered(chosen, {3: kill})
    run = discovered(chosen)
    [mark] = [one for one in read_events(out_of(chosen) / "steer.jsonl") if one["action"] == "applied"]
    assert mark["queries"] == 5, "four were answered, and the fifth was being asked"
    assert own in run.features["name"].tolist()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"action": "veto", "name": "nobody knows"}, "there is no feature nobody knows any more"),
        ({"action": "ask", "examples": ["e000001", "e000002", "elsewhere"]}, "elsewhere is not among the examples"),
        ({"action": "add", "name": "FIRST"}, "there is a feature FIRST already"),
    ],
)
def test_a_wish_that_has_become_impossible_is_reported_and_changes_nothing(
    world: World, command: dict[str, Any], why: str
) -> None:
    chosen, names = settings(world), first_names(world)

    def put(value: Any) -> Any:
        if isinstance(value, list):
            return [put(each) for each in value]
        return value.replace("FIRST", names[0])

    entered = {key: put(value) for key, value in command.items()}
    run = discovered(chosen, {4: wishing(out_of(chosen), **entered)})
    assert [str(name) for name in run.features["name"]] == names
    [entry] = run.summary.steered
    assert put(why) in entry.rejected
    assert read_log(out_of(chosen)) == []


def test_another_run_in_the_same_folder_is_not_steered_by_the_wishes_of_the_one_it_replaces(world: World) -> None:
    chosen = settings(world)
    discovered(chosen, {2: wishing(out_of(chosen), action="add", name="warm")})
    replaced = discovered(settings(world, seed=5, replace=True))
    assert replaced.summary.given is None
    assert (out_of(chosen) / "steer.jsonl.before").exists()


def test_a_target_is_scored_with_what_people_added_and_asked(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 70, TRAITS)
    table = pd.read_csv(world.spec)
    table["kind"] = ["warm" if world.truth(name)[TRAITS.index("warm")] else "cold" for name in table["id"]]
    table.to_csv(world.spec, index=False)
    chosen = settings(world, target="kind", queries=4)
    todo = {
        1: wishing(out_of(chosen), action="ask", examples=[*world.texts][:3]),
        2: wishing(out_of(chosen), action="add", name="warm"),
    }
    run = discovered(chosen, todo)
    assert run.summary.target is not None
    assert len(run.summary.target.curve) >= run.summary.queries
    assert run.summary.target.score > 0.9, "what was added predicts it"
