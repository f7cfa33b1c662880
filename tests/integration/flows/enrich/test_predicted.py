"""Predicted labels: certified, marked as such, never in place of the oracle's, and the same after an interruption."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import twothirds.flows.predicting
from tests.support.growing_worlds import TellingWorld, World, night, table
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.models import CachedOracle
from twothirds.models.predicted import cells
from twothirds.sources import Example
from twothirds.store import Store

pytestmark = pytest.mark.usefixtures("sampling_number")

ROWS = 800


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TellingWorld:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return TellingWorld(tmp_path / "world", ROWS)


def truth(world: World) -> pd.DataFrame:
    return pd.read_csv(world.folder / "truth.csv").set_index("id")


def predicted(world: World, trait: str) -> pd.Series[bool]:
    labels = table(world)
    if f"{trait} (source)" not in labels:
        return pd.Series(data=False, index=labels.index)
    return labels[f"{trait} (source)"] == "predicted"


def test_labels_are_predicted_where_certified_and_asked_elsewhere(world: TellingWorld) -> None:
    summary = night(world, agree=0.9)
    (made,) = summary["predictions"]
    assert made["predicted_labels"] == summary["predicted_labels"] > ROWS
    assert summary["paid_calls"] == made["asked_labels"]
    assert made["asked_labels"] + made["predicted_labels"] == 3 * ROWS
    labels, true = table(world), truth(world)
    for one in summary["certificates"]:
        trait, here = one["feature"], predicted(world, one["feature"])
        assert (labels[trait] == true[trait])[~here].all()  # what the oracle said is what is written
        assert here.any() == (one["certificate"] is not None)
        if here.any():
            assert (labels[trait] == true[trait])[here].mean() >= 0.9
            chance = labels[f"{trait} (probability)"]
            assert chance.notna().equals(here)
            assert ((chance >= 0.5) == (labels[trait] == 1))[here].all()


def test_where_nothing_can_be_learned_nothing_is_predicted(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 700)
    summary = night(world, agree=0.9)
    assert summary["predicted_labels"] == 0
    assert all(one["certificate"] is None for one in summary["certificates"])
    assert (table(world)[list(world.traits)] == truth(world)).all(axis=None)
    assert summary["paid_calls"] == 2_100


def test_a_pool_that_is_too_small_is_asked(tmp_path: Path) -> None:
    world = TellingWorld(tmp_path / "world", 60)
    summary = night(world, agree=0.95)
    assert (summary["predicted_labels"], summary["paid_calls"]) == (0, 180)


def test_a_run_that_is_killed_goes_on_with_the_same_sample_classifier_and_certificate(
    world: TellingWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = night(world, agree=0.9, out=str(tmp_path / "other"), store=str(tmp_path / "other.sqlite"))
    real, asked = CachedOracle.ask, undisturbed["predictions"][0]["asked_labels"]
    left = {"answers": 0}

    def dies(self: CachedOracle, questions: Any) -> Any:
        for answer in real(self, questions):
            left["answers"] -= 1
            if left["answers"] == 0:
                raise RuntimeError("killed")
            yield answer

    monkeypatch.setattr(CachedOracle, "ask", dies)
    monkeypatch.setattr("twothirds.flows.enrich.batches.MAX_ATTEMPTS", 1)
    store = str(world.folder / "store.sqlite")
    for answers in (300, 550, asked - 20):  # among what is learned from, then later, and just before the last answer
        with Store.open(store) as opened:
            left["answers"] = max(1, answers - opened.requests.count())
        with pytest.raises(RuntimeError, match="killed"):
            night(world, run_id="the-run", agree=0.9)
        assert not (world.folder / "out" / "labels.parquet").exists()
    left["answers"] = 10**9
    resumed = night(world, run_id="the-run", agree=0.9)
    assert resumed["certificates"] == undisturbed["certificates"]
    assert resumed["predictions"] == undisturbed["predictions"]
    other = pd.read_parquet(tmp_path / "other" / "labels.parquet").set_index("id")
    pd.testing.assert_frame_equal(table(world), other)


@pytest.mark.parametrize("number", ["2", "3", "4"])
def test_whoever_knows_seed_and_data_cannot_place_what_disagrees_behind_the_sample(
    world: TellingWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    """Of what a run of the same data and seed predicts elsewhere, 40 % of the truth is turned over."""
    night(world, agree=0.9, out=str(tmp_path / "theirs"), store=str(tmp_path / "theirs.sqlite"))
    theirs, true = pd.read_parquet(tmp_path / "theirs" / "labels.parquet").set_index("id"), truth(world)
    behind = (theirs.filter(like="(source)") == "predicted").any(axis=1)
    bad = true.index[behind & (np.random.default_rng(0).random(len(true)) < 0.4)]
    true.loc[bad] = 1 - true.loc[bad]
    true.reset_index().to_csv(world.folder / "truth.csv", index=False)
    monkeypatch.setattr("twothirds.store.runs.new_sampling_number", lambda: number)
    summary = night(world, agree=0.9)
    for one in summary["certificates"]:
        here = predicted(world, one["feature"])
        assert not here.any() or (table(world)[one["feature"]] == true[one["feature"]])[here].mean() >= 0.9


def test_a_partial_table_is_completed_with_the_order_of_the_run_that_left_it(
    world: TellingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two groups of examples that lack different features: the budget ends while the second one is asked."""
    numbers = iter("1234")
    monkeypatch.setattr("twothirds.store.runs.new_sampling_number", lambda: next(numbers))
    drawn = list[str]()

    def random_order(examples: Sequence[Example], seed: int, number: str) -> NDArray[np.intp]:
        drawn.append(number)
        return cells.random_order(examples, seed, number)

    monkeypatch.setattr(twothirds.flows.predicting, "random_order", random_order)
    night(world, agree=0.9, features="red: It is red.", uncertified="ask")
    world.add(700)
    both = "red: It is red.; round: It is round."
    stopped = night(world, agree=0.9, features=both, backfill=True, budget="0.65")
    assert (stopped["stopped_because"], stopped["version"]) == ("budget", 2)
    done = night(world, agree=0.9, features=both, backfill=True)
    assert (done["stopped_because"], done["version"]) == ("done", 3)
    assert drawn == ["1", "2", "2", "2"], "one number per night, and that of the night that is resumed"


