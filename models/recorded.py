"""How answers, and what they cost, are written into the books.

Whether this process is asked to end: nothing more is sent then, and what is under way is waited for a moment.

Cache, budget and ledger around any oracle: an answer that is kept is never paid for again.

A question that is not known is claimed and its upper-bound price reserved, then marked as sent (in the same transaction
where it is sent next), asked with no lock held, and its answer, charge and release written in another transaction."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from models.keys import QuestionKeys
from models.oracle import (
    MICRO,
    Answer,
    AnswersPending,
    BudgetExhausted,
    Introduced,
    Money,
    Oracle,
    OracleIdentity,
    Question,
)
from store import AnswerRecord, Request, Store, new_owner

LEASE_SECONDS = 900.0  # outlasts the longest time-out of any call


def taken_over(oracle: Oracle, store: Store, run_id: str, budget: Money | None) -> Money:
    """What it has cost to find out who answers, where no other run pays for that already."""
    return store.runs.take_over(oracle.account, run_id, budget=budget) if isinstance(oracle, Introduced) else 0


def record_of(
    answer: Answer, key: str, fence: int, question: Mapping[str, Any], oracle: str, identity: Mapping[str, Any]
) -> AnswerRecord:
    return AnswerRecord(
        key=key,
        fence=fence,
        oracle=oracle,
        kind=question["kind"],
        question=question,
        answer=answer.to_json(),
        cost=answer.cost - answer.booked,
        requests=answer.usage.requests,
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        seconds=answer.seconds,
        identity=identity,
    )


stopping = threading.Event()


POLL_SECONDS = 0.1
LINGER_SECONDS = 0.01  # answers that arrive so close together are committed together
CLAIMED_AT_ONCE = 64  # at least: one transaction for several groups that travel one after the other
UNWRITTEN = 2  # times the width: with so many answers yet to be committed, no more is sent
DRAIN_SECONDS = 2.0  # how long an interrupted run waits for the answers that are under way


class Recorded:
    """An oracle that looks each question up before it asks, and is safe to use from many threads and processes."""

    def __init__(self, oracle: Oracle, store: Store, *, run_id: str, scope: str, budget: Money | None = None) -> None:
        self.oracle = oracle
        self.identity: OracleIdentity = oracle.identity
        self.identity_json = oracle.identity.to_json()  # one object: the store digests it once per batch
        self.keys = QuestionKeys(oracle.identity)
        self.width = oracle.width
        self.store = store
        self.run_id = run_id
        self.scope = scope
        self.budget = budget
        self.paid_calls = 0
        self.cached_calls = 0
        self.cost: Money = 0  # paid by this run, now
        self.cost += taken_over(oracle, store, run_id, budget)
        self._counting = threading.Lock()

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        """Nothing for what is known already, the oracle's upper bound for the rest."""
        keys = [self.keys.of(question) for question in questions]
        known = self.store.answers.lookup(list(dict.fromkeys(keys)))
        bounds = self.oracle.estimate(questions)
        return [0 if key in known else bound for key, bound in zip(keys, bounds, strict=True)]

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer per question. Raises BudgetExhausted once all that could be paid for has been yielded."""
        asked: dict[str, list[Question]] = {}
        for question in questions:
            asked.setdefault(self.keys.of(question), []).append(question)
        waiting = list(asked)
        while waiting:
            known = self.store.answers.lookup(waiting)
            if known:
                self.store.answers.note_uses(self.run_id, known)
            for key, kept in known.items():
                yield from self._counted(Answer.from_json(question, kept, cached=True) for question in asked[key])
            errand = _Errand(self, {key: asked[key][0] for key in waiting if key not in known})
            settled = set(known)
            for key, answer in errand.run():
                settled.add(key)
                repeated = (replace(answer, question=question, cached=True) for question in asked[key][1:])
                yield from self._counted([answer, *repeated])
            waiting = [key for key in waiting if key not in settled]
            if waiting and stopping.is_set():
                raise KeyboardInterrupt  # in whatever thread this is: the main one has it from the signal
            if not settled and errand.refused and not errand.held:
                raise BudgetExhausted(self._why_refused())
            if waiting and not settled:
                time.sleep(POLL_SECONDS)  # another process is asking the rest: its answers come from the store

    def _counted(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        for answer in answers:
            with self._counting:
                if answer.cached:
                    self.cached_calls += 1
                else:
                    self.paid_calls += 1
                    self.cost += answer.cost
            yield answer

    def _why_refused(self) -> str:
        spent, reserved = self.store.runs.spent(self.scope)
        return (
            f"budget of {(self.budget or 0) / MICRO:.2f} USD is used up ({spent / MICRO:.6f} spent, "
            f"{reserved / MICRO:.6f} reserved): raise --budget and run again"
        )


class _Errand:
    """One pass over questions that are not known: claim, send, collect, commit what arrived together."""

    def __init__(self, recorded: Recorded, questions: dict[str, Question]) -> None:
        self._recorded = recorded
        self._questions = questions
        self._keys = {id(question): key for key, question in questions.items()}  # both live as long as the errand
        self._owner = new_owner()
        self._fences: dict[str, int] = {}  # of what was claimed and is not yet answered
        self._arrived: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._over = threading.Event()  # nothing more arrives
        self._came, self._written = 0, 0  # answers, each counted by one thread only
        self._room = threading.Event()  # some have been written
        self._in_hand: list[Answer] = []  # arrived, and not yet written
        self._ended = False
        self._error: BaseException | None = None
        self.held = False  # another process is asking some of them
        self.refused = False  # some would exceed the budget

    @property
    def _stopping(self) -> bool:
        return self._ended or stopping.is_set()

    def run(self) -> Iterator[tuple[str, Answer]]:
        if not self._questions:
            return
        thread = threading.Thread(target=self._ask, name="errand", daemon=True)
        thread.start()
        finished = False
        try:
            while not finished:
                finished = self._collect(timeout=None)
                yield from self._commit()
        finally:
            self._ended = True
            deadline = time.monotonic() + DRAIN_SECONDS
            self._commit()  # what was in hand when somebody interrupted
            while not finished and time.monotonic() < deadline:
                finished = self._collect(timeout=deadline - time.monotonic())
                self._commit()
            if finished and self._fences:
                if isinstance(self._error, AnswersPending):  # to be collected by a later run, which reserves them anew
                    self._recorded.store.claims.release(self._owner, self._fences)
                else:  # sent, but never answered: nobody knows whether it was charged, unless the oracle does
                    self._give_back(getattr(self._error, "unasked", ()))
                    self._recorded.store.claims.abandon(self._owner, self._fences)
        if self._error is not None:
            raise self._error

    def _give_back(self, questions: Iterable[Question]) -> None:
        keys = [key for question in questions if (key := self._key_of(question)) in self._fences]
        if keys:
            self._recorded.store.claims.release(self._owner, keys)
            for key in keys:
                self._fences.pop(key, None)

    def _ask(self) -> None:
        try:
            with closing(self._claimed()) as claimed:  # gives back at once what was claimed and never pulled
                for answer in self._recorded.oracle.ask(claimed):
                    self._came += 1
                    self._arrived.put(answer)
        except BaseException as error:  # handed to the thread that waits for the answers
            self._error = error
        finally:
            self._arrived.put(None)
            self._over.set()

    def _claimed(self) -> Generator[Question, None, None]:
        """What this process may ask. A group at a time is marked as sent, so a crash leaves few in doubt."""
        recorded, keys = self._recorded, list(self._questions)
        at_once = recorded.width  # few at first, for the oracle is idle until they come
        while keys:
            wanted, keys = keys[:at_once], keys[at_once:]
            at_once = max(recorded.width, CLAIMED_AT_ONCE)
            bounds = recorded.oracle.estimate([self._questions[key] for key in wanted])
            self._wait_for_room()
            claimed = recorded.store.claims.claim(
                recorded.run_id,
                recorded.scope,
                [self._request(key, bound) for key, bound in zip(wanted, bounds, strict=True)],
                owner=self._owner,
                lease_seconds=LEASE_SECONDS,
                budget=recorded.budget,
                sending=recorded.width,
            )
            self.held |= bool(claimed.held)
            yield from self._send(claimed.granted, claimed.sent)
            if self._stopping:
                return
            if claimed.refused:
                self.refused = True
                return

    def _request(self, key: str, bound: Money) -> Request:
        return Request(key, bound, str(self._recorded.identity), self._questions[key].kind.value)

    def _send(self, granted: dict[str, int], sent: set[str]) -> Iterator[Question]:
        store, width = self._recorded.store, self._recorded.width
        unsent = deque(key for key in granted if key in sent)  # marked as sent, but not yet pulled
        waiting = deque(key for key in granted if key not in sent)
        self._fences |= {key: granted[key] for key in unsent}
        try:
            while (waiting or unsent) and not self._stopping:
                if not unsent:
                    self._wait_for_room()
                    group = [waiting.popleft() for _ in range(min(width, len(waiting)))]
                    mine = store.claims.mark_sent(self._owner, group)
                    unsent.extend(key for key in group if key in mine)
                    self._fences |= {key: granted[key] for key in unsent}
                if unsent:
                    yield self._questions[unsent.popleft()]
        finally:
            if unsent or waiting:
                store.claims.release(self._owner, [*unsent, *waiting])
                for key in unsent:
                    del self._fences[key]

    def _wait_for_room(self) -> None:
        """Until most of what came is written down: only what is sent and not written is in doubt after a crash."""
        while self._came - self._written > UNWRITTEN * self._recorded.width and not self._stopping:
            self._room.clear()
            self._room.wait(POLL_SECONDS)

    def _collect(self, timeout: float | None) -> bool:
        """Take in hand all that has arrived, at least one thing unless time runs out; whether that was the last."""
        try:
            item = self._arrived.get(timeout=timeout)
            lingered = False
            while item is not None:
                self._in_hand.append(item)
                if not lingered:
                    lingered = True
                    self._over.wait(LINGER_SECONDS)
                item = self._arrived.get_nowait()
        except queue.Empty:
            return False
        return True

    def _commit(self) -> list[tuple[str, Answer]]:
        """Keep and book. Where somebody else's answer came first, that one counts, but ours is paid for too."""
        recorded, answers = self._recorded, list(self._in_hand)
        keyed = {self._key_of(answer.question): answer for answer in answers}
        # one without a fence was kept before: an interruption came between that and letting go of it
        records = [self._record(key, answer) for key, answer in keyed.items() if key in self._fences]
        kept = recorded.store.answers.record(recorded.run_id, records) if records else {}
        for key in keyed:
            self._fences.pop(key, None)
        self._in_hand.clear()
        self._written += len(answers)
        self._room.set()
        return [
            (key, replace(Answer.from_json(answer.question, kept[key], cached=False), cost=answer.cost))
            if key in kept
            else (key, answer)
            for key, answer in keyed.items()
        ]

    def _key_of(self, question: Question) -> str:
        """An oracle mostly answers with the very question that it was asked."""
        return self._keys.get(id(question)) or self._recorded.keys.of(question)

    def _record(self, key: str, answer: Answer) -> AnswerRecord:
        recorded, content = self._recorded, answer.question.content
        return record_of(answer, key, self._fences[key], content, str(recorded.identity), recorded.identity_json)
