"""What a comparison of oracles starts from: who was asked what, and all that they said."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN, Comparison, VoteSheet
from twothirds.discovery.statistics import Resamples

LabelMatrix = NDArray[np.int8]  # features × examples


@dataclass(frozen=True, slots=True)
class Named:
    """What one oracle said when it was asked to compare."""

    verdict: str
    name: str = ""
    shown: tuple[int, ...] = ()  # positions of the examples that are said to have it


@dataclass(frozen=True, eq=False)
class Discovered:
    """What an oracle found when it was left to discover by itself."""

    names: tuple[str, ...]  # in the order of discovery
    labels: LabelMatrix  # over the sample of the study
    counting: int  # of these features, interesting and distinct
    queries: int
    usd: float  # of all its answers, those from the store included
    seconds: float  # that its answers took
    g: float
    g_curve: tuple[float, ...]
    stopped: str


@dataclass(frozen=True, eq=False)
class Rater:
    name: str
    people: bool
    identity: dict[str, Any]
    sheet: VoteSheet
    wanted: int  # votes that were asked for
    answers: int
    usd: float  # of all its votes, those from the store included
    paid_usd: float  # by this run
    seconds: float  # that its answers took
    stopped: str = ""  # why it was not asked all, where it was not
    lost: bool = False  # it stopped because it could not be reached
    compared: tuple[Named, ...] = ()
    discovered: Discovered | None = None
    warning: str = ""  # that the examples are not of the kind that it knows

    @property
    def simulated(self) -> bool:
        """Answers computed from known truth, whoever they stand for."""
        return self.identity.get("kind") == "simulated"

    @property
    def stands_for(self) -> str:
        return "simulated crowd" if self.simulated else "people" if self.people else "model"

    @property
    def terms(self) -> str:
        """How a simulated crowd answers, in words; empty for any other."""
        if not self.simulated:
            return ""
        chosen = {"crowd": self.identity.get("model"), **self.identity.get("parameters", {}), "truth": ""}  # a digest
        return ", ".join(f"{name} {value}" for name, value in chosen.items() if value not in ("", None, {}))

    @property
    def usd_per_vote(self) -> float:
        return self.usd / self.answers if self.answers else 0.0

    @property
    def votes(self) -> int:
        return int((self.sheet.votes != UNKNOWN).sum())


@dataclass(frozen=True, eq=False)
class Study:
    dataset: str
    digest: str
    total: int  # examples of the data set
    ids: tuple[str, ...]  # of the sample
    features: tuple[tuple[str, str], ...]  # name and definition
    origin: str  # where the features come from, in words
    raters: tuple[Rater, ...]
    truth: LabelMatrix | None  # of these features, UNKNOWN where the cell is empty
    annotators: str  # expert, skilled or crowd
    accuracy: float  # that is wanted
    seed: int
    draws: int  # of the bootstrap
    asked: tuple[Comparison, ...] = ()  # that every oracle was asked to compare
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    finished_at: str = ""

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.features]

    def called(self, name: str) -> str:
        """An oracle's name, with the word that its answers are computed where they are."""
        found = next((oracle for oracle in self.raters if oracle.name == name), None)
        return f"{name} (a simulated crowd)" if found is not None and found.simulated else name

    @property
    def people(self) -> Rater | None:
        return next((oracle for oracle in self.raters if oracle.people), None)

    @property
    def models(self) -> list[Rater]:
        return [oracle for oracle in self.raters if not oracle.people]

    @property
    def partial(self) -> bool:
        """An oracle was not asked all that was wanted."""
        return any(oracle.stopped for oracle in self.raters)

    @cached_property
    def resamples(self) -> Resamples:
        return Resamples(len(self.ids), [self.seed, 1], self.draws)

    def rng(self, *purpose: int) -> np.random.Generator:
        """The same for the same purpose, independent of other draws."""
        return np.random.default_rng([self.seed, *purpose])


@dataclass(frozen=True, eq=False)
class Reference:
    """What labels are measured against."""

    labels: LabelMatrix | None
    kind: str  # truth, people or none
    words: str

    @cached_property
    def shares(self) -> list[float | None]:
        """Of yes, of each feature; None where no label is known."""
        rows = [] if self.labels is None else [row[row != UNKNOWN] for row in self.labels]
        return [float((row == 1).mean()) if len(row) else None for row in rows]

    @property
    def right_without_looking(self) -> list[float | None]:
        """How often who gives a feature's more frequent label to all examples is right, feature by feature."""
        return [None if share is None else max(share, 1 - share) for share in self.shares]

    @property
    def without_looking(self) -> float | None:
        """The same as a mean over features."""
        return _mean(self.right_without_looking)

    @property
    def brier_without_looking(self) -> float | None:
        """The Brier score of who gives each feature's share of yes as the probability of every example."""
        return _mean([None if share is None else share * (1 - share) for share in self.shares])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def reference_of(study: Study) -> Reference:
    """The truth where it is known of every feature, else the people's majority, else what truth there is."""
    known = None if study.truth is None else (study.truth != UNKNOWN).any(1)
    if study.truth is not None and known is not None and known.all() and len(known):
        return Reference(study.truth, "truth", "the known truth")
    if study.people is not None:
        return Reference(study.people.sheet.labels, "people", f"the majority of {study.people.name}")
    if study.truth is not None and known is not None and known.any():
        return Reference(study.truth, "truth", f"the known truth of {int(known.sum())} of {len(known)} features")
    return Reference(None, "none", "nothing: neither truth nor people's labels are known")
