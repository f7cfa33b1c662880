"""How far people are, what lies before them, and who did what: for pages, the admin page and the export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Row, bindparam, literal_column, select

from twothirds.store.engine import Clock, Repository, Transactions, reads
from twothirds.store.review.leases import PERSON, is_available
from twothirds.store.review.questions import (
    CHECK,
    DATASET,
    EXPIRED,
    GIVEN,
    LABEL,
    LEASED,
    OPEN,
    RULING,
    SLOTS_TAKEN,
    VOTE,
    digests_in,
    items,
    read_examples,
    rulings,
    votes,
)
from twothirds.store.schema import json_text, review_waits, runs
from twothirds.store.schema import review_people as people

T = TypeVar("T")
OTHERS, WORKING, PAUSED, FINISHED, UNASKED = "others", "working", "paused", "finished", "unasked"
PACE_SAMPLE = 50
MAX_NAMES = 200  # that are suggested
RECENT = 50  # runs that are looked at
MANY, MANY_SECONDS = 500, 1.0  # a count as large as this is used again for a moment
MOMENT = 5.0  # seconds for which what was found in the whole queue is used again
PEOPLE = "human"
MAIN = "main"  # the queue of --oracle human
YES = json_text({"verdict": "yes"})


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How far one person is. `seconds` is the median time that they take for a comparison and for a label, or others
    do where they have not answered such a question yet; None where nobody has."""

    given: int
    comparisons: int  # that are left
    labels: int
    seconds: tuple[float | None, float | None]

    @property
    def left(self) -> int:
        return self.comparisons + self.labels


@dataclass(frozen=True, slots=True)
class QueueState:
    queue: str
    kind: str
    state: str
    questions: int
    wanted: int
    given: int


@dataclass(frozen=True, slots=True)
class FoundFeature:
    name: str
    share: float  # of the votes that say yes


@dataclass(frozen=True, slots=True)
class QueueOutlook:
    """Whether more questions will come. `comparisons` and `labels` are those that one person may expect besides the
    ones that wait now."""

    state: str
    comparisons: float = 0.0
    labels: float = 0.0


_IN_QUEUE = items.c.queue == bindparam("queue")
_IS_GIVEN = (votes.c.purpose == VOTE, votes.c.state == GIVEN)
_NAMES_GIVEN = (
    select(votes.c.answer, items.c.question)
    .join(items, items.c.id == votes.c.item)
    .where(items.c.kind.not_in((LABEL, "family")), votes.c.state == GIVEN, _IN_QUEUE)  # that names an attribute
    .order_by(votes.c.answered_at.desc())
    .limit(MAX_NAMES)
)
_FIRST_OF_PAGE = (
    select(sa.func.min(items.c.id))
    .where(items.c.kind == LABEL, items.c.state != CHECK, _IN_QUEUE)
    .group_by(items.c.page)
)
_LABELLED = select(items.c.question).where(items.c.id.in_(_FIRST_OF_PAGE)).order_by(items.c.id.desc()).limit(MAX_NAMES)
# Without parameters, or PostgreSQL takes it for another expression in GROUP BY.
_IS_LABEL = sa.case((items.c.kind == literal_column(f"'{LABEL}'"), literal_column("1")), else_=literal_column("0"))
_IS_LABEL = _IS_LABEL.label("is_label")  # type: ignore[assignment]
_OWN = votes.c.person == PERSON
_GIVEN_BY = select(sa.func.count()).where(_OWN, votes.c.state == GIVEN)
_SECONDS = select(_IS_LABEL, votes.c.seconds).join(items, items.c.id == votes.c.item).where(votes.c.state == GIVEN)
_OWN_PACE = _SECONDS.where(_OWN).order_by(votes.c.answered_at.desc()).limit(PACE_SAMPLE)
# The times of the latest answers of everybody, for those who have given none of the kind yet.
_USUAL_PACE = _SECONDS.order_by(votes.c.id.desc()).limit(PACE_SAMPLE)
_ASKED = (items.c.queue, items.c.kind, items.c.question, items.c.expected, people.c.name.label("by"))
_ANSWER_COLUMNS = ("id", "item", "purpose", "slot", "state", "answer", "seconds", "cost", "answered_at")
_ANSWERS = (
    select(*_ASKED, *(votes.c[name] for name in _ANSWER_COLUMNS))
    .join(items, items.c.id == votes.c.item)
    .join(people, people.c.id == votes.c.person)
    .where(votes.c.state.not_in((LEASED, EXPIRED)), votes.c.id > bindparam("after"))
    .order_by(votes.c.id)
    .limit(1000)
)
_RULINGS = (
    select(*_ASKED, rulings.c.id, rulings.c.item, rulings.c.answer, rulings.c.withdrawn, rulings.c.ruled_at)
    .join(items, items.c.id == rulings.c.item)
    .join(people, people.c.id == rulings.c.person)
    .order_by(rulings.c.id)
)


