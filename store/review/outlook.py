"""What lies before a person who has nothing to answer: whether more questions will come, and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, cast, func, select

from twothirds.store.engine import Clock, Repository, Transactions, reads
from twothirds.store.review.items import CHECK, DATASET, GIVEN, OPEN, VOTE, items, votes
from twothirds.store.schema import json_text, review_waits, runs

OTHERS, WORKING, PAUSED, FINISHED, UNASKED = "others", "working", "paused", "finished", "unasked"
RECENT = 50  # runs that are looked at
MOMENT = 5.0  # seconds for which what was counted is used again
LABEL = "label"
PEOPLE = "human"
MAIN = "main"  # the queue of --oracle human
YES = json_text({"verdict": "yes"})


@dataclass(frozen=True, slots=True)
class FoundFeature:
    name: str
    share: float  # of the votes that say yes


@dataclass(frozen=True, slots=True)
class QueueOutlook:
    """`comparisons` and `labels` are those that one person may expect besides the ones that wait now."""

    state: str
    comparisons: float = 0.0
    labels: float = 0.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """What has been asked in one queue about one data set."""

    comparisons: int = 0
    features: int = 0
    labels: int = 0


@dataclass(slots=True)
class _Reading:
    at: float = float("-inf")
    outlook: QueueOutlook = field(default_factory=lambda: QueueOutlook(UNASKED))
    found: list[FoundFeature] = field(default_factory=list)


class Outlooks(Repository):
    """Read once every few seconds for everybody: it looks at the whole queue."""

    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        super().__init__(transactions, clock)
        self._outlooks: dict[str | None, _Reading] = {}
        self._found: dict[str | None, _Reading] = {}

    @reads
    def of(self, connection: Connection, queue: str | None = None, *, anew: bool = False) -> QueueOutlook:
        reading, now = self._outlooks.setdefault(queue, _Reading()), self._clock()
        if anew or not 0 <= now - reading.at < MOMENT:
            reading.outlook, reading.at = _outlook(connection, queue), now
        return reading.outlook

    @reads
    def found(self, connection: Connection, queue: str | None = None) -> list[FoundFeature]:
        """The features that people were asked about, in the order in which they came up."""
        reading, now = self._found.setdefault(queue, _Reading()), self._clock()
        if not 0 <= now - reading.at < MOMENT:
            reading.found, reading.at = _features(connection, queue), now
        return reading.found


def _outlook(connection: Connection, queue: str | None) -> QueueOutlook:
    states = select(items.c.state, func.count()).where(items.c.state != CHECK).group_by(items.c.state)
    if queue is not None:
        states = states.where(items.c.queue == queue)
    counted = {row[0]: row[1] for row in connection.execute(states)}
    live = _live_runs(connection, queue)
    comparisons, labels = _to_come(connection, live)
    if counted.get(OPEN):
        return QueueOutlook(OTHERS, comparisons, labels)
    statuses = {run["status"] for run in live}
    if "running" in statuses or any(run["suspended"] for run in live):
        return QueueOutlook(WORKING, comparisons, labels)
    if "waiting" in statuses:
        return QueueOutlook(PAUSED, comparisons, labels)
    if not counted:
        return QueueOutlook(UNASKED)
    recent = [row["status"] for row in _recent(connection, queue)]
    has_ended = "done" in recent or any(status.startswith("stopped") for status in recent)
    return QueueOutlook(FINISHED if has_ended else WORKING)


def queues_of(settings: Mapping[str, Any]) -> list[str]:
    """The queues that a run with these settings asks, from oracles such as human:faces?price=0.02."""
    asked = [settings.get("oracle"), settings.get("labeller")]
    if settings.get("escalate") or settings.get("spot_check"):
        asked.append(settings.get("people"))
    specs = [text.partition("?")[0].partition(":") for text in asked if isinstance(text, str)]
    return [name or MAIN for kind, _, name in specs if kind == PEOPLE]


def _recent(connection: Connection, queue: str | None) -> list[dict[str, Any]]:
    """The latest run of each scope that asks people of the queue."""
    query = select(runs.c.run_id, runs.c.scope, runs.c.status, runs.c.dataset, runs.c.settings)
    found: dict[int, dict[str, Any]] = {}
    for row in connection.execute(query.order_by(runs.c.id.desc()).limit(RECENT)).mappings():
        asked = queues_of(row["settings"] or {})
        if asked and (queue is None or queue in asked):
            found.setdefault(row["scope"], dict(row))
    return list(found.values())


def _live_runs(connection: Connection, queue: str | None) -> list[dict[str, Any]]:
    live = [row for row in _recent(connection, queue) if row["status"] in ("running", "waiting")]
    suspended = set(
        connection.execute(
            select(review_waits.c.run_id).where(
                review_waits.c.suspended == 1, review_waits.c.run_id.in_([row["run_id"] for row in live])
            )
        ).scalars()
    )
    return [row | {"suspended": row["run_id"] in suspended} for row in live]


def _to_come(connection: Connection, live: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Comparisons and labels that one person may expect of questions yet to be asked: each comparison that a discovery
    has left finds a feature, which is labelled as often as those before."""
    comparisons = labels = 0.0
    for run in live:
        settings, queues = run["settings"], queues_of(run["settings"])
        queries = settings.get("queries")
        if not isinstance(queries, int):
            continue
        asked = _asked(connection, queues, run["dataset"])
        people = max(1, _people(connection, queues))
        names_features = str(settings.get("oracle", "")).startswith(PEOPLE)
        labels_features = str(settings.get("labeller") or settings.get("oracle", "")).startswith(PEOPLE)
        left = max(0, queries - (asked.comparisons if names_features else asked.features))
        comparisons += left / people if names_features else 0.0
        if labels_features:
            per_feature = asked.labels / asked.features if asked.features else settings.get("elicit_on") or 0
            labels += left * per_feature * min(1.0, (settings.get("votes") or 1) / people)
    return comparisons, labels


