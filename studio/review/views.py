"""Turns questions of the queue into the context of a template."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from twothirds.store.review import (
    CHECKED,
    DATASET,
    EXEMPLARS,
    UNSURE,
    VOTE,
    LeasedQuestion,
    Queue,
    QueueOutlook,
    QueueProgress,
    digests_in,
    digests_shown,
)
from twothirds.studio.review.access import Pages, Signer
from twothirds.studio.review.config import NameProblem, ReviewConfig
from twothirds.studio.review.media import BrowserPictures, film_kind
from twothirds.studio.review.questions import HAS_OR_LACKS, OPTIONS, REASONS, Unclear, choices
from twothirds.studio.web import Catalogue

IsMoving = Callable[[str, dict[str, Any]], bool]  # of an example's digest and what is stored of it
LETTERS = "abcdefghijklmopqrtvwxyz"  # keys that mark an example: without n, s and u, which are shortcuts
DIGITS = "123456789"
FASTEST = 0.5  # seconds that a question takes at least


@dataclass(frozen=True)
class Card:
    """One example as a template shows it."""

    name: str  # for people, as in `Example 1`
    value: int
    digest: str
    text: str | None
    pictured: bool
    film: bool
    moving: bool = False  # an animation, which can be paused
    marked: bool = False
    unsure: bool = False


@dataclass(frozen=True)
class PageProgress:
    """How far a person is, as the bar of a page shows it."""

    given: int
    total: int
    line: str


class Cards:
    """Makes cards of examples, in one language."""

    def __init__(self, say: Catalogue, examples: dict[str, dict[str, Any]], is_moving: IsMoving) -> None:
        self._say = say
        self._examples = examples
        self._is_moving = is_moving

    def numbered(self, number: int, value: int, digest: str, **marks: bool) -> Card:
        return self.named(self._say.plain("example", number=number + 1), value, digest, **marks)

    def named(self, name: str, value: int, digest: str, **marks: bool) -> Card:
        found = self._examples.get(digest) or {"text": None, "image": None}
        film = film_kind(found["image"]) is not None
        moving = not film and found["image"] is not None and self._is_moving(digest, found)
        return Card(
            name=name,
            value=value,
            digest=digest,
            text=found["text"],
            pictured=found["image"] is not None,
            film=film,
            moving=moving,
            **marks,
        )


def digests_of(shown: list[LeasedQuestion]) -> list[str]:
    return [digest for leased in shown for digest in digests_shown(leased.question)]


def page_context(
    shown: list[LeasedQuestion], examples: dict[str, dict[str, Any]], say: Catalogue, is_moving: IsMoving
) -> dict[str, Any]:
    """For the template of a comparison or of a page of labels."""
    cards = Cards(say, examples, is_moving)
    # A check may have been entered without words.
    first = next((leased for leased in shown if leased.purpose == VOTE), shown[0])
    return {
        "leases": [leased.id for leased in shown],
        "about": first.question.get("about", ""),
        "reasons": REASONS,
        "training": is_training(shown),
        "skipped": (shown[0].answer or {}).get("skipped", "") if _same_answer(shown) else "",
        **(_of_labels(shown, first, cards, say) if first.kind == "label" else _of_comparison(first, cards, say)),
    }


def is_training(shown: list[LeasedQuestion]) -> bool:
    """A page of nothing but checks is the training round: anywhere else they are among other questions."""
    return bool(shown) and all(leased.purpose == CHECKED for leased in shown)


def _same_answer(shown: list[LeasedQuestion]) -> bool:
    """Whether the page was skipped as a whole; examples that are unsure among others are marked one by one."""
    reasons = [(leased.answer or {}).get("skipped") for leased in shown]
    return len(set(reasons)) == 1 and (len(reasons) == 1 or reasons[0] != UNSURE)


def _of_comparison(asked: LeasedQuestion, cards: Cards, say: Catalogue) -> dict[str, Any]:
    answer, question = asked.answer or {}, asked.question
    chosen, digests = _chosen(answer), digests_in(question)
    every = [cards.numbered(place, place, digest, marked=place in chosen) for place, digest in enumerate(digests)]
    split = len(digests) - len(question.get("without", ()))
    return {
        "template": "review/compare.html",
        "kind": asked.kind,
        "choose": choices(asked.kind, split)[-1],
        "cards": every[:split],
        "without": every[split:],
        "known": question.get("known", []),
        "avoid": "; ".join(filter(None, [question.get("avoid"), *question.get("exclude", ())])),
        "options": options_of(asked.kind, question, chosen, say),
        "attribute": question.get("attribute") or question.get("feature", ("", "")),
        "given": _given(answer),
        "problem": None,
    }


def _of_labels(shown: list[LeasedQuestion], first: LeasedQuestion, cards: Cards, say: Catalogue) -> dict[str, Any]:
    answers = [leased.answer or {} for leased in shown]
    return {
        "template": "review/label.html",
        "feature": first.question["feature"][0],
        "definition": first.question["feature"][1],
        "exemplars": _exemplars(shown, cards, say),
        "cards": [
            cards.numbered(
                place,
                leased.id,
                leased.question["example"],
                marked=answer.get("verdict") == "yes",
                unsure=answer.get("skipped") == UNSURE,
            )
            for place, (leased, answer) in enumerate(zip(shown, answers, strict=True))
        ],
        "keys": LETTERS,
    }


def _given(answer: Mapping[str, Any]) -> dict[str, str]:
    """What an answer that was undone holds, by the fields of the form."""
    typed = {key: answer.get(key, "") for key in ("name", "definition", "quote")}
    missing = ", ".join(name for name, *_ in answer.get("more", ()))
    return typed | {"missing": missing, "why": answer.get("reason", "")}


def _chosen(answer: Mapping[str, Any]) -> Collection[int]:
    """Places of what it chose: of a reason by its verdict."""
    chosen: Collection[int] = answer.get("shown", ())
    return chosen or {"yes": (0,), "no": (1,)}.get(answer.get("verdict", ""), ())


def _exemplars(shown: list[LeasedQuestion], cards: Cards, say: Catalogue) -> list[Card]:
    """Examples that are known to have the feature, which are marked, or to lack it; not those that are asked about."""
    asked = {leased.question["example"] for leased in shown}
    listed = next((leased.question[EXEMPLARS] for leased in shown if EXEMPLARS in leased.question), ())
    known = [pair for pair in listed if pair[0] not in asked]
    names = {True: say.plain("this has it"), False: say.plain("this lacks it")}
    return [
        cards.named(names[bool(has)], number, digest, marked=bool(has)) for number, (digest, has) in enumerate(known)
    ]


@dataclass(frozen=True)
class Option:
    """One of the words that a question lets people choose among."""

    value: int
    key: str
    name: str
    definition: str
    marked: bool


def options_of(kind: str, question: dict[str, Any], marked: Collection[int], say: Catalogue) -> list[Option]:
    listed = (
        [(say.plain(key), "") for key in HAS_OR_LACKS] if kind == "why" else question.get(OPTIONS.get(kind, ""), ())
    )
    keys = DIGITS + (LETTERS if kind == "value" else "")  # where a name is typed, a letter is part of it
    return [
        Option(number, keys[number : number + 1], name, definition, number in marked)
        for number, (name, definition) in enumerate(listed)
    ]


@dataclass(frozen=True)
class Problem:
    """What is wrong with which field of a form."""

    field: str
    text: str


def problem_of(unclear: Unclear, say: Catalogue) -> Problem:
    values = dict(unclear.values)
    if fault := values.pop("fault", ""):
        values["problem"] = say.plain(f"name.{fault}")
    return Problem(unclear.field, say.plain(unclear.key, **values))


def suggestions(queue: Queue, asked: LeasedQuestion, name_problem: NameProblem) -> list[str]:
    """Names that were used in the same queue for the same data set, and that may be given here."""
    question = asked.question
    known, exclude = question.get("known", ()), question.get("exclude", ())
    used = queue.records.names_used(asked.queue, question.get(DATASET, ""))
    return [name for name in used if not name_problem(name, known, exclude)]


def progress_of(progress: QueueProgress, outlook: QueueOutlook, on_page: int, say: Catalogue) -> PageProgress:
    """`on_page` is how many questions the page has; none is a page without a question."""
    comparisons, labels = progress.comparisons + outlook.comparisons, progress.labels + outlook.labels
    total = max(progress.given + round(comparisons + labels), progress.given + on_page, 1)
    if not on_page:
        return PageProgress(progress.given, total, say.plain("progress.answered", n=progress.given))
    at, to = progress.given + 1, progress.given + on_page
    line = say.plain("progress.one" if on_page == 1 else "progress.many", at=at, to=to, total=total)
    left = zip((comparisons, labels), progress.seconds, strict=True)
    times = [None if seconds is None else number * max(seconds, FASTEST) for number, seconds in left if number]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return PageProgress(progress.given, total, line)
    left_over = say.plain("progress.left", time=say.duration(sum(known)))
    return PageProgress(progress.given, total, f"{line}, {left_over}")


@dataclass(frozen=True)
class Review:
    """What all pages of the review use."""

    queue: Queue
    config: ReviewConfig
    signer: Signer
    pictures: BrowserPictures = field(default_factory=BrowserPictures)


class ReviewPages(Pages):
    def __init__(self, review: Review) -> None:
        self._queue, self._config, self._signer = review.queue, review.config, review.signer
        self._pictures = review.pictures
