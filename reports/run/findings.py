"""The features of a run with all that is known of each: labels, votes, and the question that brought it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import (
    DIFFERENCE,
    UNKNOWN,
    FeatureTree,
    Labels,
    feature_tree,
    find_twin,
    interest_and_distinctness,
)
from twothirds.reports.column_names import VOTES
from twothirds.reports.label_table import LabelledFeature, LabelTable, Source
from twothirds.reports.run.answers import AnsweredComparison, VoteCounts, read_answers
from twothirds.reports.run.attributes import Attribute
from twothirds.reports.run.files import RunError
from twothirds.reports.run.folder import FEATURE_COLUMNS, RunFolder, certificates_of

if TYPE_CHECKING:
    import pandas as pd

MICRO = 1_000_000
SAME, COMPLEMENT = "same as ", "complement of "  # in the column `twin`, before the name of the other feature
KNOWN = "known"  # in place of the question, of a feature that the run started with
UNSURE_SHARE = 1 / 3  # of the votes on one label against it, from which it is doubtful
UNSURE_PROBABILITY = (0.35, 0.65)
Origin = tuple[str, ...]  # the name of a feature as discovered, and of the parts that splits have made of it
DIVIDED_SHARE = 0.2  # of a feature's labels in doubt, from which the feature is divided


@dataclass(frozen=True, slots=True)
class CorrectedLabel:
    """A person's label, which outranks all votes."""

    label: int
    by: str
    at: str
    before: int  # what the votes or a classifier said: 1, 0 or UNKNOWN


