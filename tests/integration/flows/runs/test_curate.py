"""The log beside a run: changes are kept, undone, and used by whoever reads the run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.support.run_folders import make_run, random_matrix
from twothirds.reports.curation.log import effective, plan_change, read_log, record_change, undo
from twothirds.reports.finished_run import Run
from twothirds.reports.run.files import RunError

IDS = [f"e{number}" for number in range(25)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "run", str(tmp_path / "none"), IDS, ["a", "b", "c"], random_matrix(3, 25))


def test_what_was_discovered_stays_as_it_is(run: Run) -> None:
    before = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    record_change(run, plan_change(run, "drop", {"names": ["a"]}))
    after = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    assert after.keys() - before.keys() == {"curation.jsonl"}
    assert before == {name: after[name] for name in before}


def test_features_and_labels_are_the_curated_ones(run: Run) -> None:
    changed = record_change(run, plan_change(run, "rename", {"name": "b", "to": "bee"}))
    assert changed.features["name"].tolist() == ["a", "bee", "c"]
    assert changed.features["order"].tolist() == [1, 2, 3]
    pd.testing.assert_series_equal(changed.labels["bee"], run.labels["b"], check_names=False)


def test_features_that_discover_told_apart_are_no_twins_because_another_one_changed(tmp_path: Path) -> None:
    matrix = random_matrix(4, 60, unknown=0.0)
    matrix[1] = matrix[0]
    run = make_run(tmp_path / "run", str(tmp_path / "none"), [f"e{n}" for n in range(60)], [*"abcd"], matrix)
    told_apart = pd.read_csv(run.folder / "features.csv").assign(twin="")  # as where a model says that they differ
    told_apart.to_csv(run.folder / "features.csv", index=False)
    changed = record_change(Run(run.folder), plan_change(Run(run.folder), "drop", {"names": ["d"]}))
    assert changed.features["twin"].tolist() == ["", "", ""]
    changed = record_change(changed, plan_change(changed, "rename", {"name": "b", "to": "bee"}))
    assert changed.features["twin"].tolist() == ["", "same as a", ""], "under another name nobody has judged it"


def test_undo_brings_everything_back_one_step_at_a_time(run: Run) -> None:
    first = record_change(run, plan_change(run, "rename", {"name": "b", "to": "bee"}))
    second = record_change(first, plan_change(first, "drop", {"names": ["a"]}))
    assert undo(second).action == "drop"
    pd.testing.assert_frame_equal(Run(run.folder).labels, first.labels)
    assert undo(Run(run.folder)).action == "rename"
    pd.testing.assert_frame_equal(Run(run.folder).labels, run.labels)
    pd.testing.assert_frame_equal(Run(run.folder).features, run.features, check_dtype=False)
    with pytest.raises(RunError, match="no change to undo"):
        undo(Run(run.folder))
    assert [entry.action for entry in read_log(run.folder)] == ["rename", "drop", "undo", "undo"]
    assert effective(read_log(run.folder)) == []


def test_votes_asked_for_a_change_decide_its_labels(run: Run) -> None:
    change = plan_change(run, "split", {"name": "a", "into": ["x", "y"]})
    asked = change.asks[0].ids
    votes = {name: (2, 1, 0, 0) if place % 2 else (0, 2, 0, 0) for place, name in enumerate(asked)}
    changed = record_change(run, change, {"x": votes}, cost_usd=0.5)
    for place, name in enumerate(asked):
        assert changed.labels["x"][name] == place % 2
        assert changed.labels["y"][name] is pd.NA
    assert changed.findings.found[0].vote_counts.yes[IDS.index(asked[1])] == 2
    others = [name for name in IDS if name not in asked]
    assert set(changed.labels["x"][others]) <= {0, pd.NA}
    assert read_log(run.folder)[0].cost_usd == 0.5


def test_a_log_that_does_not_fit_says_how_to_go_on(run: Run) -> None:
    entry = {"at": "2026-01-01", "action": "drop", "arguments": {"names": ["zebra"]}}
    (run.folder / "curation.jsonl").write_text(json.dumps(entry) + "\n")
    with pytest.raises(RunError, match=r"does not fit this run any more .*'zebra'.*undo"):
        _ = Run(run.folder).labels
    (run.folder / "curation.jsonl").write_text("{broken\n")
    with pytest.raises(RunError, match="cannot be read"):
        _ = Run(run.folder).labels


def test_the_report_marks_what_was_changed_by_hand(run: Run) -> None:
    changed = record_change(run, plan_change(run, "rename", {"name": "b", "to": "bee"}))
    page = changed.report().path.read_text(encoding="utf-8")
    assert "renamed from “b”" in page
    assert "Curated by hand" in page
