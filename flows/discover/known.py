"""Features that a user gives: from a run folder as curated, from a CSV file, or written by hand. What is known of their
labels is taken from a column of the data set or from the run; the rest is asked."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from twothirds.discovery import UNKNOWN, Labels
from twothirds.flows.errors import UsageError
from twothirds.models import Feature, KnownLabelsOf, digest_of, in_turn
from twothirds.reports import Run
from twothirds.reports.run import RunError, RunSummary, restore
from twothirds.sources import Columns, Dataset, DatasetError, Example, iter_examples, read_metadata

REMEDY = "give a run folder, a CSV file with the columns name and definition, or 'name: definition; name: definition'"


def read_features(text: str, option: str = "--features") -> list[Feature]:
    """Raises UsageError, or RunError for a run folder that cannot be read."""
    path = Path(text)
    if os.path.isdir(text):
        found = _of_run(path)
    elif os.path.isfile(text):
        found = _of_csv(path, option)
    elif text.endswith(".csv") or (os.sep in text and ":" not in text):
        raise UsageError(f"{option} {text!r} is not there: {REMEDY}")
    else:
        found = _by_hand(text)
    if not found:
        raise UsageError(f"{option} {text!r} names no feature: {REMEDY}")
    found = list(dict.fromkeys(found))
    names = [feature.name for feature in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{option} {text!r} names {twice!r} twice, with two definitions: keep one")
    return found


def with_run_exemplars(text: str, features: Sequence[Feature], models_see: int) -> list[Feature]:
    """The features of a run with examples that show what is meant: those that they were found by, unless the labels say
    otherwise by now, and some whose label people decided. Raises UsageError where models cannot see any."""
    if not os.path.isdir(text):
        if models_see:
            raise UsageError(f"--exemplars {models_see} needs the folder of a run, and --features {text!r} is none")
        return list(features)
    findings, summary = Run(Path(text)).findings, RunSummary.read(Path(text))
    sides = {found.name: findings.exemplars(found) for found in findings.found}
    wanted = {name for exemplars in sides.values() for side in exemplars for name in side}
    there = {example.id: example for example in _examples_of(summary) if example.id in wanted}
    if models_see and wanted and not there:
        raise UsageError(
            f"--exemplars {models_see} shows examples of {summary.settings['dataset']}, which cannot be read: put it "
            "back, or leave the option out"
        )
    shown = {
        name: in_turn(*([there[id_] for id_ in side if id_ in there] for side in exemplars))
        for name, exemplars in sides.items()
    }
    return [replace(feature, exemplars=shown[feature.name], models_see=models_see) for feature in features]


def about_of(text: str) -> str:
    """What the run was told about its data, if the text names a run folder."""
    try:
        return str(RunSummary.read(Path(text)).settings.get("about", "")) if os.path.isdir(text) else ""
    except RunError:
        return ""


def _of_run(path: Path) -> list[Feature]:
    """Without those that are not labelled in full: they are not wanted, or repeat another one."""
    rows = Run(path).features.itertuples(index=False)
    return [Feature(str(row.name), str(row.definition)) for row in rows if not row.look]


def _of_csv(path: Path, option: str) -> list[Feature]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "name" not in (rows.fieldnames or ()):
                raise UsageError(f"{option} {str(path)!r} has no column 'name': {REMEDY}")
            return [
                Feature(restore(name), restore((row.get("definition") or "").strip()))
                for row in rows
                if (name := (row["name"] or "").strip())
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is not a CSV table in UTF-8"
        raise UsageError(f"{option} {str(path)!r} cannot be read ({reason}): {REMEDY}") from None


def _by_hand(text: str) -> list[Feature]:
    pairs = (item.partition(":") for item in text.split(";"))
    return [Feature(name.strip(), definition.strip()) for name, _, definition in pairs if name.strip()]


_VALUES = dict.fromkeys(("1", "true", "yes", "y", "t"), 1) | dict.fromkeys(("0", "false", "no", "n", "f"), 0)
_VALUES |= {"": UNKNOWN}


@dataclass(frozen=True, eq=False)
class KnownFeatureInput:
    """A feature to start with. `labels` are of every example of the data set, unknown where the oracle is asked."""

    feature: Feature
    labels: Labels
    source: str = ""  # of the labels: a column or a run, in words; empty where all are asked

    def completed(self, labels: Labels, source: str) -> KnownFeatureInput:
        """With further labels where none are known yet."""
        more = (self.labels == UNKNOWN) & (labels != UNKNOWN)
        if not more.any():
            return self
        joined = np.where(more, labels, self.labels).astype(np.int8)
        return KnownFeatureInput(self.feature, joined, f"{self.source}, {source}" if self.source else source)

    def with_exemplars(self, examples: Sequence[Example], models_see: int) -> KnownFeatureInput:
        """Some examples whose label is known show what is meant where labels are asked."""
        having, lacking = ((examples[row] for row in np.flatnonzero(self.labels == value).tolist()) for value in (1, 0))
        shown = replace(self.feature, exemplars=in_turn(having, lacking), models_see=models_see)
        return replace(self, feature=shown)

    def to_json(self) -> list[Any]:
        return [self.feature.name, self.feature.definition, self.source.partition(" ")[0], self.labels.tolist()]


def read_known(text: str, dataset: Dataset) -> tuple[tuple[KnownFeatureInput, ...], list[str]]:
    """The features of `--known`, and remarks on where their labels do not come from. Raises UsageError or RunError."""
    features, n = read_features(text, "--known"), len(dataset.examples)
    columns, remarks = _columns_of(dataset, features)
    of_run = _run_labels(Path(text), dataset) if os.path.isdir(text) else {}
    nothing = np.full(n, UNKNOWN, np.int8)
    known = (columns.get(feature.name) or KnownFeatureInput(feature, nothing) for feature in features)
    by_run = f"run {Path(text).name}"
    return tuple(feature.completed(of_run.get(feature.feature.name, nothing), by_run) for feature in known), remarks


def digest_of_known(known: Sequence[KnownFeatureInput]) -> str:
    """Of all that decides what is asked next; empty where nothing is given."""
    return digest_of([feature.to_json() for feature in known]) if known else ""


def _columns_of(dataset: Dataset, features: Sequence[Feature]) -> tuple[dict[str, KnownFeatureInput], list[str]]:
    """By name, the features that a column of yes and no bears the name of."""
    table = read_metadata(dataset)
    by_name = {_folded(str(column)): column for column in table.columns}
    found, remarks = {}, []
    for feature in features:
        column = by_name.get(_folded(feature.name))
        if column is None:
            continue
        labels = _yes_and_no(table[column].tolist())
        if labels is None:
            remarks.append(
                f"column {column!r} holds other values than yes and no: labels of {feature.name!r} are asked"
            )
        else:
            found[feature.name] = KnownFeatureInput(feature, labels, f"column {column}")
    return found, remarks


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())


def _yes_and_no(values: Sequence[object]) -> Labels | None:
    """None where some value is neither, or none is there."""
    labels = [_VALUES.get(_word(value)) for value in values]
    known = [value for value in labels if value is not None]
    return np.array(known, np.int8) if len(known) == len(labels) and max(known) != UNKNOWN else None


def _word(value: object) -> str:
    if value is None or value != value:  # NaN
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value).strip().casefold()


def _run_labels(folder: Path, dataset: Dataset) -> dict[str, Labels]:
    """Of the run's features, for the examples of the data set: those of the same content have the same labels. What the
    run only predicted is not known."""
    run = Run(folder)
    findings = run.findings
    if run.summary.dataset.digest == dataset.digest:
        id_of = {example.digest: example.id for example in dataset.examples}
    else:
        id_of = {example.digest: example.id for example in _examples_of(run.summary)}
    rows = {name: row for row, name in enumerate(findings.ids)}
    places = np.array([rows.get(id_of.get(example.digest, ""), -1) for example in dataset.examples], np.intp)
    known = {found.name: np.where(found.predicted, np.int8(UNKNOWN), found.labels) for found in findings.found}
    return {name: np.where(places >= 0, labels[places], np.int8(UNKNOWN)) for name, labels in known.items()}


def _examples_of(summary: RunSummary) -> Iterator[Example]:
    """Of the data set of a run, as far as it can be read; what cannot be compared by content is asked."""
    columns = Columns(*(summary.settings.get(f"{kind}_column") for kind in ("id", "text", "image")))
    try:
        for found in iter_examples(str(summary.settings["dataset"]), columns):
            if isinstance(found, Example):
                yield found
    except DatasetError:
        return


def known_labels(known: Sequence[KnownFeatureInput], examples: Sequence[Example]) -> KnownLabelsOf:
    """The labels that nobody need be asked for."""
    return {
        (feature.feature, examples[row].digest): (bool(feature.labels[row]), feature.source)
        for feature in known
        for row in np.flatnonzero(feature.labels != UNKNOWN).tolist()
    }
