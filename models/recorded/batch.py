"""One pass over questions that are not stored: each is claimed, sent, and its answer committed with its charge."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from models.oracle import (
    Answer,
    AnswersPending,
    AsksAnew,
    BudgetExhausted,
    Money,
    OracleUnavailable,
    Question,
    TellsRequests,
)
from models.recorded.claiming import Claiming, Recording, Together
from models.stopping import stopping

if TYPE_CHECKING:
    from store import AnswerRecord

POLL_SECONDS = 0.1
GROUP_COMMIT_SECONDS = 0.01  # answers that arrive so close together are committed together
CLAIMED_AT_ONCE = 64  # at least: one transaction for several groups that are sent one after the other
CLAIMED_AHEAD = 2  # times what is claimed at once may be reserved at a time
UNCOMMITTED = 2  # times the width: with so many answers yet to be committed, no more is sent
DRAIN_SECONDS = 2.0  # how long an interrupted run waits for the answers in flight


def reserved_at_once(width: int) -> int:
    """For how many questions of an oracle the price may be reserved at the same time."""
    return CLAIMED_AHEAD * max(width, CLAIMED_AT_ONCE)


def record_of(
    answer: Answer,
    key: str,
    fence: int,
    question: Mapping[str, Any],
    oracle: str,
    identity: Mapping[str, Any],
    replaces: float | None = None,
) -> AnswerRecord:
    return _record_type()(
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
        in_doubt=answer.in_doubt,
        identity=identity,
        replaces=replaces,
    )


@cache
def _record_type() -> type[AnswerRecord]:
    from store import AnswerRecord  # here and below: settings and help are read without a database

    return AnswerRecord


class PaidBatch:
    """`_ask` runs in a thread of its own, the rest in the caller's.

    claimed ──► sent ──► arrived ──► committed      the usual way: `_claim`, `_send`, `_ask`, `_collect`, `_commit`
       │          │
       │          ├──► released    pending with people, or the oracle says that it was never asked
       │          ├──► unknown     in a provider's batch (`_note_batch`): stays spent until a run collects it
       │          ├──► given up    the budget does not cover a further request: what it has cost stays spent
       │          └──► lost        no answer came: it may have been charged, and what it may have cost stays spent
       └──► released               never pulled by the oracle, or never sent by one that tells of its requests
    refused                        the request that it shares would exceed the budget
    held                           another process has claimed it

    `_fences` holds what is sent and not committed. An interrupted batch commits what arrives within DRAIN_SECONDS."""

    def __init__(self, recorded: Recording, questions: dict[str, Question], unusable: Collection[str] = ()) -> None:
        self._recorded = recorded
        self._store = recorded.store
        self._questions = questions
        self._replaces = dict.fromkeys(unusable, recorded.retry_unusable)  # by key: answers from before this time
        self._keys = {id(question): key for key, question in questions.items()}  # both live as long as the batch
        from store import new_owner

        self._owner = new_owner()
        self._claiming = Claiming(recorded, self._owner, questions, self._replaces, self._key_of)
        self._fences: dict[str, int] = {}
        self._abandoned: set[str] = set()
        self._began = False  # something was handed to the oracle
        self._arrived: list[Answer] = []  # and not yet committed; `_ask` appends, `_commit` removes
        self._news = threading.Event()  # something has arrived, or nothing more will
        self._over = threading.Event()  # nothing more arrives
        self._came, self._committed = 0, 0  # answers, each counted by one thread only
        self._room = threading.Event()  # some have been committed
        self._ended = False
        self._error: BaseException | None = None
        self.held = False  # another process is asking some of them
        self.refused = False  # some would exceed the budget
        self.abandoned: Money = 0  # what was spent on some that the budget did not cover to the end

    @property
    def _stopping(self) -> bool:
        return self._ended or self._recorded.halted or stopping.is_set()

    def run(self) -> Iterator[tuple[str, Answer]]:
        if not self._questions:
            return
        finished, asking = False, threading.Thread(target=self._ask, name="paid batch", daemon=True)
        try:
            asking.start()
            while not finished:
                finished = self._collect(timeout=None)
                yield from self._commit()
        finally:
            self._ended = True
            finished |= asking.ident is None  # it was interrupted before it began
            deadline = time.monotonic() + DRAIN_SECONDS
            self._commit()  # what had arrived when an interruption came
            while not finished and time.monotonic() < deadline:
                finished = self._collect(timeout=deadline - time.monotonic())
                self._commit()
            if finished and self._fences:
                self._close_unanswered()
        if self._error is not None:
            raise self._error

    def _close_unanswered(self) -> None:
        """Release what cannot have been charged; the rest is lost. What a batch holds stays spent either way."""
        if abandoned := self._abandoned & self._fences.keys():
            self.abandoned = self._lose(abandoned)
        if isinstance(self._error, AnswersPending):  # a later run collects them
            self._store.claims.release(self._owner, self._fences)
            return
        unasked = self._error.unasked if isinstance(self._error, OracleUnavailable) else ()
        keys = [key for question in unasked if (key := self._key_of(question)) in self._fences]
        if keys:
            self._store.claims.release(self._owner, keys)
            for key in keys:
                self._fences.pop(key, None)
        self._lose(set(self._fences))

    def _lose(self, keys: Collection[str]) -> Money:
        lost = self._store.claims.abandon(self._owner, keys)
        self._recorded.count_lost(lost)
        for key in keys:
            del self._fences[key]
        return lost

    def _ask(self) -> None:
        recorded = self._recorded
        try:
            if isinstance(recorded.oracle, AsksAnew) and recorded.retry_unusable is not None:
                recorded.oracle.ask_anew([self._questions[key] for key in self._replaces], recorded.retry_unusable)
            with closing(self._claim()) as claimed:  # releases at once what was claimed and never pulled
                for answer in self._answers(claimed):
                    self._came += 1
                    self._arrived.append(answer)
                    self._news.set()
        except BaseException as error:  # handed to the thread that waits for the answers
            self._error = error
        finally:
            self._over.set()
            self._news.set()

    def _answers(self, claimed: Iterator[Sequence[Question]]) -> Iterator[Answer]:
        oracle = self._recorded.oracle
        if isinstance(oracle, TellsRequests):
            return oracle.ask_telling(claimed, self._leaving, self._note_batch)
        return oracle.ask(question for group in claimed for question in group)

    def _claim(self) -> Generator[Sequence[Question], None, None]:
        """What this process may ask, request by request. Some at a time are marked as sent, so that a crash loses
        few."""
        recorded, keys = self._recorded, list(self._questions)
        at_once = recorded.width  # few at first, for the oracle is idle until they come
        while keys and not self._stopping:
            wanted, keys = keys[:at_once], keys[at_once:]
            at_once = max(recorded.width, CLAIMED_AT_ONCE)
            requests = self._claiming.planned(wanted, more=bool(keys))
            planned = {key for request in requests for key in request.keys}
            keys = [key for key in wanted if key not in planned] + keys
            self._wait_for_room()
            claimed = self._claiming.claim(requests)
            self.held |= bool(claimed.held)
            refused = bool(claimed.refused)
            if refused and not claimed.granted and not self._began:
                requests = self._claiming.shrunk(requests, claimed.refused[0])
                claimed = self._claiming.claim(requests)
            self._began |= bool(claimed.granted)
            tells = isinstance(recorded.oracle, TellsRequests)
            yield from (
                self._hand_over(requests, claimed.granted) if tells else self._send(claimed.granted, claimed.sent)
            )
            if self._stopping:
                return
            if refused:
                self.refused = True
                keys = self._store.claims.in_batches(keys)  # paid for: they are collected all the same

    def _note_batch(self, questions: Sequence[Question], batch: str | None) -> None:
        self._store.claims.note_batch(self._owner, [self._key_of(question) for question in questions], batch)

    def _send(self, granted: dict[str, int], sent: set[str]) -> Iterator[list[Question]]:
        """One by one, marked as sent before the oracle has them."""
        width = self._recorded.width
        unpulled = deque(key for key in granted if key in sent)  # marked as sent, but not yet pulled by the oracle
        waiting = deque(key for key in granted if key not in sent)
        self._fences |= {key: granted[key] for key in unpulled}
        try:
            while (waiting or unpulled) and not self._stopping:
                if not unpulled:
                    self._wait_for_room()
                    group = [waiting.popleft() for _ in range(min(width, len(waiting)))]
                    mine = self._store.claims.mark_sent(self._owner, group)
                    unpulled.extend(key for key in group if key in mine)
                    self._fences |= {key: granted[key] for key in unpulled}
                if unpulled:
                    yield [self._questions[unpulled.popleft()]]
        finally:
            if unpulled or waiting:
                self._store.claims.release(self._owner, [*unpulled, *waiting])
                for key in unpulled:
                    del self._fences[key]

    def _hand_over(self, requests: Sequence[Together], granted: dict[str, int]) -> Iterator[list[Question]]:
        """Request by request, to an oracle that tells when each leaves."""
        groups = ([key for key in request.keys if key in granted] for request in requests)
        waiting = deque(group for group in groups if group)
        try:
            while waiting and not self._stopping:
                self._wait_for_room()
                group = waiting.popleft()
                self._fences |= {key: granted[key] for key in group}
                yield [self._questions[key] for key in group]
        finally:
            if waiting:
                self._store.claims.release(self._owner, [key for group in waiting for key in group])

    def _leaving(self, requested: Sequence[tuple[Question, Money]]) -> bool:
        in_doubt = {self._key_of(question): most for question, most in requested}
        if not self._claiming.cover(in_doubt):
            self.refused = True
            self._abandoned.update(in_doubt)
            raise BudgetExhausted("the budget does not cover a further request")
        return self._store.claims.mark_leaving(self._owner, in_doubt) == set(in_doubt)

    def _wait_for_room(self) -> None:
        """Until most of what arrived is committed: a crash may lose all that is sent and not committed."""
        while self._came - self._committed > UNCOMMITTED * self._recorded.width and not self._stopping:
            self._room.clear()
            self._room.wait(POLL_SECONDS)

    def _collect(self, timeout: float | None) -> bool:
        """Wait until something has arrived, or time runs out; whether nothing more will arrive."""
        if not self._over.is_set() and self._news.wait(timeout):
            self._over.wait(GROUP_COMMIT_SECONDS)
        self._news.clear()  # before looking: what comes after it sets it again
        return self._over.is_set()

    def _commit(self) -> list[tuple[str, Answer]]:
        """Store and book. If another process has stored its answer first, that one counts, but ours is paid for too.

        An interruption may come between any two steps: an answer is removed when it is stored, and storing it twice
        books it once."""
        answers = self._arrived[:]
        keyed = {self._key_of(answer.question): answer for answer in answers}
        # One without a fence was committed before: an interruption came between that and its removal.
        records = [self._record(key, answer) for key, answer in keyed.items() if key in self._fences]
        stored = self._stored(records) if records else {}
        for key in keyed:
            self._fences.pop(key, None)
        del self._arrived[: len(answers)]
        self._committed += len(answers)
        self._room.set()
        return [
            (key, replace(Answer.from_json(answer.question, stored[key], cached=False), cost=answer.cost))
            if key in stored
            else (key, answer)
            for key, answer in keyed.items()
        ]

    def _stored(self, records: list[AnswerRecord]) -> dict[str, dict[str, Any]]:
        from store import StoreUnavailable

        try:
            return self._store.answers.record(self._recorded.run_id, records)
        except StoreUnavailable as error:
            raise StoreUnavailable(f"{error} ({len(records)} answers that came last are not kept)") from error

    def _key_of(self, question: Question) -> str:
        """Most oracles answer with the very object that they were asked: its key is known."""
        return self._keys.get(id(question)) or self._recorded.keys.of(question)

    def _record(self, key: str, answer: Answer) -> AnswerRecord:
        recorded, content = self._recorded, answer.question.content
        return record_of(answer, key, self._fences[key], content, *recorded.who, self._replaces.get(key))
