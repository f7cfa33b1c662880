"""Features that exclude one another become attributes with values: proposed and priced, made, used and taken back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.killed import AFTER_ANSWERS, AT_CHANGE, kill_flows
from tests.support.people import TruthfulPerson
from tests.support.postgres import PostgresServer
from tests.support.valued_worlds import HAIR, TOP, ValuedWorld
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.runs import CurationRequest, attributes, curate, export
from twothirds.models.oracle import AnswersPending, BudgetExhausted
from twothirds.reports.curation import read_log
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset
from twothirds.store import Store

ENOUGH = 0.95


@pytest.fixture
def world(tmp_path: Path) -> ValuedWorld:
    return ValuedWorld(tmp_path / "world", n=120)


def families_of(run: Run) -> dict[str, set[str]]:
    return {one.name: {value.name for value in one.values} for one in Run(run.folder).findings.attributes}


def test_it_is_proposed_and_priced_before_anything_is_asked(world: ValuedWorld) -> None:
    run = world.run(oracle="simulated?price=0.001")
    shown = attributes(run)
    assert not shown.data["done"]
    assert shown.lines[-1] == "nothing was changed: add --yes to do it"
    assert {frozenset(one) for one in shown.data["proposed"]} == {frozenset(HAIR[:3]), frozenset(TOP)}
    assert 0 < shown.data["likely_usd"] < shown.data["usd"]
    assert families_of(run) == {}
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert [row["status"] for row in store.runs.overview()] == ["not confirmed"]
        assert store.costs.lines() == []


def test_values_are_those_of_the_truth_in_spite_of_wrong_answers(world: ValuedWorld) -> None:
    run = world.run(oracle="simulated?flip=0.06&price=0.001")
    done = attributes(run, confirm=lambda _: True)
    assert done.data["done"]
    assert families_of(run) == {"hair colour": set(HAIR), "top colour": set(TOP)}  # with the colour that was missing
    after = Run(run.folder)
    assert world.share_right(after, "hair colour", HAIR) >= ENOUGH
    assert world.share_right(after, "top colour", TOP) >= ENOUGH
    with Store.open(str(world.folder / "store.sqlite")) as store:
        kinds = {line.kind: line.paid_calls for line in store.costs.lines()}
        assert set(kinds) == {"family", "value"}
        assert store.check.problems() == []


def test_a_change_is_undone_and_made_again_without_asking(world: ValuedWorld) -> None:
    run = world.run(oracle="simulated?price=0.001")
    attributes(run, confirm=lambda _: True)
    before = Run(run.folder).attributes
    assert "took back attributes" in curate(run, CurationRequest("undo", [])).lines[0]
    assert Run(run.folder).attributes.columns.empty
    again = attributes(Run(run.folder))
    assert again.data["likely_usd"] == pytest.approx(0.001 * again.data["calls"], abs=0.2)
    attributes(Run(run.folder), confirm=lambda _: True)
    pd.testing.assert_frame_equal(Run(run.folder).attributes, before)
    with Store.open(str(world.folder / "store.sqlite")) as store:
        asked = [(line.paid_calls, line.cached_calls) for line in store.costs.lines() if line.cached_calls]
        assert asked
        assert not any(paid for paid, _ in asked)
    assert attributes(Run(run.folder)).data["families"] == []  # none is left to be made


def test_features_that_are_independent_are_not_forced(tmp_path: Path) -> None:
    world = ValuedWorld(tmp_path / "world")
    rng = np.random.default_rng(1)
    shape = world.truth[:, : len(HAIR)].shape
    world.truth[:, : len(HAIR)] = rng.random(shape) < 0.35  # an example may have several colours of hair
    world.labels = world.truth.copy()
    run = world.run(oracle="simulated")
    attributes(run, confirm=lambda _: True)
    assert families_of(run) == {"top colour": set(TOP)}


def test_an_oracle_that_calls_anything_an_attribute_does_not_make_one(tmp_path: Path) -> None:
    """The names share a word, so that recorded votes say yes; the labels say no."""
    world = ValuedWorld(tmp_path / "world")
    rng = np.random.default_rng(2)
    world.truth[:, :7] = rng.random((160, 7)) < 0.35
    world.labels = world.truth.copy()
    votes = tmp_path / "votes.csv"
    lines = [f"{name},{HAIR[0]},w,{row[0]}" for name, row in zip(world.ids, world.truth.tolist(), strict=True)]
    votes.write_text("example,feature,worker,label\n" + "\n".join(lines) + "\n")
    run = world.run(oracle=f"recorded:{votes}")
    attributes(run, confirm=lambda _: True)
    assert families_of(run) == {}


def test_a_budget_stops_it_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    world = ValuedWorld(tmp_path / "world", n=60, wrong=0.02)
    with FakeOpenAI(FakeModel([*HAIR, *TOP])) as server:
        run = world.run(oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1")
        shown = attributes(run)
        assert shown.data["usd"] > shown.data["likely_usd"] > 0
        with pytest.raises(BudgetExhausted, match="raise --budget"):
            attributes(run, budget=f"{shown.data['likely_usd'] * 0.3:.6f}")
        assert families_of(run) == {}
        attributes(run, budget="20")
        assert set(families_of(run)) == {"hair colour", "top colour"}
        assert world.share_right(Run(run.folder), "top colour", TOP) >= ENOUGH
        charged = len(server.book)
    with Store.open(str(world.folder / "store.sqlite")) as store:
        lines = store.costs.lines()
        assert {"family", "value"} <= {line.kind for line in lines}
        assert sum(line.requests for line in lines) == charged  # every request is in the books
        assert any(line.cached_calls for line in lines)  # nothing was paid twice
        assert store.check.problems() == []


def test_people_name_and_choose(tmp_path: Path) -> None:
    world = ValuedWorld(tmp_path / "world", n=60, wrong=0.02)
    run = world.run(oracle="human")
    with Store.open(str(world.folder / "store.sqlite")) as store:
        person = TruthfulPerson(store.queue, "ann", load_dataset(str(world.folder / "texts.csv")))
        for _ in range(12):
            try:
                attributes(Run(run.folder), confirm=lambda _: True)
                break
            except AnswersPending:
                while person.answer_page():
                    pass
    assert set(families_of(run)) == {"hair colour", "top colour"}
    assert world.share_right(Run(run.folder), "top colour", TOP) >= ENOUGH


def test_exports_report_and_enrichment_carry_the_values(world: ValuedWorld, tmp_path: Path) -> None:
    run = world.run(oracle="simulated")
    attributes(run, confirm=lambda _: True)
    after = Run(run.folder)
    files = {
        path.name: path
        for path in export(after.folder, ["wide-parquet", "wide-csv", "jsonl", "card"], out=tmp_path / "x")
    }
    wide = pd.read_parquet(files["wide.parquet"])
    assert isinstance(wide["hair colour"].dtype, pd.CategoricalDtype)
    assert wide["hair colour"].astype(object).tolist() == after.attributes["hair colour"].astype(object).tolist()
    assert pd.read_csv(files["wide.csv"])["top colour"].tolist() == wide["top colour"].astype(object).tolist()
    assert '"attributes": {' in files["labels.jsonl"].read_text()
    assert "| hair colour |" in files["README.md"].read_text()
    page = after.report().path.read_text(encoding="utf-8")
    assert "Attributes with values" in page
    assert "none stands for it" in page
    table = tmp_path / "table"
    settings = {"dataset": str(world.folder / "texts.csv"), "features": str(run.folder), "oracle": "simulated"}
    summary = enrich_with(EnrichSettings(**settings, out=str(table), store=str(tmp_path / "enrich.sqlite")))
    values = pd.read_parquet(table / "attributes.parquet").set_index("id")
    given = values["hair colour"].dropna().astype(object)
    assert 0 < len(given) < len(values), "what labels leave open is empty"
    assert (given == after.attributes["hair colour"].astype(object)[given.index]).mean() >= ENOUGH
    assert summary.paid_calls == len(values) * len(summary.features), "no value is asked"
    again = enrich_with(EnrichSettings(**settings, out=str(table), store=str(tmp_path / "enrich.sqlite")))
    assert again.paid_calls == 0
    pd.testing.assert_frame_equal(pd.read_parquet(table / "attributes.parquet").set_index("id"), values)


def test_a_renamed_feature_stays_its_value_and_a_dropped_one_leaves_it(world: ValuedWorld) -> None:
    run = world.run(oracle="simulated")
    attributes(run, confirm=lambda _: True)
    curate(Run(run.folder), CurationRequest("rename", ["grey hair", "silver hair"], confirmed=True))
    curate(Run(run.folder), CurationRequest("drop", ["black hair"], confirmed=True))
    [hair] = [one for one in Run(run.folder).findings.attributes if one.name == "hair colour"]
    assert {value.name: value.feature for value in hair.values}["grey hair"] == "silver hair"
    assert {value.name: value.feature for value in hair.values}["black hair"] == ""


def test_a_run_without_families_says_so(tmp_path: Path) -> None:
    world = ValuedWorld(tmp_path / "world", n=12)
    assert attributes(world.run(oracle="simulated")).lines == ["no features of this run seem to exclude one another"]
    with pytest.raises(UsageError, match="--budget"):
        attributes(ValuedWorld(tmp_path / "other").run(oracle="simulated"), budget="nothing")


@pytest.mark.parametrize("often", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["once", "often"])
def test_killed_and_repeated_it_ends_like_one_that_was_left_alone_and_pays_for_nothing_twice(
    tmp_path: Path, postgres: PostgresServer, often: bool
) -> None:
    """Killed among the names, among the values and before its change is written, or only once; on PostgreSQL."""
    oracle = "simulated?latency=0.01&price=0.001&flip=0.06&width=4"
    calm = ValuedWorld(tmp_path / "calm", n=40).run(oracle=oracle, store=str(tmp_path / "calm.sqlite"))
    assert attributes(calm, confirm=lambda _: True).data["done"]
    with Store.open(str(tmp_path / "calm.sqlite")) as store:
        total = sum(line.paid_calls for line in store.costs.lines())
    url = postgres.fresh_schema()
    run = ValuedWorld(tmp_path / "stormy", n=40).run(oracle=oracle, store=url)
    command = ["attributes", str(run.folder), "--yes", "--json"]
    moments = [(AFTER_ANSWERS, "1", "0"), (AFTER_ANSWERS, str(total // 2), "0.005"), (AT_CHANGE, "before")]
    for killed_by in moments if often else moments[1:2]:
        kill_flows(*command, killed_by=killed_by)
        assert read_log(run.folder) == [], "a change is there as a whole or not at all"
        assert Run(run.folder).attributes.columns.empty
    with Store.open(url) as store:
        assert total // 2 <= store.requests.count() <= total
    kill_flows(*command, killed_by=(AT_CHANGE, "after"))
    pd.testing.assert_frame_equal(Run(run.folder).attributes, Run(calm.folder).attributes)
    assert attributes(Run(run.folder), confirm=lambda _: True).data["families"] == [], "they are made already"
    assert [entry.action for entry in read_log(run.folder)] == ["attributes"]
    with Store.open(url) as store:
        assert store.check.problems() == []
        lines = store.costs.lines()
        assert (sum(line.paid_calls for line in lines), sum(line.paid for line in lines)) == (total, total * 1000)
