"""Corrections from the command line to exports, tables of enrichment and the next discovery: real parts, one store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest

from tests.support.growing_worlds import World, night, table
from twothirds.flows.cli.app import main
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.runs import export
from twothirds.flows.runs.curate import CurationRequest, curate
from twothirds.reports.finished_run import Run

ORACLE = "simulated:salience?flip=0.15&price=0.001"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 30)


def discovered(world: World, **changed: Any) -> Run:
    settings = {
        "dataset": world.spec,
        "oracle": ORACLE,
        "votes": 3,
        "queries": 8,
        "store": str(world.folder / "store.sqlite"),
        "out": str(world.folder / "run"),
    }
    run_discovery(prepare(DiscoverSettings.model_validate(settings | changed)), run_id=str(uuid4()))
    return Run(world.folder / "run")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    status = main([*words])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    return captured.out


def error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    status = main([*words])
    captured = capsys.readouterr()
    assert status == 2, captured.out
    return captured.err


def test_doubtful_labels_are_exported_filled_in_and_taken_over(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = discovered(world)
    export(run.folder, ["doubtful"])
    path = run.folder / "export" / "doubtful.csv"
    doubtful = pd.read_csv(path)
    assert len(doubtful) > 4
    doubtful["corrected"] = ["yes", "no", "1", *[None] * (len(doubtful) - 3)]
    doubtful.to_csv(path, index=False)
    printed = said(capsys, "labels", str(run.folder), "import", str(path), "--by", "Ann")
    assert "3 corrections by Ann" in printed
    assert f"{len(doubtful) - 3} lines without a correction" in printed
    after = Run(run.folder)
    for row, label in zip(doubtful.head(3).itertuples(), (1, 0, 1), strict=True):
        assert after.labels[str(row.feature)][str(row.id)] == label
    assert "0 corrections by Ann" in said(capsys, "labels", str(run.folder), "import", str(path), "--by", "Ann")
    export(after.folder, ["doubtful", "tidy-parquet", "wide-csv", "jsonl", "card"])
    assert len(pd.read_csv(path)) == len(doubtful) - 3, "what a person has looked at is not listed again"
    tidy = pd.read_parquet(path.parent / "tidy.parquet")
    assert (tidy["source"] == "corrected").sum() == tidy["by"].eq("Ann").sum() == 3
    assert "## Labels corrected by people" in (path.parent / "README.md").read_text(encoding="utf-8")
    listed = json.loads(said(capsys, "labels", str(run.folder), "list", "--json"))
    assert {(one["corrected_by"], one["label"]) for one in listed} == {("Ann", 0), ("Ann", 1)}


def test_bad_corrections_are_one_line_and_change_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run = discovered(world)
    name, folder = str(run.features["name"][0]), str(run.folder)
    tables = {
        "unknown.csv": f"id,feature,corrected\ne000001,{name},yes\nnobody,{name},no\n",
        "words.csv": f"id,feature,corrected\ne000001,{name},perhaps\n",
        "empty.csv": f"id,feature,corrected\ne000001,{name},\n",
        "columns.csv": "id,corrected\ne000001,yes\n",
    }
    for file, content in tables.items():
        (world.folder / file).write_text(content)
    words = {
        "unknown.csv": "no example 'nobody'",
        "words.csv": "line 2",
        "empty.csv": "nothing in its column 'corrected'",
        "columns.csv": "no column 'feature'",
        "missing.csv": "cannot be read",
    }
    for file, message in words.items():
        assert message in error(capsys, "labels", folder, "import", str(world.folder / file), "--by", "Ann")
    assert "no label" in error(capsys, "labels", folder, "set", "e000001", name, "maybe")
    assert "no feature" in error(capsys, "labels", folder, "set", "e000001", "zebra stripes", "yes")
    assert "unknown action" in error(capsys, "labels", folder, "paint")
    assert "no label was corrected" in said(capsys, "labels", folder, "list")


def test_a_correction_holds_through_discovering_curating_and_enriching_again(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run = discovered(world)
    name, example = str(run.features["name"][0]), "e000004"
    label = 0 if run.labels[name][example] == 1 else 1
    said(capsys, "labels", str(run.folder), "set", example, name, "yes" if label else "no", "--by", "Ann")

    run = discovered(world, replace=True)  # the same answers, written again
    assert run.labels[name][example] == label
    again = discovered(world, replace=True, seed=1, queries=10)  # other questions, other features perhaps
    if name in again.labels.columns:
        assert again.labels[name][example] == label
    run = discovered(world, replace=True)

    shared: dict[str, Any] = {"features": str(run.folder), "oracle": ORACLE, "votes": 3}
    first = night(world, **shared)
    assert table(world)[name][example] == label
    assert table(world)[f"{name} (by)"].dropna().to_dict() == {example: "Ann"}
    assert first["corrected_labels"] == 1
    assert night(world, **shared)["version"] == first["version"], "a night without news changes nothing"
    night(world, features=str(run.folder), oracle="simulated?price=0.002", votes=1, backfill=True)
    assert table(world)[name][example] == label, "another voter does not overrule a person"
    world.texts["r000004"] = world.texts.pop(example)
    world.write()
    night(world, features=str(run.folder), oracle="simulated?price=0.002", votes=1)
    assert table(world)[name]["r000004"] == label, "it is the content that a person has seen"

    curate(run, CurationRequest("rename", [name, "other words"], confirmed=True))
    assert Run(run.folder).labels["other word"][example] == label
    curate(Run(run.folder), CurationRequest("undo", []))
    said(capsys, "labels", str(run.folder), "set", example, name, "clear", "--by", "Bob")
    assert Run(run.folder).labels[name][example] != label
    filled = night(world, features=str(run.folder), oracle="simulated?price=0.002", votes=1)
    assert filled["filled"] == 1, "it is asked again, once"
    assert filled["corrected_labels"] == 0
    assert night(world, features=str(run.folder), oracle="simulated?price=0.002", votes=1)["filled"] == 0


def test_what_is_corrected_of_a_new_example_is_not_asked(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run = discovered(world)
    names = [str(name) for name in run.features["name"]]
    for name in names[:2]:
        said(capsys, "labels", str(run.folder), "set", "e000000", name, "yes", "--by", "Ann")
    paid = night(world, features=str(run.folder), oracle="simulated?price=0.002", votes=1)["paid_calls"]
    assert paid == 30 * len(names) - 2