class Records(Repository):
    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        super().__init__(transactions, clock)
        self._recent: dict[tuple[str, str | None], tuple[float, Any]] = {}  # when it was found, and what

    def _recently(
        self, subject: str, queue: str | None, seconds: float, find: Callable[[], T], keep: Callable[[T], bool] = bool
    ) -> T:
        """What was found about the queue at most so many seconds ago, or else what is found now."""
        now = self._clock()
        at, found = self._recent.get((subject, queue), (float("-inf"), None))
        if not 0 <= now - at < seconds:
            found = find()
            if keep(found):
                self._recent[subject, queue] = now, found
        return found  # type: ignore[no-any-return]

    @reads
    def progress(self, connection: Connection, person: int, queue: str | None = None) -> QueueProgress:
        """How far a person is, in one queue or in all."""
        one_queue = queue is not None
        values = {"now": self._clock()} | ({"queue": queue} if one_queue else {})
        available = self._recently(
            "available",
            queue,
            MANY_SECONDS,
            lambda: _by_kind(connection.execute(_available(one_queue), values)),
            keep=lambda counts: sum(counts) >= MANY,
        )
        own = values | {"person": person}
        taken = _by_kind(connection.execute(_taken(one_queue), own))
        given = int(connection.execute(_GIVEN_BY, own).scalar_one())
        left = [max(0, free + more) for free, more in zip(available, taken, strict=True)]
        pace = [(row.is_label, row.seconds) for row in connection.execute(_OWN_PACE, {"person": person})]
        unknown = {kind for kind in (0, 1) if left[kind]} - {kind for kind, _ in pace}
        if unknown:
            pace += [(row.is_label, row.seconds) for row in connection.execute(_USUAL_PACE) if row.is_label in unknown]
        comparing, labelling = (sorted(seconds for kind, seconds in pace if kind == wanted) for wanted in (0, 1))
        return QueueProgress(given, left[0], left[1], (_median(comparing), _median(labelling)))

    @reads
    def states(self, connection: Connection) -> list[QueueState]:
        columns = (items.c.queue, items.c.kind, items.c.state)
        given = select(*columns, sa.func.count()).join(votes, votes.c.item == items.c.id).where(*_IS_GIVEN)
        counted = {tuple(row[:3]): int(row[3]) for row in connection.execute(given.group_by(*columns))}
        query = select(*columns, sa.func.count().label("questions"), sa.func.sum(items.c.votes).label("wanted"))
        rows = connection.execute(query.group_by(*columns).order_by(*columns))
        return [
            QueueState(
                queue=row.queue,
                kind=row.kind,
                state=row.state,
                questions=row.questions,
                wanted=int(row.wanted),
                given=counted.get(tuple(row[:3]), 0),
            )
            for row in rows
        ]

    @reads
    def waiting(self, connection: Connection, queue: str | None = None) -> list[dict[str, Any]]:
        """Open questions, the most urgent first, with the number of votes that nobody gives yet as `missing`."""
        query = (
            select(items, (items.c.votes - SLOTS_TAKEN).label("missing"))
            .where(items.c.state == OPEN)
            .order_by(items.c.priority.desc(), items.c.id)
        )
        if queue is not None:
            query = query.where(items.c.queue == queue)
        return [dict(row) for row in connection.execute(query).mappings()]

    @reads
    def names_used(self, connection: Connection, queue: str, dataset: str = "") -> list[str]:
        """Names of features in one queue about one data set: those that people gave, the latest first, then those that
        were labelled."""
        asked = {"queue": queue}
        given = [(row.answer, row.question) for row in connection.execute(_NAMES_GIVEN, asked)]
        names = [
            answer["name"]
            for answer, question in given
            if answer and answer.get("name") and question.get(DATASET, "") == dataset
        ]
        labelled = connection.execute(_LABELLED, asked).scalars()
        names += [question["feature"][0] for question in labelled if question.get(DATASET, "") == dataset]
        return list(dict.fromkeys(names))

    @reads
    def features_asked(self, connection: Connection, queue: str) -> list[str]:
        """The names of the features that people of the queue are or were asked about, the latest first."""
        questions = connection.execute(_LABELLED, {"queue": queue}).scalars()
        return list(dict.fromkeys(question["feature"][0] for question in questions))

    def answers(self) -> Iterator[dict[str, Any]]:
        """Every answer that was given, skipped, late or withdrawn, in the order of their leases, then the rulings. No
        transaction stays open between pages of them."""
        after = 0
        while page := self._page(after):
            yield from page
            after = page[-1]["id"]
        yield from self._rulings()

    @reads
    def _page(self, connection: Connection, after: int) -> list[dict[str, Any]]:
        return _with_ids(connection, map(dict, connection.execute(_ANSWERS, {"after": after}).mappings()))

    @reads
    def _rulings(self, connection: Connection) -> list[dict[str, Any]]:
        rows = [dict(row) for row in connection.execute(_RULINGS).mappings()]
        same = {"purpose": RULING, "slot": None, "seconds": 0.0, "cost": 0}
        for row in rows:
            state = "withdrawn" if row.pop("withdrawn") else GIVEN
            row |= same | {"state": state, "answered_at": row.pop("ruled_at")}
        return _with_ids(connection, rows)

    @reads
    def outlook(self, connection: Connection, queue: str | None = None, *, fresh: bool = False) -> QueueOutlook:
        """What lies before a person who has nothing to answer."""
        return self._recently("outlook", queue, 0.0 if fresh else MOMENT, lambda: _outlook(connection, queue))

    @reads
    def found(self, connection: Connection, queue: str | None = None) -> list[FoundFeature]:
        """The features that people were asked about, in the order in which they came up."""
        return self._recently("found", queue, MOMENT, lambda: _features(connection, queue))