def test_a_budget_that_runs_out_leaves_the_answers_and_the_next_run_goes_on(world: TellingWorld) -> None:
    stopped = night(world, agree=0.9, budget="0.4")
    assert stopped["stopped_because"] == "budget"
    assert stopped["cost_usd"] <= 0.4
    assert not (world.folder / "out" / "labels.parquet").exists()
    done = night(world, agree=0.9)
    asked = done["predictions"][0]["asked_labels"]
    assert (done["stopped_because"], done["paid_calls"]) == ("done", asked - stopped["paid_calls"])


def test_a_new_night_uses_the_classifiers_while_an_audit_confirms_them(world: TellingWorld) -> None:
    night(world, agree=0.9)
    before = table(world)
    world.add(400)
    second = night(world, agree=0.9)
    (made,) = second["predictions"]
    assert not made["learned_anew"]
    assert second["version"] == 2
    assert table(world).loc[before.index, list(world.traits)].equals(before[list(world.traits)])
    assert {one["version"] for one in second["certificates"]} == {1, 2}


def test_a_new_night_whose_data_has_changed_is_learned_anew(world: TellingWorld) -> None:
    night(world, agree=0.9)
    known = set(world.texts)
    world.add(700)
    frame = pd.read_csv(world.spec)
    new = ~frame["id"].isin(known)
    frame.loc[new, "text"] = frame.loc[new, "text"].str.replace("red", "rot").str.replace("round", "rund")
    frame.to_csv(world.spec, index=False)
    (made,) = night(world, agree=0.9)["predictions"]
    assert made["learned_anew"]


def test_predicted_labels_become_asked_when_they_are_asked_and_never_the_reverse(world: TellingWorld) -> None:
    first = night(world, agree=0.9)
    again = night(world, agree=0.9)
    assert (again["version"], again["paid_calls"], again["predicted_labels"]) == (1, 0, first["predicted_labels"])
    kept = night(world)
    assert (kept["paid_calls"], kept["predicted_labels"]) == (0, first["predicted_labels"])
    asked = night(world, backfill=True)
    assert asked["paid_calls"] == first["predicted_labels"]
    assert asked["predicted_labels"] == 0
    assert (table(world)[list(world.traits)] == truth(world)).all(axis=None)


