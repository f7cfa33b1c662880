"""Cache, budget and ledger around any oracle: a stored answer is never paid for again.

A question that is not stored is claimed and its upper-bound price reserved, then marked as sent (in one transaction if
it is sent next), asked with no lock held, and its answer, charge and release are written in another transaction."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from models.keys import QuestionKeys
from models.oracle import (
    UNUSABLE,
    USABLE,
    Answer,
    AnswersPending,
    AsksAnew,
    BudgetExhausted,
    Halted,
    Money,
    Oracle,
    OracleIdentity,
    OracleUnavailable,
    Overcharge,
    Overcharged,
    ProbesServer,
    Question,
    TellsRequests,
    in_usd,
)
from models.stopping import stopping

if TYPE_CHECKING:
    from store import AnswerRecord, Claimed, Request, Store

LEASE_SECONDS = 900.0  # outlasts the longest time-out of any call


class Together(NamedTuple):
    """Keys of questions that share a request, and the most that each costs then."""

    keys: list[str]
    bounds: list[Money]


class Claiming:
    """Plans the requests for questions and claims them, for one owner."""

    def __init__(
        self,
        recorded: Recorded,
        owner: str,
        questions: Mapping[str, Question],
        replaces: Mapping[str, float | None],
        key_of: Callable[[Question], str],
    ) -> None:
        self._recorded = recorded
        self._store = recorded.store
        self._owner = owner
        self._questions = questions
        self._replaces = replaces
        self._key_of = key_of
        self._reserved: dict[str, Money] = {}  # at least

    def planned(self, keys: Sequence[str], *, more: bool = False) -> list[Together]:
        oracle, questions = self._recorded.oracle, [self._questions[key] for key in keys]
        if not isinstance(oracle, TellsRequests):
            return [Together([key], [most]) for key, most in zip(keys, oracle.estimate(questions), strict=True)]
        planned = oracle.requests(questions, more=more)
        return [
            Together([self._key_of(question) for question in request.questions], list(request.bounds))
            for request in planned
        ]

    def claim(self, requests: Sequence[Together]) -> Claimed:
        """Claim the questions of these requests. One that the budget does not cover whole is not begun."""
        recorded = self._recorded
        bounds = {key: most for request in requests for key, most in zip(request.keys, request.bounds, strict=True)}
        claimed = self._store.claims.claim(
            recorded.run_id,
            recorded.scope,
            [self._request(key, most) for key, most in bounds.items()],
            owner=self._owner,
            lease_seconds=LEASE_SECONDS,
            budget=recorded.budget,
            sending=0 if isinstance(recorded.oracle, TellsRequests) else recorded.width,
        )
        if claimed.refused:
            self._release_torn(requests, claimed)
        # A question that was claimed before may have the reservation of then.
        self._reserved |= {key: bounds[key] for key, fence in claimed.granted.items() if fence == 1}
        return claimed

    def _release_torn(self, requests: Sequence[Together], claimed: Claimed) -> None:
        """Release what was claimed of requests of which a part was refused, unless a provider's batch holds it."""
        refused = set(claimed.refused)
        torn = [
            key
            for request in requests
            if refused.intersection(request.keys)
            for key in request.keys
            if key in claimed.granted
        ]
        released = set(torn).difference(self._store.claims.in_batches(torn)) if torn else set[str]()
        if released:
            self._store.claims.release(self._owner, released)
        for key in released:
            del claimed.granted[key]

    def shrunk(self, requests: Sequence[Together], refused: str) -> list[Together]:
        """Of the request with the question that was refused, as many as the rest of the budget covers together."""
        keys = next(request.keys for request in requests if refused in request.keys)
        booked = self._store.runs.booked(self._recorded.run_id)
        left = (self._recorded.budget or 0) - booked.spent - booked.reserved
        fits, few, many = list[Together](), 0, len(keys)
        while many - few > 1:
            middle = (few + many) // 2
            planned = self.planned(keys[:middle])
            if sum(sum(request.bounds) for request in planned) <= left:
                fits, few = planned, middle
            else:
                many = middle
        return fits

    def _request(self, key: str, bound: Money) -> Request:
        from store import Request

        kind = self._questions[key].kind.value
        return Request(key, bound, self._recorded.who[0], kind, self._replaces.get(key))

    def cover(self, in_doubt: Mapping[str, Money]) -> bool:
        """Reserve what these may have cost after the next request, where more than was foreseen; False: the budget
        does not cover it."""
        more = {key: most for key, most in in_doubt.items() if most > self._reserved.get(key, 0)}
        recorded = self._recorded
        if more and not self._store.claims.reserve_more(
            recorded.run_id, recorded.scope, self._owner, more, recorded.budget
        ):
            return False
        self._reserved |= more
        return True


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
        overcharge=answer.overcharge.scale if answer.overcharge else 1.0,
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

    def __init__(self, recorded: Recorded, questions: dict[str, Question], unusable: Collection[str] = ()) -> None:
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
        self._budget = recorded.budget  # when what is booked was last compared with it
        self.lowered = False  # the budget, so far that what is claimed and not sent must be claimed anew
        self.held = False  # another process is asking some of them
        self.refused = False  # some would exceed the budget
        self.abandoned: Money = 0  # what was spent on some that the budget did not cover to the end

    @property
    def _stopping(self) -> bool:
        recorded = self._recorded
        over = self._ended or recorded.halted or recorded.overcharge is not None or stopping.is_set()
        return over or self._is_lowered()

    def _is_lowered(self) -> bool:
        """Whether the budget was lowered below what is booked by now: nothing more is sent then."""
        budget = self._recorded.budget
        if budget is not None and budget != self._budget and not self.lowered:
            booked = self._store.runs.booked(self._recorded.run_id)
            self.lowered |= booked.spent + booked.reserved > budget
        self._budget = budget
        return self.lowered

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
                    self._recorded.overcharge = self._recorded.overcharge or answer.overcharge
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
            budget = recorded.budget
            claimed = self._claiming.claim(requests)
            if recorded.budget != budget:  # changed meanwhile: by which one was claimed is not known
                self._budget = None
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
        lowered = self._is_lowered()
        if lowered or not self._claiming.cover(in_doubt):
            self.refused |= not lowered
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
            raise type(error)(f"{error} ({len(records)} answers that came last are not kept)") from error

    def _key_of(self, question: Question) -> str:
        """Most oracles answer with the very object that they were asked: its key is known."""
        return self._keys.get(id(question)) or self._recorded.keys.of(question)

    def _record(self, key: str, answer: Answer) -> AnswerRecord:
        recorded, content = self._recorded, answer.question.content
        return record_of(answer, key, self._fences[key], content, *recorded.who, self._replaces.get(key))


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
        self._budget_now: Callable[[], Money | None] = lambda: budget
        self.retry_unusable = None if getattr(oracle, "refusals_are_final", False) else retry_unusable
        self.paid_calls = 0
        self.cached_calls = 0
        self.cost: Money = take_over_probe(oracle, store, run_id)  # paid by this run, now
        self.in_doubt: Money = 0  # at most what requests of this run, now, have cost in addition that never reported it
        self.halted = False
        self.overcharge: Overcharge | None = None  # the first reply above its bound: nothing more is sent
        if isinstance(oracle, TellsRequests):
            oracle.scale_bounds(store.runs.overcharge(scope))
        self._outage: OracleUnavailable | None = None  # nothing was answered since
        self._counting = threading.Lock()

    def halt(self) -> None:
        """Send nothing more, from any thread: what is on its way is waited for, and `ask` raises Halted then."""
        self.halted = True

    @property
    def budget(self) -> Money | None:
        """What is spent and reserved counts against it."""
        return self._budget_now()

    def follow(self, budget: Callable[[], Money | None]) -> None:
        """Have the budget looked up before every request, in any thread: it may change while questions are asked."""
        self._budget_now = budget

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        """Nothing for stored answers, the oracle's upper bound for the rest."""
        keys = [self.keys.of(question) for question in questions]
        known, _ = self._lookup(list(dict.fromkeys(keys)))
        bounds = self.oracle.estimate(questions)
        return [0 if key in known else bound for key, bound in zip(keys, bounds, strict=True)]

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """One answer per question. Raises BudgetExhausted once all that could be paid for has been yielded, and Halted
        once all that was sent has been. Raises Overcharged likewise after a reply that cost more than its bound."""
        asked: dict[str, list[Question]] = {}
        for question in questions:
            asked.setdefault(self.keys.of(question), []).append(question)
        waiting, last_settled = list(asked), time.monotonic()
        while waiting:
            known, unusable = self._lookup(waiting)
            if known:
                self.store.answers.note_uses(self.run_id, known)
            own = self._own(known)
            for key, stored in known.items():
                answer = Answer.from_json(asked[key][0], stored, cached=True)
                yield from self._counted([replace(answer, reused=key not in own), *_repeated(answer, asked[key][1:])])
            batch = PaidBatch(self, {key: asked[key][0] for key in waiting if key not in known}, unusable)
            settled = set(known)
            for key, answer in self._noting_outage(batch.run()):
                settled.add(key)
                yield from self._counted([answer, *_repeated(answer, asked[key][1:])])
            waiting = [key for key in waiting if key not in settled]
            if waiting and stopping.is_set():
                raise KeyboardInterrupt  # in whatever thread this is: the main one has it from the signal
            if waiting and self.overcharge:
                raise Overcharged(str(self.overcharge))
            if waiting and self.halted:
                raise Halted("stopped by a person: the same command goes on")
            if not settled and (batch.abandoned or batch.lowered):
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

    def _own(self, known: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Which of these answers cost something that this run has booked, in whatever attempt."""
        charged = [key for key, stored in known.items() if stored["cost"]]
        return self.store.answers.paid_by(self.scope, charged) if charged else set()

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
        booked, budget = self.store.runs.booked(self.run_id), self.budget or 0
        allowed = f"budget of {in_usd(budget, 6 if budget % 10_000 else 2)}{booked.per}"
        used = f"{in_usd(booked.spent, 6)} spent, {in_usd(booked.reserved, 6)} reserved{self._why_scaled()}"
        return f"{allowed} is used up ({used}): {booked.remedy}"

    def _why_scaled(self) -> str:
        scale = self.store.runs.overcharge(self.scope)
        why = f", {scale:.2g} times its bound for every request, because replies were charged above theirs"
        return why if scale > 1.0 else ""


def _repeated(answer: Answer, questions: Iterable[Question]) -> Iterator[Answer]:
    """The answer to equal questions, paid for once."""
    return (replace(answer, question=question, cached=True, reused=True) for question in questions)


def _waits_for_others(count: int) -> str:
    until = f"until they come or its claims expire, at most {LEASE_SECONDS / 60:.0f} minutes after it died"
    return f"another process is asking {count} of the questions: waiting for its answers, {until}"
