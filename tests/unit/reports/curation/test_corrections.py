"""Labels that people correct outrank all others and stay with what they are about, whatever is done to the features."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.run_folders import HOSTILE, make_run, random_matrix
from twothirds.discovery.questions import UNKNOWN
from twothirds.reports.curation.corrections import LabelEdit, checked_by_people, read_corrections, record_corrections
from twothirds.reports.curation.events import StaleEdit, append_events, read_events
from twothirds.reports.curation.log import plan_change, read_log, record_change, undo
from twothirds.reports.export.origins import Marks, of_run
from twothirds.reports.export.tables import doubtful_table, json_rows, tidy_table, wide_table
from twothirds.reports.finished_run import Run
from twothirds.reports.run.files import RunError
from twothirds.reports.versions.table import Column, CorrectedCell, TableSchema, VersionedTable
from twothirds.reports.versions.table_file import read_table, write_table

IDS = [f"e{number}" for number in range(9)]
NAMES = ["a", "b", "c", "d"]


def run_in(folder: Path, seed: int = 0, names: list[str] = NAMES) -> Run:
    return make_run(folder, "none", IDS, names, random_matrix(len(names), len(IDS), seed, unknown=0.1), seed=seed)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_in(tmp_path / "run")


def correct(run: Run, example: str, feature: str, label: int | None, by: str = "Ann", **more: Any) -> Run:
    record_corrections(run, Run(run.folder).findings, [LabelEdit(example, feature, label)], by, **more)
    return Run(run.folder)


def change(run: Run, action: str, **arguments: Any) -> Run:
    run = Run(run.folder)
    return record_change(run, plan_change(run, action, arguments))


def label_of(run: Run, feature: str, example: str) -> int | None:
    value = Run(run.folder).labels[feature][example]
    return None if value is pd.NA else int(value)


def test_a_correction_outranks_the_votes_is_named_and_can_be_taken_back(run: Run) -> None:
    before = label_of(run, "a", "e0")
    other = 0 if before else 1
    after = correct(run, "e0", "a", other)
    assert label_of(run, "a", "e0") == other
    found = after.findings.found[0]
    assert (found.corrected[0].by, found.corrected[0].before) == ("Ann", UNKNOWN if before is None else before)
    assert not found.doubtful[0]
    assert found.vote_counts.votes.tolist() == run.findings.found[0].vote_counts.votes.tolist(), (
        "what the oracle said stays"
    )
    correct(run, "e0", "a", None, by="Bob")
    assert label_of(run, "a", "e0") == before
    assert [(one.by, one.label) for one in read_corrections(run.folder)] == [("Ann", other), ("Bob", None)]


def test_what_says_nothing_new_is_not_written(run: Run) -> None:
    correct(run, "e0", "a", 1)
    correct(run, "e0", "a", 1)
    correct(run, "e1", "a", None)
    assert len(read_corrections(run.folder)) == 1
    correct(run, "e0", "a", 1, by="Bob")  # somebody else who says the same
    assert len(read_corrections(run.folder)) == 2


@pytest.mark.parametrize(
    ("example", "feature", "by", "said"),
    [("e99", "a", "Ann", "no example 'e99'"), ("e0", "aa", "Ann", "no feature 'aa'"), ("e0", "a", " ", "--by")],
)
def test_what_is_not_there_cannot_be_corrected(run: Run, example: str, feature: str, by: str, said: str) -> None:
    with pytest.raises(RunError, match=said):
        correct(run, example, feature, 1, by=by)
    assert not read_corrections(run.folder)


def test_a_label_that_somebody_else_corrected_meanwhile_is_not_overwritten_unseen(run: Run) -> None:
    correct(run, "e0", "a", 1)
    with pytest.raises(StaleEdit, match="'e0' 'a' yes, by Ann"):
        correct(run, "e0", "a", 0, by="Bob", seen=0)
    correct(run, "e1", "a", 0, by="Bob", seen=0)  # another label
    correct(run, "e0", "a", 0, by="Bob", seen=2)
    assert label_of(run, "a", "e0") == 0


def test_a_change_of_features_that_others_made_meanwhile_is_not_built_upon_unseen(run: Run) -> None:
    first, second = (plan_change(run, "rename", {"name": "a", "to": to}) for to in ("x", "y"))
    record_change(run, first, by="Ann", seen=0)
    with pytest.raises(StaleEdit, match=r"rename .*by Ann"):
        record_change(run, second, by="Bob", seen=0)
    with pytest.raises(StaleEdit):
        undo(run, seen=0)
    assert len(read_log(run.folder)) == 1


def test_what_people_corrected_is_neither_asked_again_nor_paid_for(run: Run) -> None:
    corrected = correct(correct(run, "e0", "a", 1), "e1", "a", 0)
    change_ = plan_change(corrected, "define", {"name": "a", "definition": "other words"})
    assert not {"e0", "e1"} & set(change_.asks[0].ids)
    assert change_.kept == {"a": 2}
    assert "2 of them corrected by people" in change_.explained()[0]
    split = plan_change(corrected, "split", {"name": "a", "into": ["x", "y"]})
    for ask in split.asks:
        assert "e0" in ask.ids, "which of the two it has nobody has said"
        assert "e1" not in ask.ids


def test_parts_of_what_a_person_says_is_lacking_are_lacking(run: Run) -> None:
    correct(correct(run, "e0", "a", 0), "e1", "a", 1)
    change(run, "split", name="a", into=["x", "y"])
    assert [label_of(run, name, "e0") for name in ("x", "y")] == [0, 0]
    assert [label_of(run, name, "e1") for name in ("x", "y")] == [None, None]
    undo(Run(run.folder))
    assert (label_of(run, "a", "e0"), label_of(run, "a", "e1")) == (0, 1)


def test_a_predicted_label_that_was_corrected_is_no_longer_predicted(run: Run) -> None:
    from dataclasses import replace

    from twothirds.reports.curation.corrections import corrected

    findings = run.findings
    chances = np.full(len(IDS), np.nan)
    chances[[0, 1]] = 0.9, 0.2
    partly = replace(findings, found=[replace(findings.found[0], chances=chances), *findings.found[1:]])
    correct(run, "e0", "a", 0)
    found = corrected(partly, read_corrections(run.folder)).found[0]
    assert np.flatnonzero(found.predicted).tolist() == [1]
    assert found.labels[0] == 0


def test_corrected_examples_show_what_is_meant_first(run: Run) -> None:
    correct(correct(run, "e7", "a", 1), "e8", "a", 0)
    findings = Run(run.folder).findings
    having, lacking = findings.exemplars(findings.found[0])
    assert (having[0], lacking[0]) == ("e7", "e8")
    assert not set(having) & set(lacking)


def test_a_question_that_labels_contradicted_is_right_once_they_are_corrected(run: Run) -> None:
    asked = run.findings.found[0].asked
    assert asked is not None
    correct(run, asked.having[0], "a", 0)
    assert not Run(run.folder).findings.found[0].consistent
    correct(run, asked.having[0], "a", 1)
    assert Run(run.folder).findings.found[0].consistent


def test_exports_say_who_corrected_what(run: Run) -> None:
    assert "a (by)" not in wide_table(of_run(run)).columns, "nothing changes where nothing is corrected"
    before = label_of(run, "a", "e0")
    after = correct(run, "e0", "a", 0 if before else 1, by=HOSTILE[0])
    export = of_run(after)
    tidy = tidy_table(export).set_index(["feature", "id"])
    assert tidy.loc[("a", "e0"), "source"] == "corrected"
    assert tidy.loc[("a", "e0"), "by"] == HOSTILE[0]
    assert tidy["by"].notna().sum() == 1
    wide = wide_table(export).set_index("id")
    assert wide.loc["e0", "a (by)"] == HOSTILE[0]
    assert "b (by)" not in wide.columns
    assert json_rows(export)[0]["corrected"]["a"] == HOSTILE[0]
    assert not ((doubtful_table(export)[["id", "feature"]] == ["e0", "a"]).all(axis=1)).any()


def test_agreement_counts_what_people_left_and_what_they_turned_over(run: Run) -> None:
    known = [name for name in IDS if label_of(run, "a", name) is not None][:3]
    for name in known[:2]:
        correct(run, name, "a", label_of(run, "a", name))
    correct(run, known[2], "a", 0 if label_of(run, "a", known[2]) else 1, by="Bob")
    checked = checked_by_people(Run(run.folder).findings.found)
    assert (checked.people, checked.labels, checked.confirmed, checked.turned) == (2, 3, 2, 1)
    assert checked.agreement == pytest.approx(2 / 3)
    page = Run(run.folder).report().path.read_text(encoding="utf-8")
    assert "2 people looked at 3 labels" in page


OPERATIONS = st.one_of(
    st.tuples(st.just("correct"), st.sampled_from(IDS), st.integers(0, 5), st.sampled_from([0, 1, 1, 0, None])),
    st.tuples(st.just("rerun"), st.integers(1, 9), st.booleans()),
    st.tuples(st.just("rename"), st.integers(0, 5)),
    st.tuples(st.just("define"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("merge"), st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.just("drop"), st.integers(0, 5)),
    st.tuples(st.just("undo")),
    st.tuples(st.just("enrich"), st.integers(0, 9)),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OPERATIONS, max_size=12))
def test_corrections_survive_any_sequence_of_rerun_enrich_curate_undo_and_export(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[Any, ...]]
) -> None:
    """The model: of each feature as discovered and each example the last word of a person. A feature that was made of
    one discovered feature alone has that label; of one that was merged, only what its parts agree on is given."""
    Played(tmp_path_factory.mktemp("run")).play(operations)


class Played:
    def __init__(self, folder: Path) -> None:
        self.run = run_in(folder)
        self.said: dict[tuple[frozenset[str], str], tuple[int, int | None]] = {}  # by parts and example
        self.parts: list[dict[str, frozenset[str]]] = [{name: frozenset({name}) for name in NAMES}]  # as a stack
        self.log = b""
        self.table = VersionedTable(TableSchema(1, tuple(Column(name, "", 0) for name in NAMES), {"kind": "x"}, 1))
        self.step = 0

    def play(self, operations: list[tuple[Any, ...]]) -> None:
        for name, *arguments in operations:
            self.step += 1
            getattr(self, name)(*arguments)
            self.check()

    def feature(self, number: int) -> str | None:
        names = list(self.parts[-1])
        return names[number % len(names)] if names else None

    def correct(self, example: str, number: int, label: int | None) -> None:
        if (name := self.feature(number)) is not None:
            digests = {one: f"{place:064x}" for place, one in enumerate(IDS)}
            correct(self.run, example, name, label, digests=digests)
            self.said[self.parts[-1][name], example] = (self.step, label)

    def rerun(self, seed: int, more: bool) -> None:
        run_in(self.run.folder, seed, [*NAMES, "e"] if more else NAMES)
        for parts in self.parts:
            parts.pop("e", None)
            if more and not any("e" in of for of in parts.values()):
                parts["e"] = frozenset({"e"})

    def rename(self, number: int) -> None:
        if (name := self.feature(number)) is not None and name != "e":
            self.change("rename", {name: [f"n{self.step}"]}, name=name, to=f"n{self.step}")

    def define(self, number: int, keep: bool) -> None:
        if (name := self.feature(number)) is not None and name != "e":
            self.change("define", {}, name=name, definition=f"of step {self.step}", keep=keep)

    def merge(self, one: int, other: int) -> None:
        names = [self.feature(one), self.feature(other)]
        if names[0] != names[1] and "e" not in names:
            self.change("merge", {str(names[1]): [str(names[0])]}, names=names)

    def drop(self, number: int) -> None:
        if (name := self.feature(number)) is not None and name != "e":
            self.change("drop", {name: []}, names=[name])

    def change(self, action: str, becomes: dict[str, list[str]], **arguments: Any) -> None:
        change(self.run, action, **arguments)
        after: dict[str, frozenset[str]] = {}
        for name, parts in self.parts[-1].items():
            for new in becomes.get(name, [name]):
                after[new] = after.get(new, frozenset()) | parts
        self.parts.append(after)

    def undo(self) -> None:
        if len(self.parts) > 1:
            undo(Run(self.run.folder))
            had = "e" in self.parts.pop()
            self.parts[-1].pop("e", None)
            if had:
                self.parts[-1]["e"] = frozenset({"e"})

    def enrich(self, seed: int) -> None:
        """A night: what people said is taken over, and the oracle says something else about everything."""
        run = Run(self.run.folder)
        found = [(one, correction) for correction in run.corrections for one in run.findings.found]
        cells = [
            CorrectedCell(one.name, correction.digest, correction.effect_on(one)[1], correction.by, correction.at)
            for one, correction in found
            if correction.effect_on(one)[0]
        ]
        old, names = self.table.table_schema, [one.name for one in run.findings.found]
        columns = tuple(Column(name, f"{seed}", 0) for name in names)
        self.table.define(TableSchema(old.version + 1, columns, {"kind": f"{seed}"}, 1, corrections=old.corrections))
        self.table.correct(cells)
        rng = np.random.default_rng(seed)
        for place, example in enumerate(IDS):
            row = self.table.put(example, f"{place:064x}", self.table.table_schema.version)
            answers = rng.integers(0, 2, len(names)).astype(np.int8)
            self.table.set_asked(row, np.arange(len(names)), answers)
        write_table(self.run.folder / "table", self.table)
        self.table = read_table(self.run.folder / "table")
        for one in run.findings.found:
            for row, corrected in one.corrected.items():
                assert self.table.column_labels(one.name)[row] == corrected.label

    def check(self) -> None:
        path = self.run.folder / "corrections.jsonl"
        written = path.read_bytes() if path.exists() else b""
        assert written.startswith(self.log), "lines are only added"
        self.log = written
        run = Run(self.run.folder)
        assert {one.name for one in run.findings.found} == set(self.parts[-1])
        tidy = (
            tidy_table(of_run(run, marks=Marks(with_=["doubtful"]))).fillna({"source": ""}).set_index(["feature", "id"])
        )
        for name, parts in self.parts[-1].items():
            for example in IDS:
                words = [said for (of, about), said in self.said.items() if about == example and of <= parts]
                last = max(words, default=(0, None))[1]
                corrected = tidy.loc[(name, example), "source"] == "corrected" if len(tidy) else False
                assert corrected == (last is not None)
                if last is not None:
                    assert tidy.loc[(name, example), "label"] == last
                    assert run.labels[name][example] == last


def test_a_line_that_a_crash_left_unfinished_is_no_event_and_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    append_events(path, lambda _: [{"n": 1, "text": HOSTILE[6] + "\u2028\ud800"}])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n": 2, "te')
    assert [one["n"] for one in read_events(path)] == [1]
    append_events(path, lambda _: [{"n": 3}])
    assert [one["n"] for one in read_events(path)] == [1, 3]
    assert path.read_bytes().startswith(whole)
    assert read_events(path)[0]["text"] == HOSTILE[6] + "\u2028\ud800"


def test_a_damaged_log_says_what_to_do(run: Run) -> None:
    for content in ("{broken\n", "[]\n", '{"at": 1}\n'):
        (run.folder / "corrections.jsonl").write_text(content)
        with pytest.raises(RunError, match=r"corrections\.jsonl cannot be read"):
            _ = Run(run.folder).findings


def _append_many(path: Path, who: int) -> None:
    for _ in range(25):
        append_events(path, lambda log: [{"who": who, "before": len(log)}])


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(path, who)) for who in range(4)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    events = read_events(path)
    assert [one["before"] for one in events] == list(range(100))
