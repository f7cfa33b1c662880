"""People as an oracle: questions wait in the review queue until people have answered them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from twothirds.discovery import Kind
from twothirds.models.keys import QuestionKeys
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    Compare,
    Feature,
    Label,
    Meter,
    Money,
    NamedFeature,
    OracleError,
    OracleIdentity,
    Question,
    Reply,
    Request,
    Traits,
    Unlike,
    Verdict,
    canonical_json,
    digest_of,
    examples_of,
    in_requests,
    replied,
)
from twothirds.models.prompting import Brief
from twothirds.sources import Example, holds_secret, without_secrets
from twothirds.store.review import (
    DATASET,
    EXEMPLARS,
    MOST_PAID_SECONDS,
    Queue,
    ReviewQuestion,
    Standing,
    Vote,
    page_of_checks,
)

NO_BRIEF = Brief()
AT_ONCE = 5_000  # questions that are enqueued together


@dataclass(frozen=True, slots=True)
class HumanTerms:
    """Pay and limits of the work, which change no answer, and what people are told about the data, which may."""

    price: Money = 0  # per vote
    hourly: Money = 0  # per hour of work
    deadline: Annotated[float | None, "hours after which a question is given up, from when it is first asked"] = None
    priority: Annotated[int, "questions with a higher one are shown first"] = 0
    about: Annotated[str, "what the data is and what the features are for, as --about"] = ""
    avoid: Annotated[str, "kinds of features that are not wanted, as --avoid"] = ""
    skips: Annotated[int, "people who may skip a question before it is given up"] = 2

    def __post_init__(self) -> None:
        if self.price < 0 or self.hourly < 0:
            raise OracleError("human: price and hourly must not be negative")
        if self.skips < 1 or (self.deadline is not None and self.deadline <= 0):
            raise OracleError("human: skips must be at least 1 and deadline a positive number of hours")


class HumanOracle:
    """Never waits: yields what has been answered, then raises AnswersPending. Sending again continues.

    Nothing leaves: what people are paid is owed when they answer, and what is pending is not."""

    traits = Traits(profile="people", width=AT_ONCE, slow=True)

    def __init__(
        self,
        queue: Queue,
        name: str = "",
        terms: HumanTerms | None = None,
        clock: Callable[[], float] = time.time,
        *,
        dataset: str = "",
    ) -> None:
        self._queue = queue
        self._terms = terms or HumanTerms()
        self._clock = clock
        self._name = name or "main"
        self._dataset = dataset  # shown with each question, and no part of it
        self._brief = Brief(self._terms.about, self._terms.avoid)
        self.identity = OracleIdentity(kind="human", model=self._name, parameters=self._brief.parameters)
        self._keys = QuestionKeys(self.identity)

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        most = self._terms.price + round(self._terms.hourly * MOST_PAID_SECONDS / 3600)
        return in_requests(questions, most, 1)

    def prepare(self, examples: Sequence[Example]) -> Unlike:  # noqa: ARG002 (people are shown anything)
        return Unlike()

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:  # noqa: ARG002 (nothing leaves)
        request_of = {request: request.questions[0] for request in requests}
        listed = list(request_of.values())
        digests = [_digest(self._name, question, brief=self._brief) for question in listed]
        standing = self._enqueued(listed, digests)
        taken, replies = dict[str, Vote](), list[Reply]()
        for (request, question), digest in zip(request_of.items(), digests, strict=True):
            answer, vote = _answer(question, standing[digest])
            if answer is not None:
                replies.append(replied(request, [answer], prepaid=vote.cost if vote and vote.prepaid else 0))
            if vote is not None:
                taken[self._keys.of(question)] = vote
        self._queue.questions.note_used(taken)
        yield from replies
        if len(replies) < len(listed):
            raise self._pending(standing)

    def _enqueued(self, questions: Sequence[Question], digests: Sequence[str]) -> dict[str, Standing]:
        """The votes on each question so far; enqueues questions that are new or need more votes."""
        wanted: dict[str, int] = {}
        for question, digest in zip(questions, digests, strict=True):
            wanted[digest] = max(wanted.get(digest, 0), question.voter + 1)
        standing = self._queue.questions.standing(list(wanted))
        asks = [
            self._ask(question, digest, wanted[digest])
            for digest, question in dict(zip(digests, questions, strict=True)).items()
            if digest not in standing or (standing[digest].votes < wanted[digest] and standing[digest].ruling is None)
        ]
        if asks:
            self._queue.questions.enqueue(asks)
            standing = self._queue.questions.standing(list(wanted))
        return standing

    def _ask(self, question: Question, digest: str, votes: int) -> ReviewQuestion:
        terms = self._terms
        return _item(
            self._name,
            question,
            digest,
            self._brief,
            self._dataset,
            votes=votes,
            patience=terms.skips,
            priority=terms.priority,
            deadline=None if terms.deadline is None else self._clock() + 3600 * terms.deadline,
            price=terms.price,
            hourly=terms.hourly,
        )

    def _pending(self, standing: dict[str, Standing]) -> AnswersPending:
        undecided = [question for question in standing.values() if not question.abandoned and question.ruling is None]
        waiting = [question for question in undecided if len(question.given) < question.votes]
        missing = sorted({question.votes - len(question.given) for question in waiting})
        votes = f"{missing[0]} to {missing[-1]}" if len(missing) > 1 else f"{missing[0]}"
        message = (
            f"{len(waiting)} question{'s wait' if len(waiting) > 1 else ' waits'} for {votes} "
            f"vote{'s' if missing[-1] > 1 else ''}{' each' if len(waiting) > 1 else ''}: run `twothirds review`"
        )
        return AnswersPending(message, items=[question.item for question in waiting])


def check_of(queue: str, label: Label, expected: str) -> ReviewQuestion:
    """An attention check: a label whose answer is known, asked among others of a feature of that name."""
    digest, page = _digest(queue, label, "check"), page_of_checks(queue, label.feature.name)
    return replace(_item(queue, label, digest, NO_BRIEF, expected=expected), page=page)


def _content(question: Question, brief: Brief) -> dict[str, Any]:
    """The question without the voter: all voters answer one item of the queue. With what they are told about it.
    People always see exemplars: how many a model sees makes no other question for them."""
    told = brief if isinstance(question, Compare) else Brief(brief.about)
    content = question.content
    return {name: content[name] for name in content if name not in ("voter", "exemplars")} | dict(told.parameters)


def _digest(queue: str, question: Question, *marks: str, brief: Brief = NO_BRIEF) -> str:
    """By which the queue knows an item."""
    return digest_of([queue, *marks, _content(question, brief)])


def _item(queue: str, question: Question, digest: str, brief: Brief, dataset: str = "", **terms: Any) -> ReviewQuestion:
    """Labels of one feature share a page; every other question has its own."""
    content, label = _content(question, brief), isinstance(question, Label)
    if dataset:
        content[DATASET] = dataset
    examples = {example.digest: _stored(example) for example in examples_of(question)}
    if isinstance(question, Label) and question.feature.exemplars:
        content[EXEMPLARS] = [[exemplar.example.digest, exemplar.has] for exemplar in question.feature.exemplars]
        examples |= {exemplar.example.digest: _stored(exemplar.example) for exemplar in question.feature.exemplars}
    return ReviewQuestion(
        digest=digest,
        queue=queue,
        kind=Kind.LABEL.value if label else question.kind.value,  # a pair of features is marked as an example is
        question=content,
        examples=examples,
        page=digest_of([queue, content["feature"]]) if label else "",
        **terms,
    )


def _stored(example: Example) -> dict[str, str | None]:
    """As the store holds it. The page reads the image later, so its address must be storable."""
    if example.image is not None and holds_secret(example.image):
        raise OracleError(
            f"the picture {without_secrets(example.image)!r} of example {example.id!r} is behind a secret, and the "
            "review page would have to keep it: download the pictures and give the folder"
        )
    home = {} if example.home is None else {"home": example.home}
    return {"id": example.id, "text": example.text, "image": example.image} | home


def _answer(question: Question, standing: Standing) -> tuple[Answer | None, Vote | None]:
    vote = standing.ruling or standing.given.get(question.voter)
    if vote is not None:
        return _of_vote(question, vote), vote
    if standing.abandoned:
        return Answer(question, Verdict.REFUSED, "nobody", note="skipped, or not answered by the deadline"), None
    return None, None


def _of_vote(question: Question, vote: Vote) -> Answer:
    given = vote.answer
    verdict = Verdict(given["verdict"])
    named = verdict is Verdict.FEATURE
    return Answer(
        question,
        verdict,
        vote.by,
        feature=Feature(given["name"], given.get("definition", "")) if named else None,
        shown=tuple(given.get("shown", ())),
        more=tuple(
            NamedFeature(Feature(name, definition), tuple(shown)) for name, definition, shown in given.get("more", ())
        ),
        ordered=given.get("ordered", False),
        note=given.get("note", ""),
        reason=given.get("reason", ""),
        quote=given.get("quote", ""),
        cost=vote.cost,
        seconds=vote.seconds,
        raw=canonical_json(given),
    )