def _with_ids(connection: Connection, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records with the ids of their examples."""
    rows = list(records)
    examples = read_examples(connection, [digest for row in rows for digest in digests_in(row["question"])])
    for row in rows:
        row["ids"] = [examples.get(digest, {}).get("id", digest) for digest in digests_in(row["question"])]
    return rows


@cache
def _available(one_queue: bool) -> sa.Select[Any]:
    return select(_IS_LABEL, sa.func.count().label("n")).where(is_available(one_queue)).group_by(_IS_LABEL)


@cache
def _taken(one_queue: bool) -> sa.Select[Any]:
    """By kind of question: what the person has leased, less what is available and has been seen by them."""
    seen = sa.case((sa.and_(is_available(one_queue), votes.c.purpose == VOTE), 1), else_=0)
    leased = sa.case((votes.c.state == LEASED, 1), else_=0)
    return (
        select(_IS_LABEL, sa.func.sum(leased - seen).label("n"))
        .select_from(votes.join(items, items.c.id == votes.c.item))
        .where(_OWN, votes.c.state != EXPIRED, sa.or_(votes.c.state == LEASED, items.c.state == OPEN))
        .group_by(_IS_LABEL)
    )


def _by_kind(rows: Iterable[Row[Any]]) -> list[int]:
    """How many comparisons and how many labels."""
    found = {row.is_label: int(row.n) for row in rows}
    return [found.get(0, 0), found.get(1, 0)]


def _median(ordered: list[float]) -> float | None:
    return ordered[len(ordered) // 2] if ordered else None


def _outlook(connection: Connection, queue: str | None) -> QueueOutlook:
    states = select(items.c.state, sa.func.count()).where(items.c.state != CHECK).group_by(items.c.state)
    if queue is not None:
        states = states.where(items.c.queue == queue)
    counted = {row[0]: row[1] for row in connection.execute(states)}
    recent = _recent_runs(connection, queue)
    live = {run["run_id"]: run for run in recent if run["status"] in ("running", "waiting")}
    comparisons, labels = _to_come(connection, live.values())
    if counted.get(OPEN):
        return QueueOutlook(OTHERS, comparisons, labels)
    statuses = {run["status"] for run in live.values()}
    suspended = select(review_waits.c.run_id).where(review_waits.c.suspended, review_waits.c.run_id.in_(list(live)))
    if "running" in statuses or connection.execute(suspended).first() is not None:
        return QueueOutlook(WORKING, comparisons, labels)
    if "waiting" in statuses:
        return QueueOutlook(PAUSED, comparisons, labels)
    if not counted:
        return QueueOutlook(UNASKED)
    has_ended = any(run["status"] == "done" or run["status"].startswith("stopped") for run in recent)
    return QueueOutlook(FINISHED if has_ended else WORKING)


def queues_of(settings: Mapping[str, Any]) -> list[str]:
    """The queues that a run with these settings asks, from oracles such as human:faces?price=0.02."""
    asked = [settings.get("oracle"), settings.get("labeller")]
    if settings.get("escalate") or settings.get("spot_check"):
        asked.append(settings.get("people"))
    specs = [text.partition("?")[0].partition(":") for text in asked if isinstance(text, str)]
    return [name or MAIN for kind, _, name in specs if kind == PEOPLE]


def _recent_runs(connection: Connection, queue: str | None) -> list[dict[str, Any]]:
    """The latest run of each scope that asks people of the queue."""
    query = select(runs.c.run_id, runs.c.scope, runs.c.status, runs.c.dataset, runs.c.settings)
    found: dict[int, dict[str, Any]] = {}
    for row in connection.execute(query.order_by(runs.c.id.desc()).limit(RECENT)).mappings():
        asked = queues_of(row["settings"] or {})
        if asked and (queue is None or queue in asked):
            found.setdefault(row["scope"], dict(row))
    return list(found.values())


def _to_come(connection: Connection, live: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Comparisons and labels that one person may expect of questions yet to be asked: each comparison that a discovery
    has left finds a feature, which is labelled as often as those before."""
    comparisons = labels = 0.0
    for run in live:
        settings, queues = run["settings"], queues_of(run["settings"])
        queries = settings.get("queries")
        if not isinstance(queries, int):
            continue
        compared, features, labelled = _asked(connection, queues, run["dataset"])
        voters = select(sa.func.count(votes.c.person.distinct())).join(items, items.c.id == votes.c.item)
        of_queues = voters.where(items.c.queue.in_(queues), votes.c.state == GIVEN)
        voted = max(1, connection.execute(of_queues).scalar_one())
        names_features = str(settings.get("oracle", "")).startswith(PEOPLE)
        labels_features = str(settings.get("labeller") or settings.get("oracle", "")).startswith(PEOPLE)
        left = max(0, queries - (compared if names_features else features))
        comparisons += left / voted if names_features else 0.0
        if labels_features:
            per_feature = labelled / features if features else settings.get("elicit_on") or 0
            labels += left * per_feature * min(1.0, (settings.get("votes") or 1) / voted)
    return comparisons, labels


def _asked(connection: Connection, queues: list[str], dataset: str) -> tuple[int, int, int]:
    """How many comparisons, features and labels have been asked in these queues about one data set. Pages are counted,
    not questions: one question says which data set its page is about."""
    pages = (
        select(items.c.page, items.c.kind, sa.func.count().label("n"), sa.func.min(items.c.id).label("first"))
        .where(items.c.queue.in_(queues), items.c.state != CHECK)
        .group_by(items.c.page, items.c.kind)
        .subquery()
    )
    query = select(pages.c.kind, pages.c.page, pages.c.n, items.c.question).join(items, items.c.id == pages.c.first)
    comparisons = features = labels = 0
    for kind, page, number, question in connection.execute(query):
        if question.get(DATASET, dataset) != dataset:
            continue
        if page and kind == LABEL:
            features, labels = features + 1, labels + number
        else:
            comparisons += number
    return comparisons, features, labels


def _features(connection: Connection, queue: str | None) -> list[FoundFeature]:
    says_yes = sa.case((sa.cast(votes.c.answer, sa.Text) == YES, 1), else_=0)
    pages = (
        select(sa.func.min(items.c.id).label("first"), sa.func.sum(says_yes).label("yes"), sa.func.count().label("n"))
        .join(votes, votes.c.item == items.c.id)
        .where(items.c.kind == LABEL, *_IS_GIVEN, *([] if queue is None else [items.c.queue == queue]))
        .group_by(items.c.page)
        .subquery()
    )
    query = select(items.c.question, pages.c.yes, pages.c.n).join(pages, pages.c.first == items.c.id)
    return [
        FoundFeature(row.question["feature"][0], int(row.yes) / row.n)
        for row in connection.execute(query.order_by(items.c.id))
    ]