@dataclass(frozen=True, eq=False)
class FoundFeature:
    """One feature, as discovered or as curated."""

    name: str
    definition: str
    labels: Labels
    vote_counts: VoteCounts
    asked: AnsweredComparison | None  # None where the feature was made by hand
    consistent: bool  # the labels of the examples asked about show what the question asked for
    question: str
    examples: str
    made: str = ""  # how curation made it what it is
    look: str = ""  # why it was not labelled in full; empty if it was
    twin: str = ""  # "same as …" or "complement of …" an earlier feature
    repeats: bool = False  # its twin means the same, whatever the labels say: it does not count beside it
    chances: NDArray[np.floating[Any]] | None = (
        None  # of yes where a label is predicted, NaN where it was asked; None: nowhere
    )
    certificate: dict[str, Any] | None = None  # of the predicted labels, all of them as discovered
    origins: tuple[Origin, ...] = ()  # what it was made of: corrections are kept by these
    corrected: Mapping[int, CorrectedLabel] = field(default_factory=dict)  # by row
    added_by: str = ""  # who gave it while the run went on
    changes: tuple[str, ...] = ()  # what curation has made of it, with who and when

    @property
    def is_corrected(self) -> NDArray[np.bool_]:
        """Labels that a person has put right or confirmed."""
        rows = np.zeros(len(self.labels), np.bool_)
        rows[list(self.corrected)] = True
        return rows

    @property
    def uncorrected(self) -> Labels:
        """The labels as they were before any correction."""
        labels = self.labels.copy()
        for row, correction in self.corrected.items():
            labels[row] = correction.before
        return labels

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """Labels that are not the oracle's."""
        return np.zeros(len(self.labels), np.bool_) if self.chances is None else ~np.isnan(self.chances)

    @property
    def probability(self) -> NDArray[np.float64]:
        """Of yes: the classifier's where a label is predicted, else the oracle's, NaN where it gave none."""
        return (
            self.vote_counts.probability
            if self.chances is None
            else np.where(self.predicted, self.chances, self.vote_counts.probability)
        )

    @property
    def source(self) -> NDArray[np.uint8]:
        """Of each label where it comes from; one that was asked and is unknown after all votes was asked too."""
        asked = (self.vote_counts.votes > 0) | (self.labels != UNKNOWN)
        known = [self.is_corrected, self.predicted, asked]
        sources = [Source.CORRECTED, Source.PREDICTED, Source.ASKED]
        return np.select(known, sources, Source.NONE).astype(np.uint8)

    @property
    def positives(self) -> int:
        return int((self.labels == 1).sum())

    @property
    def labelled(self) -> int:
        """Examples whose label is known: what positives are counted over."""
        return int((self.labels != UNKNOWN).sum())

    @property
    def cost(self) -> int:
        return self.vote_counts.cost + (self.asked.cost if self.asked else 0)

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """Labels that were nearly otherwise: unknown after votes, narrowly voted, or an undecided probability. What a
        person has corrected is not."""
        vote_counts = self.vote_counts
        cast = vote_counts.yes + vote_counts.no
        against = np.minimum(vote_counts.yes, vote_counts.no) / np.maximum(cast, 1)
        low, high = UNSURE_PROBABILITY
        undecided = (self.probability > low) & (self.probability < high)
        asked = vote_counts.votes > 0
        doubtful: NDArray[np.bool_] = ((self.labels == UNKNOWN) & asked) | (against >= UNSURE_SHARE) | undecided
        return doubtful & ~self.is_corrected

    def contradicted(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Of a feature whose labels contradict its own question, the examples of that question; what a person has
        corrected is not."""
        if self.consistent or self.asked is None:
            return np.zeros(len(ids), np.bool_)
        asked = np.isin(np.array(ids, dtype=object), [*self.asked.examples, *self.asked.without])
        return asked & ~self.is_corrected

    @property
    def doubt_is_known(self) -> bool:
        """One vote without a probability says nothing of how sure a label is."""
        vote_counts = self.vote_counts
        return bool((vote_counts.yes + vote_counts.no >= 2).any() or (~np.isnan(vote_counts.probability)).any())

    @property
    def is_doubtful(self) -> bool:
        """Its own question contradicts it: it does not count, and exports leave it out."""
        return not self.consistent

    @property
    def is_divided(self) -> bool:
        """Many of its labels are doubtful."""
        return int(self.doubtful.sum()) > DIVIDED_SHARE * max(self.labelled, 1)


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything a report or an export needs of a run, its data set's content apart."""

    ids: list[str]
    found: list[FoundFeature]
    comparisons: list[AnsweredComparison]
    label_costs: dict[str, int]  # micro-dollars, by the name under which a feature was discovered
    working: NDArray[np.bool_]  # the examples that the discovery compared: in a large data set a random subset
    rare: float = DIFFERENCE  # share of these in which a feature must differ to count
    attributes: tuple[Attribute, ...] = ()  # made of the features by curation
    digests: Sequence[str] = ()  # of the examples' contents, where the run folder says

    @property
    def matrix(self) -> NDArray[np.int8]:
        """Features × examples."""
        if not self.found:
            return np.empty((0, len(self.ids)), np.int8)
        return np.stack([feature.labels for feature in self.found])

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """The examples with a label of any feature."""
        labelled: NDArray[np.bool_] = (self.matrix != UNKNOWN).any(axis=0)
        return labelled

    @property
    def marks(self) -> list[tuple[bool, bool]]:
        """Of each feature whether it is interesting, and whether distinct, on the examples that were compared."""
        return interest_and_distinctness(
            self.matrix[:, self.working],
            self.rare,
            repeats=[feature.repeats and feature.twin.startswith(SAME) for feature in self.found],
            doubtful=[feature.is_doubtful for feature in self.found],
        )

    @property
    def counting(self) -> int:
        """Features found that are interesting, distinct and not doubtful."""
        found = zip(self.found, self.marks, strict=True)
        return sum(all(marks) and not feature.is_doubtful and feature.question != KNOWN for feature, marks in found)

    def sampled_positives(self, feature: FoundFeature) -> int:
        """Of the examples that were compared, those that have it."""
        return int((feature.labels[self.working] == 1).sum())

    def sample_of(self, feature: FoundFeature) -> str:
        """What its marks were judged on, in words; empty where that is all examples."""
        sampled = int(self.working.sum())
        if sampled == len(self.ids):
            return ""
        return f": {self.sampled_positives(feature):,} of {sampled:,} sampled have it"

    def exemplars(self, feature: FoundFeature) -> tuple[list[str], list[str]]:
        """Examples that have the feature and some that lack it: those whose label was corrected (the latest first),
        those that it was found by, unless their labels say otherwise, and then those whose label people decided."""
        asked = feature.asked
        claims = (asked.having, asked.lacking) if asked and asked.having else ([], [])
        labelled = [{self.ids[row] for row in np.flatnonzero(feature.labels == value)} for value in (0, 1)]
        reviewed = [self.ids[row] for row in sorted(feature.vote_counts.reviewed)]
        latest = sorted(feature.corrected.items(), key=lambda item: item[1].at, reverse=True)
        sides = []
        for claimed, value in ((claims[0], 1), (claims[1], 0)):
            corrected = [self.ids[row] for row, correction in latest if correction.label == value]
            found_by = [name for name in claimed if name not in labelled[1 - value]]
            sides.append([*corrected, *found_by, *(name for name in reviewed if name in labelled[value])])
        having, lacking = (list(dict.fromkeys(side)) for side in sides)
        return having, lacking

    def tree(self, *, tolerance: float = 0.1, support: int = 4) -> FeatureTree:
        """Which features lie below which. `tolerance` is the share of exceptions allowed because labels err, `support`
        the number of examples of which it must hold."""
        if not 0 <= tolerance < 0.5:
            raise RunError(f"--tolerance {tolerance:g} is not a share of exceptions: give one from 0 to below 0.5")
        if support < 1:
            raise RunError(f"--support {support} is not a number of examples: give 1 or more")
        labels = self.matrix[:, self.labelled]
        return feature_tree(labels, names_of(self.found), tolerance=tolerance, support=support)

    def feature_table(self) -> pd.DataFrame:
        """The columns of features.csv."""
        import pandas as pd

        sampled = int(self.working.sum())
        rows = [
            {name: getattr(feature, name) for name in FEATURE_COLUMNS if hasattr(feature, name)}
            | {"order": order, "interesting": interesting, "distinct": distinct, "cost_usd": feature.cost / MICRO}
            | {"column": column, "sampled_positives": self.sampled_positives(feature), "sampled": sampled}
            for order, (feature, (interesting, distinct), column) in enumerate(
                zip(self.found, self.marks, self.table.columns, strict=True), start=1
            )
        ]
        return pd.DataFrame(rows, columns=list(FEATURE_COLUMNS))

    def provenance_table(self) -> pd.DataFrame:
        """The columns of features.csv, and what curation has made of each feature, with who and when."""
        return self.feature_table().assign(changes=["; ".join(feature.changes) for feature in self.found])

    @cached_property
    def table(self) -> LabelTable:
        """The labels with all that is known of each."""
        people = sorted({correction.by for feature in self.found for correction in feature.corrected.values()})
        who = np.zeros((len(self.found), len(self.ids)), np.uint16)
        for place, feature in enumerate(self.found):
            for row, correction in feature.corrected.items():
                who[place, row] = 1 + people.index(correction.by)
        counts = [feature.vote_counts for feature in self.found]
        return LabelTable(
            ids=self.ids,
            digests=self.digests or [""] * len(self.ids),
            features=[LabelledFeature(feature.name, feature.definition) for feature in self.found],
            value=self.matrix,
            source=np.array([feature.source for feature in self.found], np.uint8).reshape(who.shape),
            probability=np.array([feature.probability for feature in self.found], np.float32).reshape(who.shape),
            who=who,
            votes=np.array([np.stack([c.yes, c.no, c.abstained], axis=-1) for c in counts], np.uint16).reshape(
                *who.shape, len(VOTES)
            ),
            raters=["", *people],
        )

    def attribute_table(self) -> pd.DataFrame:
        """One row per example, one column of categories per attribute."""
        import pandas as pd

        index = pd.Index(self.ids, name="id")
        return pd.DataFrame({made.name: made.column(index) for made in self.attributes}, index=index)

    def corrected_table(self) -> pd.DataFrame:
        """The columns of corrected.csv: one row per label that a person has put right or confirmed."""
        import pandas as pd

        rows = [
            (
                self.ids[row],
                feature.name,
                correction.label,
                None if correction.before == UNKNOWN else correction.before,
                correction.by,
                correction.at,
            )
            for feature in self.found
            for row, correction in sorted(feature.corrected.items())
        ]
        columns = ["id", "feature", "label", "before", "corrected_by", "corrected_at"]
        return pd.DataFrame(rows, columns=columns).astype({"label": "Int8", "before": "Int8"})


def read_findings(run: RunFolder) -> Findings:
    """As discovered, before any curation. Raises RunError where the files hold what discover does not write."""
    try:
        return _read_findings(run)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise RunError(f"{run.folder} holds what discover does not write ({reason}): run discover again") from error


def _read_findings(run: RunFolder) -> Findings:
    table, labels = run.found_features, run.found_labels
    ids = list(labels.ids)
    if [feature.name for feature in labels.features] != table["name"].tolist():
        raise ValueError("features.csv and labels.parquet are of two runs")
    predicted = labels.source == Source.PREDICTED
    chances = np.where(predicted, labels.probability, np.nan)
    answers = read_answers(Path(run.folder), ids)
    first: dict[str, AnsweredComparison] = {}
    for asked in answers.comparisons:
        for named in asked.by_feature:
            if named.feature is not None:
                first.setdefault(named.feature, named)
    certificates = certificates_of(run.summary)
    found = [
        FoundFeature(
            name=str(row.name),
            definition=str(row.definition),
            labels=labels.value[place],
            vote_counts=answers.tallies.get(str(row.name)) or VoteCounts.empty(len(ids)),
            asked=first.get(str(row.name)),
            consistent=str(row.consistent) == "True",
            question=str(row.question),
            examples=str(row.examples),
            twin=str(row.twin),
            repeats=str(row.twin).startswith(SAME) and str(row.distinct) == "False",
            look=str(row.look),
            added_by=str(row.added_by),
            chances=chances[place] if predicted[place].any() else None,
            certificate=certificates.get(str(row.name)),
            origins=((str(row.name),),),
        )
        for place, row in enumerate(table.itertuples(index=False))
    ]
    costs = {name: vote_counts.cost for name, vote_counts in answers.tallies.items()}
    compared = run.summary.dataset.compared_ids
    working = np.ones(len(ids), np.bool_) if compared is None else np.isin(np.array(ids, object), compared)
    return Findings(
        ids=ids,
        found=found,
        comparisons=answers.comparisons,
        label_costs=costs,
        working=working,
        rare=run.summary.rare,
        digests=labels.digests,
    )


def names_of(found: Sequence[FoundFeature]) -> list[str]:
    return [feature.name for feature in found]


def twins_of(names: Sequence[str], labels: Sequence[Labels], judged: Sequence[bool] = ()) -> list[str]:
    """The column `twin` of features.csv, by words and labels alone: discover also knows which words are close, and may
    have asked. Of two features that are `judged` neither becomes the twin of the other."""
    return [_twin_of(n, names, labels, judged or [False] * len(names)) for n in range(len(names))]


def _twin_of(n: int, names: Sequence[str], labels: Sequence[Labels], judged: Sequence[bool]) -> str:
    others = [other for other in range(n) if not (judged[n] and judged[other])]
    twin = find_twin(names[n], labels[n], [names[other] for other in others], [labels[other] for other in others])
    if twin is None:
        return ""
    return (SAME if twin.kind == "same" else COMPLEMENT) + names[others[twin.other]]
