"""A comparison from end to end without Prefect: the same questions, the right figures, reasons where there are none."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.comparisons import FEATURES, compared, feature_list, make_world, prepared, write_votes
from tests.support.fake_openai import FakeOpenAI
from twothirds.flows.compare.flow import run_comparison
from twothirds.models.oracle import MICRO, AnswersPending, Feature
from twothirds.reports.compare.comparison import OracleComparison
from twothirds.reports.compare.exports import comparison_json, write_comparison
from twothirds.store import Store

MODEL = "simulated?flip=0.1&seed=1"
PEOPLE = "simulated?flip=0.2&seed=2&price=0.01"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    feature_list(folder / "features.csv")
    return folder


@pytest.fixture(scope="module")
def comparison(world: Path) -> OracleComparison:
    settings = {"features": str(world / "features.csv"), "people": PEOPLE, "votes": "3,5"}
    return compared(world, str(world / "world.csv"), MODEL, PEOPLE, **settings)


def test_everybody_labels_the_same_features_on_the_same_examples(comparison: OracleComparison) -> None:
    study = comparison.study
    assert study.names == list(FEATURES)
    for one, votes in zip(study.raters, (3, 5), strict=True):
        assert one.sheet.votes.shape == (3, 60, votes)
        assert (one.sheet.votes >= 0).all()
        assert len(one.compared) == 4
    assert [one.people for one in study.raters] == [False, True]


def test_the_figures_are_those_of_the_errors_that_were_made(comparison: OracleComparison) -> None:
    model, people = comparison.qualities
    assert model.accuracy.overall["one vote"].value == pytest.approx(0.9, abs=0.05)
    assert people.accuracy.overall["one vote"].value == pytest.approx(0.8, abs=0.05)
    assert model.accuracy.overall["majority"].value == pytest.approx(0.9**3 + 3 * 0.9**2 * 0.1, abs=0.05)
    assert comparison.reference.kind == "truth"
    assert comparison.versus[0].test.passes is True
    assert comparison.study.raters[1].usd == pytest.approx(0.01 * 3 * 60 * 5)
    best = comparison.advice[0].best
    assert best is not None
    assert best.accuracy >= 0.95


def test_a_second_run_asks_nobody_again(world: Path, comparison: OracleComparison) -> None:
    settings = {"features": str(world / "features.csv"), "people": PEOPLE, "votes": "3,5"}
    again = compared(world, str(world / "world.csv"), MODEL, PEOPLE, **settings)
    assert [one.paid_usd for one in again.study.raters] == [0, 0]
    assert _without_time(again) == _without_time(comparison)


def _without_time(comparison: OracleComparison) -> str:
    content = comparison_json(comparison, {})
    content.pop("finished_at")
    for one in content["oracles"]:
        one.pop("paid_usd")
    return json.dumps(content, sort_keys=True)


def test_votes_that_were_written_can_be_replayed(tmp_path: Path, world: Path, comparison: OracleComparison) -> None:
    folder = tmp_path / "written"
    folder.mkdir()
    data = prepared(tmp_path, str(world / "world.csv"), MODEL, features=str(world / "features.csv"))
    write_comparison(comparison, folder, data.dataset, {})
    model, people = (f"recorded:{folder / f'votes-{number}.csv'}" for number in (1, 2))
    again = compared(tmp_path, str(world / "world.csv"), model, people, votes="3,5", people=people)
    for old, new in zip(comparison.study.raters, again.study.raters, strict=True):
        assert (old.sheet.yes == new.sheet.yes).all()
        assert (old.sheet.no == new.sheet.no).all()
        assert set(old.sheet.workers) == set(new.sheet.workers)
    old_pair, new_pair = comparison.pairs[0].overall, again.pairs[0].overall
    assert old_pair["Cohen's kappa"] == new_pair["Cohen's kappa"]


def test_tables_and_json_say_the_same_as_the_comparison(
    tmp_path: Path, world: Path, comparison: OracleComparison
) -> None:
    data = prepared(tmp_path, str(world / "world.csv"), MODEL, features=str(world / "features.csv"))
    page = write_comparison(comparison, tmp_path, data.dataset, {"seed": 0})
    content = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert content["settings"] == {"seed": 0}
    assert content["agreement"][0]["overall"]["Cohen's kappa"]["value"] == pytest.approx(
        comparison.pairs[0].overall["Cohen's kappa"].value
    )
    rows = list(csv.DictReader((tmp_path / "agreement.csv").read_text(encoding="utf-8").splitlines()))
    kappas = [row for row in rows if row["statistic"] == "Cohen's kappa"]
    assert [row["feature"] for row in kappas] == ["", *FEATURES]
    differing = list(csv.DictReader((tmp_path / "disagreements.csv").read_text(encoding="utf-8").splitlines()))
    assert len(differing) == len(comparison.disagreements)
    assert "Calderon" in page.read_text(encoding="utf-8")


def test_features_come_from_the_first_oracle_where_none_are_given(tmp_path: Path) -> None:
    dataset = make_world(tmp_path)
    found = compared(tmp_path, dataset, "simulated", MODEL, queries=4, votes="1", own_discovery=True)
    assert set(found.study.names) <= set(FEATURES)
    assert len(found.yields) == 2
    assert found.matched[0].shared
    assert all(one.same_words for one in found.matched[0].shared if abs(one.correlation) > 0.95)
    assert found.yields[0].per_query.value is not None
    assert found.yields[0].per_dollar.value is None


def test_people_may_label_a_sample_only(tmp_path: Path, world: Path) -> None:
    settings: dict[str, Any] = {"features": str(world / "features.csv"), "people": PEOPLE, "people_sample": 20}
    found = compared(tmp_path, str(world / "world.csv"), MODEL, PEOPLE, **settings)
    people = found.study.people
    assert people is not None
    assert ((people.sheet.yes + people.sheet.no) > 0).any(0).sum() == 20
    assert not found.versus[0].held_back
    assert [one.others for one in found.versus[0].shares] == [40, 40, 40]
    assert all(one.corrected.value is not None for one in found.versus[0].shares)


def test_a_budget_ends_one_oracle_and_the_page_says_so(tmp_path: Path, world: Path) -> None:
    settings = {"features": str(world / "features.csv"), "people": PEOPLE, "budget": "1"}
    found = compared(tmp_path, str(world / "world.csv"), MODEL, PEOPLE, **settings)
    model, people = found.study.raters
    assert not model.stopped
    assert "budget of 1.00 USD" in people.stopped
    assert people.paid_usd <= 1
    assert 0 < people.votes < people.wanted
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        ended = {(night.state, night.todo) for night in store.costs.nights("out")}
    assert ended == {("done", ""), ("budget used up", people.stopped)}


def test_the_budget_is_that_of_the_whole_comparison_and_of_its_repetitions(tmp_path: Path, world: Path) -> None:
    priced = [f"simulated?flip=0.1&seed={seed}&price=0.001" for seed in range(3)]
    whole: dict[str, Any] = {"votes": "1", "own_discovery": True, "queries": 3, "people": priced[0]}
    all_of_it = compared(tmp_path / "all", str(world / "world.csv"), *priced, **whole)
    [first, *_] = each = [rater.paid_usd + rater.discovered.usd for rater in all_of_it.study.raters if rater.discovered]
    assert len(each) == 3
    for budget in (round(1.5 * first, 4), round(1.7 * first, 4)):
        found = compared(tmp_path, str(world / "world.csv"), *priced, **whole, budget=str(budget))
        assert [bool(rater.stopped) for rater in found.study.raters][1:] == [True, True]
        with Store.open(str(tmp_path / "store.sqlite")) as store:
            assert first < sum(line.paid + line.unknown for line in store.costs.lines()) / MICRO <= budget


def test_an_oracle_that_is_lost_before_its_first_vote_is_a_column_of_nothing(
    tmp_path: Path, world: Path, server: FakeOpenAI
) -> None:
    model = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&attempts=1"
    ready = prepared(tmp_path, str(world / "world.csv"), model, PEOPLE, features=str(world / "features.csv"))
    server.answers_left = 0
    found = run_comparison(ready, run_id="run")
    lost, people = found.study.raters
    assert (lost.votes, lost.lost, people.lost) == (0, True, False)
    assert people.votes == people.wanted
    page = write_comparison(found, ready.folder, ready.dataset, {})
    assert f"Partial: openai:gpt-4o-mini gave 0 of {lost.wanted} votes: 127.0.0.1" in page.read_text(encoding="utf-8")


def odd(folder: Path, kind: str, n: int = 40) -> str:
    """Oracles that answer little, nothing, or always the same."""
    cells = [(f"e{row}", name, "ann", 1) for row in range(n) for name in FEATURES]
    if kind == "constant":
        return write_votes(folder / "constant.csv", cells)
    if kind == "few":
        return write_votes(folder / "few.csv", cells[:5])
    return "simulated?refuse=1&seed=5"


@pytest.mark.parametrize("kind", ["constant", "few", "refusing"])
@pytest.mark.parametrize("truth", [True, False])
def test_odd_oracles_get_reasons_never_zeros_or_warnings(tmp_path: Path, kind: str, truth: bool) -> None:
    dataset = make_world(tmp_path / "data", n=40)
    strange = odd(tmp_path, kind)
    usual = write_votes(
        tmp_path / "people.csv",
        [
            (f"e{row}", name, worker, int((row * 7 + place * 3 + len(worker)) % 5 < 2))
            for row in range(40)
            for place, name in enumerate(FEATURES)
            for worker in ("ann", "beth", "carla")
        ],
    )
    if not truth and kind != "refusing":
        (tmp_path / "data" / "truth.csv").unlink()
    settings: dict[str, Any] = {"features": feature_list(tmp_path / "f.csv"), "people": usual, "votes": "3"}
    data = prepared(tmp_path, dataset, strange, usual, **settings)
    found = compared(tmp_path, dataset, strange, usual, **settings)
    page = write_comparison(found, tmp_path / "out", data.dataset, {}).read_text(encoding="utf-8")
    content = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    for estimate in _estimates(content):
        assert estimate["value"] is not None or estimate["reason"], estimate
        assert estimate["value"] is None or math.isfinite(estimate["value"])
    kappa = content["agreement"][0]["overall"]["Cohen's kappa"]
    if kind == "refusing":
        assert kappa == {"value": None, "low": None, "high": None, "reason": "no example is labelled by both"}
        assert content["model_against_people"][0]["alt_test"]["reason"] == "the model gave no label"
    if kind == "constant":
        assert kappa["value"] is None
        assert kappa["reason"] == "one of the two gives the same label to every example"
    assert content["quality"][0]["own_votes"]["Fleiss' kappa"]["reason"] == "no example has two votes"
    assert "not defined" in page
    shown = page.partition('<script type="application/json"')[0]
    assert not {"nan", "inf"} & set(re.findall(r"[a-z]+", shown.lower().partition("<body")[2]))


def _estimates(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [value] if {"value", "low", "high", "reason"} <= set(value) else []
        return own + [one for part in value.values() for one in _estimates(part)]
    return [one for part in value for one in _estimates(part)] if isinstance(value, list) else []


def test_one_oracle_alone_is_measured_against_the_truth(tmp_path: Path) -> None:
    dataset = make_world(tmp_path)
    found = compared(tmp_path, dataset, MODEL, features=feature_list(tmp_path / "f.csv"))
    assert found.pairs == []
    assert found.qualities[0].accuracy.overall["Dawid-Skene"].value == pytest.approx(0.98, abs=0.04)


def test_two_oracles_are_compared_where_neither_truth_nor_people_tell_who_is_right(
    tmp_path: Path, dataset: Path, server: FakeOpenAI
) -> None:
    models = [f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&temperature={one}" for one in (0, 1)]
    settings: dict[str, Any] = {"features": "cat; dog", "votes": "1"}
    found = compared(tmp_path, str(dataset), *models, **settings)
    assert found.reference.kind == "none"
    ready = prepared(tmp_path, str(dataset), *models, **settings)
    page = write_comparison(found, tmp_path / "out", ready.dataset, {}).read_text(encoding="utf-8")
    assert "without looking" not in page


def test_no_feature_is_no_crash(tmp_path: Path) -> None:
    dataset = make_world(tmp_path)
    found = compared(tmp_path, dataset, "simulated?none=1", MODEL, queries=2)
    assert found.study.features == ()
    assert found.pairs[0].overall["raw agreement"].value is None
    data = prepared(tmp_path, dataset, MODEL, features=feature_list(tmp_path / "f.csv"))
    assert write_comparison(found, tmp_path / "out", data.dataset, {}).exists()


def test_pending_people_keep_nobody_else_from_being_asked(tmp_path: Path) -> None:
    dataset = make_world(tmp_path, n=6)
    settings: dict[str, Any] = {"features": feature_list(tmp_path / "f.csv"), "votes": "1"}
    with pytest.raises(AnswersPending):
        compared(tmp_path, dataset, "human:team", MODEL, **settings)
    again = compared(tmp_path, dataset, MODEL, **settings)
    assert again.study.raters[0].votes == 18
    assert again.study.raters[0].paid_usd == 0


def test_features_may_be_written_by_hand(tmp_path: Path) -> None:
    found = prepared(tmp_path, make_world(tmp_path), MODEL, features="round: It is round.; red; red")
    assert found.features == (Feature("round", "It is round."), Feature("red"))
    assert found.origin == "given by hand"


def test_the_sample_is_the_same_for_everybody_and_by_seed(tmp_path: Path) -> None:
    dataset = make_world(tmp_path)
    features = feature_list(tmp_path / "f.csv")
    rows = [prepared(tmp_path, dataset, MODEL, features=features, sample=10, seed=seed).rows for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]
    assert len(rows[0]) == 10
    assert np.all(np.diff(rows[0]) > 0)
