"""The store as the rest of the program sees it: each method is one short transaction, callable from any thread."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine

from store import migrations
from store.connection import connect, examine, store_name
from store.errors import StoreError
from store.ledger import answers, claims, costs, handover, rates
from store.ledger import check as audit
from store.ledger import check as checks
from store.ledger import runs as ledger
from store.ledger.answers import AnswerRecord, KeptAnswer
from store.ledger.check import StoredAnswer
from store.ledger.claims import Claimed, Request
from store.ledger.costs import Cost, Totals
from store.ledger.owners import is_dead
from store.ledger.rates import Rate
from store.review.queue import Queue
from store.schema import storable
from store.transactions import Transactions

Clock = Callable[[], float]
PATIENCE_SECONDS = 60.0


class Store:
    """Answers, claims, charges and runs. No acknowledged answer is lost and no budget exceeded, whoever dies when."""

    def __init__(
        self, engine: Engine, name: str, *, clock: Clock = time.time, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.engine = engine
        self.name = name
        self._clock = clock
        self._transactions = Transactions(engine, name, patience=patience)
        self._runs: dict[str, ledger.RunRow] = {}

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock = time.time,
        patience: float = PATIENCE_SECONDS,
        waiting: migrations.Waiting = migrations.silently,
    ) -> Store:
        """The store at a path, `sqlite:///path` or `postgresql://…`, created or brought to the newest schema as needed.

        Raises StoreError in one line when it cannot be used; a file that is no store is never written to."""
        name = store_name(url)
        store = cls(connect(url), name, clock=clock, patience=patience)
        try:
            examine(store.engine, name)
            store._transactions.first(lambda connection: migrations.migrate(connection, name, waiting=waiting))
        except StoreError:
            store.close()
            raise
        return store

    def close(self) -> None:
        self.engine.dispose()

    @cached_property
    def queue(self) -> Queue:
        """Where questions wait for people."""
        return Queue(self._transactions, self._clock)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin_run(
        self, run_id: str, scope: str, *, name: str, flow: str, dataset: str, oracle: str, settings: Mapping[str, Any]
    ) -> None:
        """Enter one execution. `scope` says what makes it the same run when repeated: repetitions share a budget."""
        described = {"name": name, "flow": flow, "dataset": dataset, "oracle": oracle, "settings": dict(settings)}
        now = self._clock()
        self._runs[run_id] = self._transactions.write(
            lambda connection: ledger.begin_run(connection, run_id, scope, described, now)
        )

    def end_run(self, run_id: str, status: str, summary: Mapping[str, Any]) -> None:
        now = self._clock()
        self._transactions.write(lambda connection: ledger.end_run(connection, run_id, status, summary, now))

    def lookup(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The answers that are kept, by key."""
        return self._transactions.read(lambda connection: answers.lookup(connection, keys))

    def claim(
        self,
        run_id: str,
        scope: str,
        requests: Sequence[tuple[str, int] | Request],
        *,
        owner: str,
        lease_seconds: float,
        budget: int | None,
        sending: int = 0,
    ) -> Claimed:
        """Claim questions and reserve the most that they can cost, never beyond the budget of the scope.

        The first `sending` of those granted are marked as sent as well: the caller sends them next. Claims whose lease
        is over are ended first: one never sent is released, one that was sent stays spent."""
        wanted = [Request(*request) for request in requests]
        token, now = uuid.uuid4().hex, self._clock()
        terms = claims.Terms(owner, token, lease_seconds, budget, now, sending)

        def work(connection: Connection) -> Claimed:
            run = self._run(connection, run_id, scope)
            return claims.claim(connection, run, wanted, terms, is_dead)

        return self._transactions.write(work) if wanted else Claimed()

    def take_over(self, account: str, run_id: str, *, budget: int | None) -> int:
        """Book to the run what the scope `account` holds, unless that exceeds the budget; what was paid of it."""
        now = self._clock()

        def work(connection: Connection) -> int:
            return handover.take_over(connection, account, self._run(connection, run_id), budget, is_dead, now)

        return self._transactions.write(work)

    def sent(self, owner: str, keys: Iterable[str]) -> set[str]:
        """Mark claims as sent, just before they are. Those that are not returned were lost to another: do not send."""
        listed, now = list(keys), self._clock()
        return self._transactions.write(lambda connection: claims.sent(connection, owner, listed, now))

    def fence(self, key: str) -> int:
        """Under which the question was last claimed; 0 if never."""
        return self._transactions.read(lambda connection: claims.last_fence(connection, key))

    def answer(self, run_id: str, owner: str, records: Sequence[AnswerRecord]) -> dict[str, dict[str, Any]]:
        """Keep answers, book what they cost, end their claims. Late answers, whose claim was lost, are booked as well.

        Returns the kept answer of each question that someone else had answered first: that is the one to use."""
        del owner  # the fence says under whose claim it was asked
        now = self._clock()

        def work(connection: Connection) -> dict[str, dict[str, Any]]:
            return answers.record(connection, self._run(connection, run_id), records, now)

        return self._transactions.write(work) if records else {}

    def release(self, owner: str, keys: Iterable[str]) -> None:
        """Give back claims for which certainly nothing was charged."""
        listed, now = list(keys), self._clock()
        self._transactions.write(lambda connection: claims.release(connection, owner, listed, now))

    def lost(self, owner: str, keys: Iterable[str]) -> None:
        """Give up claims of which nobody knows whether they were charged, as after a time-out: they stay spent."""
        listed, now = list(keys), self._clock()
        self._transactions.write(lambda connection: claims.lost(connection, owner, listed, now))

    def renew(self, owner: str) -> None:
        """Start the leases of all claims of the owner anew."""
        now = self._clock()
        self._transactions.write(lambda connection: claims.renew(connection, owner, now))

    def used(self, run_id: str, keys: Iterable[tuple[str, bool]]) -> None:
        """Note which answers a run used, each with whether the run paid for it (which its charge says already)."""
        cached = [key for key, paid in keys if not paid]

        def work(connection: Connection) -> None:
            answers.note_uses(connection, self._run(connection, run_id), cached)

        if cached:
            self._transactions.write(work)

    def costs(self, run: str | None = None) -> list[Cost]:
        """What was paid and saved, by run, oracle and kind; of one run id, of the runs of one name, or of all."""
        return self._transactions.read(lambda connection: costs.costs(connection, run))

    def totals(self, run_id: str) -> Totals:
        """What one run has paid and used so far, all its attempts together."""
        return self._transactions.read(lambda connection: costs.totals(connection, self._run(connection, run_id).run))

    def run_overview(self) -> list[dict[str, Any]]:
        return self._transactions.read(ledger.run_overview)

    def spent(self, scope: str) -> tuple[int, int]:
        """Spent and reserved, in micro-dollars, over all executions of the scope."""
        balance = self._transactions.read(lambda connection: ledger.balance_of(connection, scope))
        return balance.spent, balance.reserved

    def kept(self, scope: str) -> int:
        """How many answers the executions of the scope have paid for or used so far."""
        return self._transactions.read(lambda connection: costs.kept_count(connection, scope))

    def every_answer(self) -> Iterator[KeptAnswer]:
        """All answers in the order in which they were kept; no transaction stays open between pages of them."""
        after = 0
        while True:
            kept, after = self._transactions.read(partial(answers.kept_answers, after=after, limit=1000))
            if not kept:
                return
            yield from kept

    def reserve_turn(self, name: str, rate: Rate, tokens: int) -> float:
        """Take the next turn of what `name` limits, for all processes together; returns the seconds until then."""
        now = self._clock()
        return self._transactions.write(lambda connection: rates.reserve(connection, name, rate, tokens, now))

    def pause(self, name: str, seconds: float) -> None:
        """Nobody sends for so long, and then more slowly: the server complained."""
        now = self._clock()
        self._transactions.write(lambda connection: rates.pause(connection, name, seconds, now))

    def paused_for(self, name: str) -> float:
        now = self._clock()
        return self._transactions.read(lambda connection: rates.paused_for(connection, name, now))

    def stored_answers(self) -> Iterator[list[StoredAnswer]]:
        """All answers as they are stored, unread, in pages."""
        after = 0
        while found := self._transactions.read(partial(audit.page, after=after, limit=1000)):
            yield found
            after = found[-1].id

    def answer_count(self) -> int:
        return self._transactions.read(audit.count)

    def orphans(self) -> audit.Orphans:
        """Claims that the next run will end."""
        now = self._clock()
        return self._transactions.read(lambda connection: audit.orphans(connection, now))

    def integrity_check(self) -> list[str]:
        """One line per thing that is wrong with the file or the books; empty when all is well."""
        return self._transactions.read(checks.problems)

    def _run(self, connection: Connection, run_id: str, scope: str | None = None) -> ledger.RunRow:
        if run_id not in self._runs:
            self._runs[run_id] = ledger.find_run(connection, run_id)
        run = self._runs[run_id]
        if scope is not None and storable(scope) != run.scope_name:
            raise StoreError(f"run {run_id} was begun with scope {run.scope_name}, not {scope}: begin another run")
        return run