def _asked(connection: Connection, queues: list[str], dataset: str) -> _Asked:
    """Pages are counted, not questions: one question says which data set its page is about."""
    pages = (
        select(items.c.page, items.c.kind, func.count().label("n"), func.min(items.c.id).label("first"))
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
    return _Asked(comparisons, features, labels)


def _people(connection: Connection, queues: list[str]) -> int:
    voted = select(func.count(votes.c.person.distinct())).join(items, items.c.id == votes.c.item)
    return int(connection.execute(voted.where(items.c.queue.in_(queues), votes.c.state == GIVEN)).scalar_one())


def _features(connection: Connection, queue: str | None) -> list[FoundFeature]:
    answer = cast(votes.c.answer, Text)
    query = (
        select(items.c.page, answer.label("text"), func.count().label("n"), func.min(items.c.id).label("first"))
        .join(items, items.c.id == votes.c.item)
        .where(items.c.kind == LABEL, votes.c.purpose == VOTE, votes.c.state == GIVEN)
        .group_by(items.c.page, answer)
    )
    if queue is not None:
        query = query.where(items.c.queue == queue)
    total: dict[str, int] = {}
    yes: dict[str, int] = {}
    first: dict[str, int] = {}
    for row in connection.execute(query):
        total[row.page] = total.get(row.page, 0) + row.n
        yes[row.page] = yes.get(row.page, 0) + (row.n if row.text == YES else 0)
        first[row.page] = min(first.get(row.page, row.first), row.first)
    asked = select(items.c.id, items.c.question).where(items.c.id.in_(list(first.values())))
    names = {row.id: row.question["feature"][0] for row in connection.execute(asked)}
    return [
        FoundFeature(names[item], yes[page] / total[page])
        for page, item in sorted(first.items(), key=lambda entry: entry[1])
    ]
