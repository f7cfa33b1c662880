"""The rows of answers.jsonl."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from flows.discover.findings import Progress
from models import Answer, Ballot, Compare, Label, Same


def answers_in_order(progress: Progress, rest: Sequence[Ballot]) -> Iterator[Answer]:
    for _, answer in progress.asked:
        yield answer
    for finding in progress.known:
        yield from sorted(finding.ballot.answers, key=_place)
        yield from finding.checks
    for ballot in rest:
        yield from sorted(ballot.answers, key=_place)


def answer_row(answer: Answer, order: Mapping[str, int], by_people: Callable[[Label], bool]) -> dict[str, Any]:
    """`order` is that of the features, by name."""
    question = answer.question
    asked: dict[str, Any] = {"kind": question.kind.value}
    if isinstance(question, Compare):
        asked |= {
            "examples": [example.id for example in question.examples],
            "without": [example.id for example in question.without],
            "known": list(question.known),
            **({"exclude": list(question.exclude)} if question.exclude else {}),
            **({"most": question.most} if question.most > 1 else {}),
            **({"about": question.about} if question.about else {}),
        }
    elif isinstance(question, Same):
        other, feature = sorted((one.name for one in question.pair), key=lambda name: order.get(name, -1))
        asked |= {"feature": feature, "other": other}
    elif isinstance(question, Label):
        asked |= {"feature": question.feature.name, "example": question.example.id}
        if question.exemplars:
            asked["exemplars"] = [[one.example.id, one.has] for one in question.exemplars]
        if by_people(question):
            asked["people"] = True
    return {"question": asked | {"voter": question.voter}, "answer": answer.to_json()}


def _place(answer: Answer) -> tuple[str, int]:
    question = answer.question
    return (question.example.id if isinstance(question, Label) else "", question.voter)
