"""Several features a question and looks before the whole, where they meet stores, curation, exports and servers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flows.discover.flow import run_discovery
from flows.discover.known import read_features
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from flows.errors import UsageError
from flows.runs import export
from flows.runs.curate import CurationRequest, curate
from models.oracle import BudgetExhausted
from reports.curation import read_log
from reports.finished_run import Run
from reports.run.files import RunError


def settings(tmp_path: Path, name: str = "run", **changed: Any) -> DiscoverSettings:
    usual: dict[str, Any] = {"dataset": "datasets/zoo", "oracle": "simulated?price=0.001", "queries": 9}
    places = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / name)}
    return DiscoverSettings.model_validate(usual | places | changed)


def discover(tmp_path: Path, name: str = "run", **changed: Any) -> Run:
    run_discovery(prepare(settings(tmp_path, name, **changed)), run_id=f"{name} {changed}")
    return Run(tmp_path / name)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its store."""
    folder = tmp_path_factory.mktemp("found")
    discover(folder, per_question=4, look=48)
    return folder


@pytest.fixture
def run(tmp_path: Path, found: Path) -> Run:
    shutil.copytree(found / "run", tmp_path / "run")
    return Run(tmp_path / "run")


def test_a_question_brings_several_features_and_what_surely_does_not_count_is_not_labelled(run: Run) -> None:
    table, summary = run.features, run.summary
    assert summary.per_question is not None
    assert summary.looked_at is not None
    assert summary.features > 1.5 * summary.queries
    assert summary.per_question.features == pytest.approx(summary.features / summary.queries, abs=0.001)
    rows = [json.loads(line)["answer"] for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    named_nothing = [answer for answer in rows if answer["verdict"] == "none"]
    paid_for_nothing = 0.001 * len(named_nothing)
    assert table["cost_usd"].sum() + paid_for_nothing == pytest.approx(summary.cost_usd), (
        "every cent falls to one feature"
    )
    looked = table[table["look"] != ""]
    assert len(looked) == summary.looked_at.features > 0
    assert not (looked["interesting"] & looked["distinct"]).any()
    empty = run.labels[looked["name"]].isna().sum().sum()
    assert empty == summary.looked_at.labels_saved
    assert run.labels[table[table["look"] == ""]["name"]].notna().all().all()
    asked = [json.loads(line) for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    assert any(row["answer"].get("more") for row in asked)
    assert all(found.asked is not None and found.asked.feature == found.name for found in run.findings.found)
    page = run.report().path.read_text()
    assert f"not labelled in full: {looked['look'].iloc[0]}" in page


def test_the_same_command_again_asks_nothing_and_finds_the_same(found: Path, run: Run) -> None:
    again = discover(found, "again", per_question=4, look=48)
    assert again.summary.paid_calls == 0
    pd.testing.assert_frame_equal(again.labels, run.labels)
    pd.testing.assert_frame_equal(again.features, run.features)


def test_a_feature_is_labelled_on_request_and_that_can_be_undone(run: Run) -> None:
    name = str(run.features[run.features["look"] != ""]["name"].iloc[0])
    left = int(run.labels[name].isna().sum())
    listed = [line for line in curate(run, CurationRequest("list", [])).lines if f" {name} (" in line]
    assert "not labelled in full: " in listed[0]
    done = curate(run, CurationRequest("label", [name], confirmed=True))
    assert done.data["calls"] == left
    full = Run(run.folder)
    assert full.labels[name].notna().all()
    assert full.features.set_index("name").loc[name, "look"] == ""
    with pytest.raises(RunError, match="is labelled in full already"):
        curate(full, CurationRequest("label", [name], confirmed=True))
    curate(full, CurationRequest("undo", []))
    assert int(Run(run.folder).labels[name].isna().sum()) == left
    other = next(str(row.name) for row in run.features.itertuples() if row.look and row.name != name)
    with pytest.raises(BudgetExhausted):
        curate(Run(run.folder), CurationRequest("label", [other], confirmed=True, budget="0.001"))


def test_lists_for_enrichments_leave_out_what_was_only_looked_at(run: Run) -> None:
    names = {feature.name for feature in read_features(str(run.folder))}
    assert names == set(run.features[run.features["look"] == ""]["name"])
    looked = next(str(row.name) for row in run.features.itertuples() if row.look)
    curate(run, CurationRequest("label", [looked], confirmed=True))
    assert looked in {feature.name for feature in read_features(str(run.folder))}


def test_exports_hold_the_labels_that_are_known(tmp_path: Path, run: Run) -> None:
    written = export(run, ["wide-csv"], out=tmp_path / "export")
    wide = pd.read_csv(next(path for path in written if path.suffix == ".csv"))
    looked = [str(row.name) for row in run.features.itertuples() if row.look]
    assert wide[looked].isna().sum().sum() == run.labels[looked].isna().sum().sum() > 0


def test_the_examples_outside_the_working_set_are_not_labelled_either(tmp_path: Path) -> None:
    run = discover(tmp_path, per_question=4, look=20, elicit_on=60, label_rest=True)
    looked = run.features[run.features["look"] != ""]["name"]
    assert len(looked)
    others = [name for name in run.labels.index if name not in (run.summary.dataset.compared_ids or [])]
    assert run.labels.loc[others, looked].isna().all().all()
    assert run.labels.drop(columns=looked).notna().all().all()


def test_defaults_are_the_papers_for_its_strategies_and_for_people(tmp_path: Path) -> None:
    def resolved(**changed: Any) -> tuple[int | None, int | None]:
        made = settings(tmp_path, **changed).resolved(100)
        assert (made.look_every is not None) == bool(made.look)
        assert made.resolved(100) == made, "what run.json records stays as it is"
        return made.per_question, made.look

    openai = "openai:gpt-4o-mini"
    assert resolved() == (1, 0)
    assert resolved(oracle="human") == (1, 0)
    assert resolved(oracle=openai) == resolved(oracle="vlm:m") == (3, 36)
    assert resolved(oracle="contrastive") == (3, 0)
    assert resolved(oracle=openai, strategy="adaptive-triple") == (1, 0)
    assert resolved(oracle=openai, labeller="human") == resolved(oracle=openai, escalate=0.1) == (3, 0)
    assert resolved(oracle=openai, provider_batch=True) == (3, 0)
    assert resolved(oracle="human", labeller=openai) == (1, 36)
    with pytest.raises(UsageError, match="people are asked for one feature at a time"):
        resolved(oracle="human", per_question=2)


def test_other_looks_are_another_run(found: Path, run: Run) -> None:
    assert run.summary.settings["look_every"] == 10
    with pytest.raises(RunError, match=r"holds another run \(with look-every 10\)"):
        discover(found, per_question=4, look=48, look_every=20)
    with pytest.raises(UsageError, match="--look-every 10 is for looks: give --look 36 too"):
        prepare(settings(found, look_every=10))


def test_features_that_repeat_others_are_merged_in_bulk_for_nothing(run: Run) -> None:
    twins = run.features[run.features["twin"].str.startswith("same as ")]
    assert len(twins), "zoo has attributes that select nearly the same animals"
    done = curate(run, CurationRequest("duplicates", [], confirmed=True))
    merged = Run(run.folder)
    assert set(done.data["gone"]) == set(twins["name"])
    assert done.data["calls"] == 0
    assert set(merged.features["name"]) == set(run.features["name"]) - set(twins["name"])
    for first, others in json.loads((run.folder / "curation.jsonl").read_text())["arguments"]["into"].items():
        assert merged.labels[first].notna().sum() >= run.labels[[first, *others]].notna().sum().max()
    nothing = curate(merged, CurationRequest("duplicates", [], confirmed=True))
    assert (nothing.data["done"], nothing.data["gone"]) == (False, [])
    assert nothing.lines[0].startswith("no feature repeats another")
    assert len(read_log(run.folder)) == 1
    curate(merged, CurationRequest("undo", []))
    assert len(Run(run.folder).features) == len(run.features)
