"""The same feature in other words, where it meets servers, stores, curation, estimates and people."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.fake_openai import Failings, LifelikeServer
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.runs.curate import CurationRequest, curate
from twothirds.models import AnswersPending, Feature, Same
from twothirds.models.people import HumanOracle
from twothirds.reports.finished_run import Run
from twothirds.sources import load_dataset
from twothirds.store import Store

WORDY = Failings(slow=0.0, broken=0.0, too_many=0.0, other_words=1.0, repeats_known=0.9, vague=0.0, misjudges=0.0)


def settings(tmp_path: Path, **changed: Any) -> DiscoverSettings:
    places = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / "run")}
    return DiscoverSettings.model_validate(
        {"dataset": "datasets/zoo", "queries": 8, "elicit_on": 101} | places | changed
    )


def test_a_wordy_model_is_asked_and_its_duplicates_are_not_counted(tmp_path: Path) -> None:
    unsteady = replace(WORDY, label_noise=0.15, errs_by_wording=True)  # labels alone do not tell duplicates
    with LifelikeServer(load_dataset("datasets/zoo"), unsteady, seed=3) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075"
        chosen = settings(tmp_path, oracle=oracle)
        expected = forecast_discovery(prepare(chosen))
        run_discovery(prepare(chosen), run_id="first")
        run, mind = Run(tmp_path / "run"), server.lifelike
        table, summary = run.features, run.summary
        asked = server.labels_asked
        run_discovery(prepare(chosen.model_copy(update={"out": str(tmp_path / "again")})), run_id="second")
        assert server.labels_asked == asked, "nothing is asked twice"
    assert expected.at_most > 0
    assert summary.settings["ask_same"] is True
    assert summary.same is not None
    twins = table[table["twin"].str.startswith("same as ")]
    assert summary.same.asked > 0
    assert summary.same.features == len(twins) > 0
    assert not twins["distinct"].any()
    defined = dict(zip(table["name"], table["definition"], strict=True))
    for row in twins.itertuples():
        other = str(row.twin).removeprefix("same as ")
        assert mind.column_of(str(row.name), str(row.definition)) == mind.column_of(other, defined[other])
    listed = run.findings.feature_table()["cost_usd"].sum()
    assert listed == pytest.approx(table["cost_usd"].sum()), "what it took to tell them apart is read back"
    assert summary.same.usd > 0
    counted = table["interesting"] & table["distinct"] & table["consistent"]
    assert run.findings.counting == summary.interesting_distinct == int(counted.sum())
    assert summary.doubtful == list(table[~table["consistent"]]["name"])
    assert list(zip(table["interesting"], table["distinct"], strict=True)) == run.findings.marks
    kinds = [json.loads(line)["question"]["kind"] for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    assert kinds.count("same") == summary.same.asked
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        assert store.check.problems() == []
        assert {line.kind for line in store.costs.lines("first")} >= {"same", "label"}
    assert (tmp_path / "again" / "features.csv").read_text() == (tmp_path / "run" / "features.csv").read_text()
    curate(run, CurationRequest("duplicates", [], confirmed=True))
    assert set(Run(run.folder).features["name"]) == set(table["name"]) - set(twins["name"])


@pytest.mark.parametrize(
    "plan", [{"label_rest": True}, {"agree": 0.9}, {"agree": 0.9, "uncertified": "leave"}], ids=str
)
def test_the_other_examples_of_a_duplicate_are_not_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: dict[str, Any]
) -> None:
    """A duplicate is known for one when the compared examples are labelled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with LifelikeServer(load_dataset("datasets/zoo"), WORDY, seed=3) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075"
        chosen = settings(tmp_path, oracle=oracle, elicit_on=60, **plan)
        run_discovery(prepare(chosen), run_id="first")
    run = Run(tmp_path / "run")
    table, compared = run.features, set(run.summary.dataset.compared_ids or ())
    twins = set(table[table["twin"].str.startswith("same as ")]["name"])
    assert len(compared) == 60
    assert twins
    assert (table[table["name"].isin(twins)]["labelled"] <= 60).all()
    if "uncertified" not in plan:
        assert (table[~table["name"].isin(twins)]["labelled"] > 95).all()
    asked = [json.loads(line) for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    labels = [one["question"] for one in asked if one["question"]["kind"] == "label"]
    assert not [one for one in labels if one["feature"][0] in twins and one["example"] not in compared]
    if predicted := run.summary.to_json().get("predicted"):
        assert not twins & {one["feature"] for one in predicted["certificates"]}
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        assert store.check.problems() == []


def test_strategies_of_the_paper_and_people_are_not_asked_unless_wanted(tmp_path: Path) -> None:
    openai = "openai:gpt-4o-mini?base_url=http://localhost:1/v1&price=1,1"
    asks = {
        ("auto", openai): True,
        ("adaptive-triple", openai): False,
        ("auto", "human"): False,
        ("auto", "simulated"): False,
    }
    for (strategy, oracle), expected in asks.items():
        assert prepare(settings(tmp_path, strategy=strategy, oracle=oracle)).settings.ask_same is expected
    assert prepare(settings(tmp_path, oracle="human", ask_same=True)).settings.ask_same is True
    assert prepare(settings(tmp_path, oracle=openai, provider_batch=True)).settings.ask_same is False


def test_pairs_for_people_wait_in_the_queue_among_labels(store: Store) -> None:
    pair = Same.of(Feature("hat"), Feature("cap", "worn on the head"))
    with pytest.raises(AnswersPending):
        list(ask(HumanOracle(store.queue), [pair]))
    [shown] = store.queue.questions.examples([pair.example.digest]).values()
    assert shown["text"] == "Feature 1: cap (worn on the head)\nFeature 2: hat"
