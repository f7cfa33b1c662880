"""Cache, budget and ledger around any oracle: a stored answer is never paid for again.

A question that is not stored is claimed and its upper-bound price reserved, then marked as sent (in one transaction if
it is sent next), asked with no lock held, and its answer, charge and release are written in another transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from models.keys import QuestionKeys
from models.oracle import (
    UNUSABLE,
    USABLE,
    Answer,
    BudgetExhausted,
    Halted,
    Money,
    Oracle,
    OracleIdentity,
    OracleUnavailable,
    ProbesServer,
    Question,
    in_usd,
)
from models.recorded.batch import POLL_SECONDS, PaidBatch
from models.recorded.claiming import LEASE_SECONDS
from models.stopping import stopping

if TYPE_CHECKING:
    from store import Store

SILENT_SECONDS = 2.0  # a longer wait is reported


def take_over_probe(oracle: Oracle, store: Store, run_id: str) -> Money:
    """Book what probing the oracle's server has cost to this run, unless another run pays for it already."""
    return store.runs.take_over(oracle.account, run_id) if isinstance(oracle, ProbesServer) else 0


class Recorded:
    """An oracle that looks each question up before it asks, and is safe to use from many threads and processes.

    Refused and unreadable answers that were kept before the time `retry_unusable` are asked again and replaced."""

    def __init__(
        self,
        oracle: Oracle,
        store: Store,
        *,
        run_id: str,
        scope: str,
        budget: Money | None = None,
        retry_unusable: float | None = None,
    ) -> None:
        self.oracle = oracle
        self.identity: OracleIdentity = oracle.identity
        self.who = (str(oracle.identity), oracle.identity.to_json())  # one object: the store digests it once per batch
        self.keys = QuestionKeys(oracle.identity)
        self.width = oracle.width
        self.store = store
        self.run_id = run_id
        self.scope = scope
        self.budget = budget
        self.retry_unusable = None if getattr(oracle, "refusals_are_final", False) else retry_unusable
        self.paid_calls = 0
        self.cached_calls = 0
        self.cost: Money = take_over_probe(oracle, store, run_id)  # paid by this run, now
        self.in_doubt: Money = 0  # at most what requests of this run, now, have cost in addition that never reported it
        self.halted = False
        self._outage: OracleUnavailable | None = None  # nothing was answered since
        self._counting = threading.Lock()

    def halt(self) -> None:
        """Send nothing more, from any thread: what is on its way is waited for, and `ask` raises Halted then."""
        self.halted = True

    def allow(self, budget: Money) -> None:
        """Another budget from now on: what is spent and reserved counts against it."""
        self.budget = budget

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        """Nothing for stored answers, the oracle's upper bound for the rest."""
        keys = [self.keys.of(question) for question in questions]
        known, _ = self._lookup(list(dict.fromkeys(keys)))
        bounds = self.oracle.estimate(questions)
        return [0 if key in known else bound for key, bound in zip(keys, bounds, strict=True)]

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer per question. Raises BudgetExhausted once all that could be paid for has been yielded, and Halted
        once all that was sent has been."""
        asked: dict[str, list[Question]] = {}
        for question in questions:
            asked.setdefault(self.keys.of(question), []).append(question)
        waiting, last_settled = list(asked), time.monotonic()
        while waiting:
            known, unusable = self._lookup(waiting)
            if known:
                self.store.answers.note_uses(self.run_id, known)
            for key, stored in known.items():
                yield from self._counted(Answer.from_json(question, stored, cached=True) for question in asked[key])
            batch = PaidBatch(self, {key: asked[key][0] for key in waiting if key not in known}, unusable)
            settled = set(known)
            for key, answer in self._noting_outage(batch.run()):
                settled.add(key)
                repeated = (replace(answer, question=question, cached=True) for question in asked[key][1:])
                yield from self._counted([answer, *repeated])
            waiting = [key for key in waiting if key not in settled]
            if waiting and stopping.is_set():
                raise KeyboardInterrupt  # in whatever thread this is: the main one has it from the signal
            if waiting and self.halted:
                raise Halted("stopped by a person: the same command goes on")
            if not settled and batch.abandoned:
                continue  # less is left now: a smaller request may fit
            if not settled and batch.refused and not batch.held:
                raise self._outage or BudgetExhausted(self._why_refused())
            last_settled = time.monotonic() if settled else last_settled
            if waiting and not settled:
                if time.monotonic() - last_settled > SILENT_SECONDS:
                    self.store.notice("held", _waits_for_others(len(waiting)))
                time.sleep(POLL_SECONDS)  # another process is asking the rest: its answers will be in the store

    def _noting_outage(self, answered: Iterator[tuple[str, Answer]]) -> Iterator[tuple[str, Answer]]:
        """Requests that failed may have been charged: if they use up the budget, the outage is why."""
        try:
            for pair in answered:
                self._outage = None
                yield pair
        except OracleUnavailable as error:
            self._outage = error
            raise

    def _lookup(self, keys: Sequence[str]) -> tuple[dict[str, dict[str, Any]], set[str]]:
        """The answers that are kept, and apart from them the keys of those that are to be asked again."""
        known = self.store.answers.lookup(keys)
        if self.retry_unusable is None:
            return known, set()
        unusable = [key for key, stored in known.items() if stored["verdict"] in UNUSABLE]
        again = self.store.answers.older(unusable, self.retry_unusable)
        return {key: stored for key, stored in known.items() if key not in again}, again

    def stored_verdicts(self, keys: Sequence[str]) -> list[str | None]:
        """The verdicts that are kept, in the order of the keys, counted as used; None where `ask` is needed, as for all
        that are of no use.

        Of a run that is resumed most answers are known: this makes no object for any of them."""
        found = self.store.answers.member("verdict", keys)
        stored = {key: verdict for key, verdict in found.items() if verdict in USABLE}
        if stored:
            self.store.answers.note_uses(self.run_id, stored)
        verdicts = [stored.get(key) for key in keys]
        with self._counting:
            self.cached_calls += len(keys) - verdicts.count(None)
        return verdicts

    def note_computed(self, labels: int) -> None:
        """Count labels that an oracle which computes them was asked for past this one."""
        self.store.answers.note_computed(self.run_id, str(self.identity), labels)
        with self._counting:
            self.paid_calls += labels

    def _counted(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        for answer in answers:
            with self._counting:
                if answer.cached:
                    self.cached_calls += 1
                else:
                    self.paid_calls += 1
                    self.cost += answer.cost
                    self.in_doubt += answer.in_doubt
            yield answer

    def count_lost(self, in_doubt: Money) -> None:
        with self._counting:
            self.in_doubt += in_doubt

    def _why_refused(self) -> str:
        spent, reserved = self.store.runs.spent(self.scope)
        budget = self.budget or 0
        return (
            f"budget of {in_usd(budget, 6 if budget % 10_000 else 2)} is used up ({in_usd(spent, 6)} spent, "
            f"{in_usd(reserved, 6)} reserved): raise --budget and run again"
        )


def _waits_for_others(count: int) -> str:
    until = f"until they come or its claims expire, at most {LEASE_SECONDS / 60:.0f} minutes after it died"
    return f"another process is asking {count} of the questions: waiting for its answers, {until}"