def test_a_feature_that_is_defined_anew_loses_its_predictions_and_certificates(world: TellingWorld) -> None:
    night(world, agree=0.9)
    features = world.features.replace("It is red.", "It is of a red colour.")
    summary = night(world, agree=0.9, features=features, backfill=True, oracle="simulated?price=0.001")
    assert {one["version"] for one in summary["certificates"] if one["feature"] == "red"} == {2}
    assert {one["version"] for one in summary["certificates"] if one["feature"] == "round"} == {1}


def test_a_cheaper_oracle_labels_first_and_the_dear_one_where_that_is_not_enough(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 800)  # whose texts tell nothing
    summary = night(world, agree=0.9, cheap="simulated?flip=0.02&price=0.00001")
    (made,) = summary["predictions"]
    assert made["predicted_labels"] > 800
    assert made["first"] == "simulated?flip=0.02&price=0.00001"
    expected = 2_400 * 0.00001 + made["asked_labels"] * 0.001
    assert summary["cost_usd"] == pytest.approx(expected, abs=1e-6)
    labels, true = table(world), truth(world)
    for trait in world.traits:
        here = predicted(world, trait)
        assert (labels[trait] == true[trait])[~here].all()
        assert not here.any() or (labels[trait] == true[trait])[here].mean() >= 0.9


def test_a_cheaper_oracle_is_not_asked_where_the_examples_are_too_few_to_predict_any(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 100)
    summary = night(world, agree=0.9, cheap="simulated?flip=0.02&price=0.00001")
    (made,) = summary["predictions"]
    assert (made["first"], made["predicted_labels"], summary["paid_calls"]) == ("", 0, 300)
    assert "100 examples are too few to predict any: all were asked" in EnrichSummary.model_validate(summary).lines()


class PartlyTold(TellingWorld):
    unnamed = ("red",)


def test_what_cannot_be_certified_is_left_on_request_and_not_tried_again_every_night(tmp_path: Path) -> None:
    world = PartlyTold(tmp_path / "world", ROWS)
    summary = night(world, agree=0.9, uncertified="leave")
    (made,) = summary["predictions"]
    labels = table(world)
    assert made["left_labels"] == labels["red"].isna().sum() > ROWS / 4
    assert labels["round"].notna().all()
    assert summary["paid_calls"] == made["asked_labels"] < 2 * ROWS
    assert (summary["stopped_because"], summary["unusable"]["labels"]) == ("done", made["asked_labels"])
    [line] = [line for line in EnrichSummary.model_validate(summary).lines() if line.startswith("not certified")]
    assert line.startswith(f"not certified, and left out ({made['left_labels']:,} labels; --uncertified ask asks")
    again = night(world, agree=0.9, uncertified="leave")
    assert (again["version"], again["paid_calls"], again["unchanged"]) == (1, 0, ROWS)
    asked = night(world)
    assert (asked["paid_calls"], asked["filled"]) == (made["left_labels"], labels["red"].isna().sum())
    assert (table(world)["red"] == truth(world)["red"]).all()


def test_a_night_with_a_feature_that_was_left_uses_the_classifiers_of_the_others(tmp_path: Path) -> None:
    world = PartlyTold(tmp_path / "world", ROWS)
    night(world, agree=0.9, uncertified="leave")
    world.add(ROWS)
    (made,) = night(world, agree=0.9, uncertified="leave")["predictions"]
    assert not made["learned_anew"]
    assert made["predicted_labels"] > ROWS


@pytest.mark.parametrize(
    ("name", "value"), [("embedder", "some/model"), ("cheap", "simulated"), ("uncertified", "leave")]
)
def test_what_goes_with_agree_only_is_refused_without_it(world: TellingWorld, name: str, value: str) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"--{name} goes with --agree"):
        night(world, **given)


def test_enrich_json_is_read_back_with_its_certificates(world: TellingWorld) -> None:
    summary = night(world, agree=0.9)
    assert json.loads((world.folder / "out" / "enrich.json").read_text())["certificates"] == summary["certificates"]
    certified = [one["certificate"] for one in summary["certificates"] if one["certificate"]]
    assert certified
    assert all(np.isclose(one["agree"], 0.9) and np.isclose(one["confidence"], 0.95) for one in certified)
