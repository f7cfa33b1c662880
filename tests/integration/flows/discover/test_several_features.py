"""Several features a question, and features that are not labelled in full because they repeat others, where they meet
stores, curation, exports and servers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.fake_openai import Failings, LifelikeServer
from twothirds.discovery.strategies import NARROWEST, WIDEST
from twothirds.flows.discover.known import read_features
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.profiles import PAID_PICTURES, PAID_TEXTS, Profile
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.runs import export
from twothirds.flows.runs.curate import CurationRequest, curate
from twothirds.models.oracle import BudgetExhausted
from twothirds.reports.curation import read_log
from twothirds.reports.finished_run import Run
from twothirds.reports.run.files import RunError
from twothirds.sources import load_dataset

WORDY = Failings(other_words=0.5, repeats_known=0.2, slow=0.0)
SEVERAL = Profile(queries=9, features=4)


def settings(tmp_path: Path, name: str = "run", **changed: Any) -> DiscoverSettings:
    usual: dict[str, Any] = {"dataset": "datasets/zoo", "oracle": "simulated?price=0.001"}
    places = {"store": str(tmp_path / "store.sqlite"), "out": str(tmp_path / name)}
    return DiscoverSettings.model_validate(usual | places | changed)


def discover(tmp_path: Path, name: str = "run", **changed: Any) -> Run:
    prepared = replace(prepare(settings(tmp_path, name, **changed)), profile=SEVERAL)
    run_discovery(prepared, run_id=f"{name} {changed}")
    return Run(tmp_path / name)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its store."""
    folder = tmp_path_factory.mktemp("found")
    discover(folder)
    return folder


@pytest.fixture
def run(tmp_path: Path, found: Path) -> Run:
    shutil.copytree(found / "run", tmp_path / "run")
    return Run(tmp_path / "run")


