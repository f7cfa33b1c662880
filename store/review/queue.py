"""The review queue as others see it: each method is one short transaction, callable from any thread."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection

from store.review import items as review_items
from store.review import leases as review_leases
from store.review import mturk as review_hits
from store.review import mturk as review_workers
from store.review import people as review_people
from store.review import records as review_records
from store.review import votes as review_votes
from store.review.items import Ask, Standing
from store.review.leases import Shown, Terms
from store.review.mturk import Hit
from store.review.people import Invitation, Person
from store.review.records import Progress, QueueState
from store.review.votes import Counted
from store.transactions import Transactions

__all__ = [
    "Ask",
    "Counted",
    "Hit",
    "Invitation",
    "Person",
    "Progress",
    "Queue",
    "QueueState",
    "Shown",
    "Standing",
    "Terms",
]

MOST_EXAMPLES = 10_000  # that are remembered
MANY, MANY_SECONDS = 500, 1.0


class Queue:
    """Questions, leases, votes and people. No acknowledged vote is lost, nobody votes twice on one question, and no
    question gets more votes than it needs, whoever dies when."""

    def __init__(self, transactions: Transactions, clock: Callable[[], float]) -> None:
        self._transactions = transactions
        self._clock = clock
        self._examples: dict[str, dict[str, Any]] = {}
        self._many: dict[str | None, tuple[int, float]] = {}  # by queue how many questions there were, and when

    def enqueue(self, asks: Sequence[Ask]) -> None:
        now = self._clock()
        self._transactions.write(lambda connection: review_items.enqueue(connection, asks, now))

    def standing(self, digests: Sequence[str]) -> dict[str, Standing]:
        now = self._clock()
        return self._transactions.read(lambda connection: review_items.standing(connection, digests, now))

    def take(self, keys: Mapping[int, str]) -> None:
        """Note under which key of the ledger a run takes each vote."""
        self._transactions.write(lambda connection: review_items.take(connection, keys))

    def wait_for(self, run_id: str, items: Iterable[int], *, suspended: bool = False) -> None:
        listed = list(items)
        self._transactions.write(
            lambda connection: review_items.wait_for(connection, run_id, listed, suspended=suspended)
        )

    def ready_runs(self) -> list[str]:
        """Suspended runs that can go on."""
        now = self._clock()
        return self._transactions.read(lambda connection: review_items.ready_runs(connection, now))

    def still_open(self, items: Sequence[int]) -> int:
        """How many of these questions wait for votes."""
        now = self._clock()
        return self._transactions.read(lambda connection: review_items.still_open(connection, items, now))

    def last_answer(self, items: Sequence[int]) -> float:
        """When the latest vote on one of these was given; 0 where there is none."""
        return self._transactions.read(lambda connection: review_items.last_answer(connection, items))

    def wait_over(self, run_id: str) -> None:
        self._transactions.write(lambda connection: review_items.wait_over(connection, run_id))

    def example(self, digest: str) -> dict[str, Any] | None:
        return self.examples([digest]).get(digest)

    def examples(self, digests: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What examples show. A digest never comes to mean something else, so those of late are remembered."""
        known = self._examples
        missing = [digest for digest in digests if digest not in known]
        if missing:
            found = self._transactions.read(lambda connection: review_items.examples(connection, missing))
            known = ({} if len(known) > MOST_EXAMPLES else known) | found
            self._examples = known
        return {digest: known[digest] for digest in digests if digest in known}

    def next_page(self, person: int, terms: Terms) -> list[Shown]:
        """What lies before a person: the questions they have leased, else the next ones."""
        now, chance = self._clock(), random.random()
        return self._transactions.write(
            lambda connection: review_leases.next_page(connection, person, terms, now, chance)
        )

    def unanswered(self, person: int, leases: Sequence[int]) -> list[Shown]:
        """The person's own among these leases that have no answer yet, also where they have expired."""
        return self._transactions.read(lambda connection: review_leases.unanswered(connection, person, leases))

    def give(
        self, person: int, said: Mapping[int, Mapping[str, Any]], *, submission: str | None = None, held: bool = False
    ) -> Counted:
        name, now = submission or uuid.uuid4().hex, self._clock()
        return self._transactions.write(
            lambda connection: review_votes.give(connection, person, said, name, now, held=held)
        )

    def give_labels(
        self, person: int, has: Mapping[int, bool], unsure: Sequence[int] = (), *, submission: str, held: bool = False
    ) -> Counted:
        """A page of labels at once, those that the person cannot tell left to others; comparisons are passed by."""
        now, reason = self._clock(), "I cannot tell"
        said = {lease: {"verdict": "yes" if yes else "no"} for lease, yes in has.items()}
        if held:  # counts as skipped once it is confirmed: somebody made up must not give questions up
            said |= {lease: {"skipped": reason} for lease in unsure}

        def work(connection: Connection) -> Counted:
            counted = review_votes.give(connection, person, said, submission, now, held=held, kind="label")
            if unsure and not held:
                counted.skipped = review_votes.skip(connection, person, unsure, reason, submission, now, kind="label")
            return counted

        return self._transactions.write(work)

    def skip(self, person: int, leases: Sequence[int], reason: str, *, submission: str | None = None) -> int:
        name, now = submission or uuid.uuid4().hex, self._clock()
        return self._transactions.write(
            lambda connection: review_votes.skip(connection, person, leases, reason, name, now)
        )

    def undo(self, person: int, terms: Terms) -> str:
        """Empty when what was sent last lies before the person again, else why not."""
        now = self._clock()
        return self._transactions.write(
            lambda connection: review_votes.undo(connection, person, terms.lease_seconds, now)
        )

    def confirm(self, submission: str, name: str, paid: int = 0) -> int:
        """Count what this person sent in, for which so much was paid; how many votes were not counted before."""
        return self._transactions.write(lambda connection: review_workers.confirm(connection, submission, name, paid))

    def refuse(self, submission: str) -> int:
        return self._transactions.write(lambda connection: review_workers.refuse(connection, submission))

    def withdraw(self, person: int) -> int:
        return self._transactions.write(lambda connection: review_votes.withdraw(connection, person))

    def secret(self, name: str) -> str:
        return self._transactions.write(lambda connection: review_people.secret(connection, name))

    def remember(self, name: str, value: str) -> None:
        self._transactions.write(lambda connection: review_people.remember(connection, name, value))

    def remembered(self, name: str) -> str | None:
        return self._transactions.read(lambda connection: review_people.remembered(connection, name))

    def person(self, name: str, role: str) -> Person:
        now = self._clock()
        return self._transactions.write(lambda connection: review_people.person(connection, name, role, now))

    def find_person(self, name: str) -> Person | None:
        return self._transactions.read(lambda connection: review_people.find(connection, name))

    def invite(self, name: str, role: str, seconds: float) -> Invitation:
        now = self._clock()
        return self._transactions.write(lambda connection: review_people.invite(connection, name, role, seconds, now))

    def invitation(self, number: int) -> Invitation | None:
        """The invitation, unless it is revoked or has expired."""
        now = self._clock()
        return self._transactions.read(lambda connection: review_people.invitation(connection, number, now))

    def revoke(self, name: str) -> int:
        now = self._clock()
        return self._transactions.write(lambda connection: review_people.revoke(connection, name, now))

    def invitations(self) -> list[Invitation]:
        return self._transactions.read(review_people.all_invitations)

    def progress(self, person: int, queue: str | None = None) -> Progress:
        """How far a person is. Of very many questions it is enough to know how many there were a moment ago."""
        now = self._clock()
        many, counted_at = self._many.get(queue, (None, 0.0))
        free = many if now - counted_at < MANY_SECONDS else None

        def work(connection: Connection) -> Progress:
            count = review_records.count_free(connection, queue, now) if free is None else free
            if free is None and count >= MANY:
                self._many[queue] = (count, now)
            return review_records.progress(connection, person, queue, now, count)

        return self._transactions.read(work)

    def states(self) -> list[QueueState]:
        return self._transactions.read(review_records.queue_states)

    def waiting(self, queue: str | None = None) -> list[dict[str, Any]]:
        return self._transactions.read(lambda connection: review_records.waiting(connection, queue))

    def names_used(self) -> list[str]:
        return self._transactions.read(review_records.names_used)

    def records(self) -> Iterator[dict[str, Any]]:
        """Every answer that was given, skipped, late or withdrawn; no transaction stays open between pages of them."""
        after = 0
        while page := self._transactions.read(partial(review_records.records, after=after, limit=1000)):
            yield from page
            after = page[-1]["id"]

    def consensus(self) -> dict[int, str]:
        return dict(self._transactions.read(lambda connection: list(review_records.consensus(connection))))

    def plan_hits(self, hits: Sequence[Hit]) -> None:
        now = self._clock()
        self._transactions.write(lambda connection: review_hits.plan(connection, hits, now))

    def hits(self) -> list[Hit]:
        return self._transactions.read(review_hits.every)

    def hit(self, token: str) -> Hit | None:
        return self._transactions.read(lambda connection: review_hits.one(connection, token))

    def digests_of(self, items: Sequence[int]) -> set[str]:
        """The examples of these questions."""
        return self._transactions.read(lambda connection: review_items.digests_of(connection, items))

    def hit_is(self, token: str, state: str, hit_id: str | None = None) -> None:
        self._transactions.write(lambda connection: review_hits.move(connection, token, state, hit_id))

    def submitted(self, submission: str, name: str) -> dict[str, int]:
        """What this person sent under that name: how many answers, by state."""
        return self._transactions.read(lambda connection: review_workers.submitted(connection, submission, name))

    def asking_run(self, items: Sequence[int]) -> str | None:
        """The run that waits for these questions."""
        return self._transactions.read(lambda connection: review_hits.asking_run(connection, items))

    def show_items(self, person: int, items: Sequence[int]) -> list[Shown]:
        """These very questions for a worker whom a marketplace sends; no place in them is kept."""
        now = self._clock()
        return self._transactions.write(lambda connection: review_workers.show_items(connection, person, items, now))
