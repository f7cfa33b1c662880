"""Which new features mean what a known one means: the oracle is asked where words and labels leave that in doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from twothirds.discovery import Closeness, Described, Duplicates, Labels, Pair, find_twin
from twothirds.flows.discover.findings import EarlierTwin, Finding, KnownFeature
from twothirds.models import Answer, Elicited, Feature, OracleError, OracleUnavailable, Same, Verdict, Votes


@dataclass
class SameQuestions:
    ask: Callable[[list[Same]], Elicited]
    answers: dict[Feature, list[Answer]] = field(default_factory=dict)  # by the new feature they were given for
    stopped: OracleError | None = (
        None  # what ends the discovery: where the oracle is gone for good, the next question tells
    )

    def __call__(self, pairs: list[Pair]) -> list[bool | None]:
        features = [(_feature(pair.new), _feature(pair.other)) for pair in pairs]
        voters = [len(pair.answers) for pair in pairs]
        elicited = self.ask([Same.of(*both, voter) for both, voter in zip(features, voters, strict=True)])
        for (new, _), answer in zip(features, elicited.answers, strict=True):
            if answer is not None:
                self.answers.setdefault(new, []).append(answer)
        if elicited.stopped is not None:
            self.stopped = None if isinstance(elicited.stopped, OracleUnavailable) else elicited.stopped
            return []
        return [_said(answer) for answer in elicited.answers]


class DuplicateCheck:
    """What the loop asks of new features; without `same` nobody is asked, and none repeats another."""

    def __init__(self, same: SameQuestions | None = None, closeness: Closeness | None = None) -> None:
        self._same, self._closeness = same, closeness
        self._duplicates = Duplicates(same, closeness) if same else None
        self._labelled: list[tuple[Described, Labels]] = []  # what new features may repeat

    def remember(self, known: KnownFeature | Finding) -> None:
        self._labelled.append((_described(known.feature), known.labels))

    def among(self, votes: Votes, contradictions: tuple[int, int]) -> tuple[dict[int, Described], OracleError | None]:
        """By place the features that repeat another one, and the error that ended it, if one did."""
        if self._duplicates is None or self._same is None:
            return {}, None
        new = [(_described(feature), labels) for feature, labels in zip(votes.features, votes.labels, strict=True)]
        return self._duplicates.among(new, self._labelled, contradictions), self._same.stopped

    def checks_of(self, feature: Feature) -> list[Answer]:
        """What was asked about it; once."""
        return self._same.answers.pop(feature, []) if self._same else []

    def twin(self, feature: Feature, labels: Labels, known: Sequence[KnownFeature | Finding]) -> EarlierTwin | None:
        """The known feature that selects the same examples, or all others, unless it was denied to be the same."""
        names, others = [other.feature.name for other in known], [other.labels for other in known]
        if (twin := find_twin(feature.name, labels, names, others, self._closeness)) is None:
            return None
        other = known[twin.other].feature
        denied = self._duplicates and self._duplicates.denied(_described(feature), _described(other))
        return None if twin.kind == "same" and denied else EarlierTwin(twin.kind, other.name)


def _described(feature: Feature) -> Described:
    return Described(feature.name, feature.definition)


def _feature(described: Described) -> Feature:
    return Feature(described.name, described.definition)


def _said(answer: Answer | None) -> bool | None:
    return {Verdict.YES: True, Verdict.NO: False}.get(answer.verdict) if answer else None