@pytest.fixture(scope="module")
def repeating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run of which some features repeat others, and lack the labels of the other examples; the server
    still answers."""
    folder = tmp_path_factory.mktemp("repeating")
    with LifelikeServer(load_dataset("datasets/zoo"), WORDY, seed=1) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075"
        chosen = settings(folder, oracle=oracle, elicit_on=60, label_rest=True, queries=8)
        run_discovery(prepare(chosen), run_id="repeating")
        yield folder


@pytest.fixture
def partly(tmp_path: Path, repeating: Path) -> Run:
    shutil.copytree(repeating / "run", tmp_path / "run")
    return Run(tmp_path / "run")


def test_a_question_brings_several_features_and_every_cent_falls_to_one(run: Run) -> None:
    table, summary = run.features, run.summary
    assert summary.per_question is not None
    assert summary.per_question.most == 4
    assert summary.features > 1.5 * summary.queries
    assert summary.per_question.features == pytest.approx(summary.features / summary.queries, abs=0.001)
    rows = [json.loads(line)["answer"] for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    paid_for_nothing = 0.001 * sum(answer["verdict"] == "none" for answer in rows)
    assert table["cost_usd"].sum() + paid_for_nothing == pytest.approx(summary.cost_usd)
    assert run.labels.notna().all().all()
    assert any(answer.get("more") for answer in rows)
    assert all(found.asked is not None and found.asked.feature == found.name for found in run.findings.found)


def test_the_same_command_again_asks_nothing_and_finds_the_same(found: Path, run: Run) -> None:
    again = discover(found, "again")
    assert again.summary.paid_calls == 0
    pd.testing.assert_frame_equal(again.labels, run.labels)
    pd.testing.assert_frame_equal(again.features, run.features)


def test_a_feature_is_labelled_on_request_and_that_can_be_undone(partly: Run) -> None:
    name, column = next((str(row.name), str(row.column)) for row in partly.features.itertuples() if row.look)
    left = int(partly.labels[column].isna().sum())
    assert left >= 41
    page = partly.report().path.read_text()
    assert "not labelled in full: same as " in page
    listed = [line for line in curate(partly, CurationRequest("list", [])).lines if f" {name} (" in line]
    assert "not labelled in full: " in listed[0]
    with pytest.raises(BudgetExhausted):
        curate(partly, CurationRequest("label", [name], confirmed=True, budget="0.000001"))
    done = curate(partly, CurationRequest("label", [name], confirmed=True, budget="1"))
    assert done.data["calls"] == left
    full = Run(partly.folder)
    assert full.labels[column].isna().sum() < left / 4
    assert full.features.set_index("name").loc[name, "look"] == ""
    with pytest.raises(RunError, match="is labelled in full already"):
        curate(full, CurationRequest("label", [name], confirmed=True))
    curate(full, CurationRequest("undo", []))
    assert int(Run(partly.folder).labels[column].isna().sum()) == left


def test_lists_for_enrichments_and_exports_leave_out_what_is_not_labelled(tmp_path: Path, partly: Run) -> None:
    lacking = {str(row.name): str(row.column) for row in partly.features.itertuples() if row.look}
    names = {feature.name for feature in read_features(str(partly.folder))}
    assert names == set(partly.features["name"]) - set(lacking)
    written = export(partly.folder, ["wide-csv"], out=tmp_path / "export")
    wide = pd.read_csv(next(path for path in written if path.suffix == ".csv"))
    shown = [column for column in lacking.values() if column in wide]
    assert wide[shown].isna().sum().sum() == partly.labels[shown].isna().sum().sum() > 0


def profile_of(tmp_path: Path, dataset: str, **changed: Any) -> Profile:
    return prepare(settings(tmp_path, dataset=dataset, **changed)).profile


def test_what_is_asked_follows_from_who_answers_and_what_a_question_costs(tmp_path: Path) -> None:
    texts, pictures = "datasets/zoo", "datasets/faces"
    paid = "openai:gpt-4o-mini?base_url=http://localhost:1/v1&price=1,1"
    free = paid.replace("1,1", "0,0")
    assert profile_of(tmp_path, pictures, oracle=paid) == PAID_PICTURES == Profile(12, 8, NARROWEST, None)
    assert profile_of(tmp_path, texts, oracle=paid) == PAID_TEXTS == Profile(24, 8, WIDEST, None)
    assert profile_of(tmp_path, pictures, oracle=paid, queries=20) == replace(PAID_PICTURES, queries=20)
    assert profile_of(tmp_path, pictures, oracle="contrastive") == Profile(35, 3, NARROWEST, 1)
    assert profile_of(tmp_path, texts, oracle=free) == Profile(35, 3, WIDEST, 1)
    assert profile_of(tmp_path, texts) == Profile(35, 1, WIDEST, 1)
    assert profile_of(tmp_path, texts, oracle="human") == Profile(35, 1, NARROWEST, 1)
    assert profile_of(tmp_path, texts, oracle="human", labeller=paid) == Profile(35, 1, NARROWEST, None)
    assert profile_of(tmp_path, texts, oracle=paid, labeller="human") == PAID_TEXTS
    assert profile_of(tmp_path, texts, oracle=paid, strategy="adaptive-triple") == Profile()
    assert profile_of(tmp_path, texts, oracle=paid, strategy="tagging") == Profile(labels_after=None)
    assert profile_of(tmp_path, texts, oracle=paid, target_g=0.1) == replace(PAID_TEXTS, labels_after=4)


def test_long_texts_are_as_dear_as_pictures(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("id,text\n" + "".join(f"e{row},{row} {'word ' * 500}\n" for row in range(5)))
    paid = "openai:gpt-4o-mini?base_url=http://localhost:1/v1&price=1,1"
    assert profile_of(tmp_path, str(table), oracle=paid) == PAID_PICTURES


def test_features_that_repeat_others_are_merged_in_bulk_for_nothing(run: Run) -> None:
    twins = run.features[run.features["twin"].str.startswith("same as ")]
    assert len(twins), "zoo has attributes that select nearly the same animals"
    done = curate(run, CurationRequest("duplicates", [], confirmed=True))
    merged = Run(run.folder)
    assert set(done.data["gone"]) == set(twins["name"])
    assert done.data["calls"] == 0
    assert set(merged.features["name"]) == set(run.features["name"]) - set(twins["name"])
    before, after = (dict(zip(a.features["name"], a.features["column"], strict=True)) for a in (run, merged))
    for first, others in json.loads((run.folder / "curation.jsonl").read_text())["arguments"]["into"].items():
        repeated = run.labels[[before[name] for name in (first, *others)]]
        assert merged.labels[after[first]].notna().sum() >= repeated.notna().sum().max()
    nothing = curate(merged, CurationRequest("duplicates", [], confirmed=True))
    assert (nothing.data["done"], nothing.data["gone"]) == (False, [])
    assert nothing.lines[0].startswith("no feature repeats another")
    assert len(read_log(run.folder)) == 1
    curate(merged, CurationRequest("undo", []))
    assert len(Run(run.folder).features) == len(run.features)
