"""Puts to the oracle whether two features mean the same, where words and labels leave that in doubt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from twothirds.discovery import Described, Pair
from twothirds.models import Answer, Elicited, Feature, OracleError, OracleUnavailable, Same, Verdict


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


def _feature(described: Described) -> Feature:
    return Feature(described.name, described.definition)


def _said(answer: Answer | None) -> bool | None:
    return {Verdict.YES: True, Verdict.NO: False}.get(answer.verdict) if answer else None
