"""Cache, budget and ledger around any oracle: a stored answer is never paid for again.

The requests for questions that are not stored are claimed and their bounds reserved, each is marked as sent before it
leaves, asked with no lock held, and its answers and cost are written in another transaction."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from twothirds.models.keys import QuestionKeys
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    UNUSABLE,
    Answer,
    AnswersPending,
    AsksAnew,
    BudgetExhausted,
    Halted,
    Money,
    Oracle,
    OracleIdentity,
    OracleUnavailable,
    Overcharged,
    PlannedRequest,
    ProbesServer,
    Question,
    TellsRequests,
    Verdict,
)
from twothirds.models.stopping import stopping

if TYPE_CHECKING:
    from twothirds.store import Claimed, Granted, Reply, RunRow, Store, StoredAnswer, Wanted

LEASE_SECONDS = 900.0  # outlasts the longest time-out of any call
POLL_SECONDS = 0.1
COMMIT_SECONDS = 0.01  # answers that arrive so close together are committed together
CLAIMED_AT_ONCE = 64  # at least: one transaction for several requests that are sent one after the other
CLAIMED_AHEAD = 2  # times what is claimed at once may be reserved at a time
TOGETHER = 32  # questions at most in a request of an oracle that does not plan its requests
UNCOMMITTED = 2  # times the width: with so many answers yet to be committed, no more is sent
DRAIN_SECONDS = 2.0  # how long an interrupted run waits for the answers in flight
SILENT_SECONDS = 2.0  # a longer wait is reported


def reserved_at_once(width: int) -> int:
    """For how many questions of an oracle the price may be reserved at the same time."""
    return CLAIMED_AHEAD * max(width, CLAIMED_AT_ONCE)


@dataclass(eq=False)
class OpenRequest:
    """A request that this process has claimed, and what has come of it so far."""

    request: int
    keys: tuple[str, ...]
    at_most: dict[str, Money] = field(default_factory=dict)  # by question without an answer: what it may have cost
    answers: dict[str, Answer] = field(default_factory=dict)
    in_batch: set[str] = field(default_factory=set)  # questions that a provider's batch holds

    @property
    def most(self) -> Money:
        """At most what it has cost by now."""
        return sum(answer.cost - answer.booked + answer.in_doubt for answer in self.answers.values()) + self.open_most

    @property
    def open_most(self) -> Money:
        return sum(most for key, most in self.at_most.items() if key not in self.answers)

    def reply(self, *, closes: bool = False) -> Reply:
        """All that is known of it."""
        from twothirds.store import Reply

        position_of = {key: position for position, key in enumerate(self.keys)}
        answers = [(position_of[key], answer) for key, answer in self.answers.items()]
        usages = [answer.usage for _, answer in answers]
        return Reply(
            request=self.request,
            keys=self.keys,
            answers={position: (answer.question.content, answer.to_json()) for position, answer in answers},
            cost=sum(answer.cost - answer.booked for _, answer in answers),
            in_doubt=sum(answer.in_doubt for _, answer in answers) + self.open_most,
            attempts=sum(usage.requests for usage in usages),
            input_tokens=sum(usage.input_tokens for usage in usages),
            output_tokens=sum(usage.output_tokens for usage in usages),
            seconds=sum(answer.seconds for _, answer in answers),
            closes=closes,
            overcharge=max((a.overcharge.scale for _, a in answers if a.overcharge), default=1.0),
        )


class PaidBatch:
    """Asks some questions that are not stored. `_ask` runs in a thread of its own, the rest in the caller's.

    claimed ──► sent ──► arrived ──► committed      the usual way: `_claim`, `_leaving`, `_ask`, `_collect`, `_commit`
       │          │
       │          └──► closed      without some of its answers, by `_close`: what may have been charged stays booked,
       │                           what is pending with people or was never asked does not; what a provider's batch
       │                           holds is left to be adopted
       └──► released               never pulled by the oracle
    refused                        it would exceed the budget
    held                           another process has claimed its questions

    `_open` holds what is claimed and not committed. An interrupted batch commits what arrives within DRAIN_SECONDS."""

    def __init__(self, cached: CachedOracle, questions: dict[str, Question], unusable: Collection[str] = ()) -> None:
        from twothirds.store import new_owner

        self._cached, self._oracle, self._ledger = cached, cached.oracle, cached.ledger
        self._requests = cached.ledger.store.requests
        self._questions = questions
        self._unusable = unusable
        self._keys = {id(question): key for key, question in questions.items()}  # both live as long as the batch
        self._owner = new_owner()
        self._open: dict[str, OpenRequest] = {}  # by question
        self._books = threading.RLock()  # around changes of open requests and telling the store of them
        self._unpulled: set[str] = set()  # marked as sent, and not pulled by the oracle
        self._abandoned: set[str] = set()
        self._began = False  # something was handed to the oracle
        self._arrived: list[Answer] = []  # and not yet committed; `_ask` appends, `_commit` removes
        self._news = threading.Event()  # something has arrived, or nothing more will
        self._over = threading.Event()  # nothing more arrives
        self._came, self._committed = 0, 0  # answers, each counted by one thread only
        self._room = threading.Event()  # some have been committed
        self._ended = False
        self._error: BaseException | None = None
        self._budget = cached.ledger.budget  # when what is booked was last compared with it
        self.lowered = False  # the budget, so far that what is claimed and not sent must be claimed anew
        self.held = False  # another process is asking some of them
        self.refused = False  # some would exceed the budget
        self.abandoned: Money = 0  # what was spent on some that the budget did not cover to the end

    @property
    def _stopping(self) -> bool:
        ledger = self._ledger
        over = self._ended or ledger.halted or ledger.overcharge is not None or stopping.is_set()
        return over or self._is_lowered()

    def _is_lowered(self) -> bool:
        """Whether the budget was lowered below what is booked by now: nothing more is sent then."""
        budget = self._ledger.budget
        if budget is not None and budget != self._budget and not self.lowered:
            self.lowered |= (self._ledger.left() or 0) < 0
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
            if finished and self._open:
                self._close()
        if self._error is not None:
            raise self._error

    def _ask(self) -> None:
        try:
            if isinstance(self._oracle, AsksAnew) and self._unusable:
                since = self._ledger.retry_unusable or 0.0
                self._oracle.ask_anew([self._questions[key] for key in self._unusable], since)
            with closing(self._claim()) as claimed:  # releases at once what was claimed and never pulled
                for answer in self._answers(claimed):
                    self._came += 1
                    self._ledger.overcharge = self._ledger.overcharge or answer.overcharge
                    self._arrived.append(answer)
                    self._news.set()
        except BaseException as error:  # handed to the thread that waits for the answers
            self._error = error
        finally:
            self._over.set()
            self._news.set()

    def _answers(self, claimed: Iterator[Sequence[Question]]) -> Iterator[Answer]:
        if isinstance(self._oracle, TellsRequests):
            return self._oracle.ask_telling(claimed, self._leaving, self._note_batch)
        return self._oracle.ask(question for group in claimed for question in self._pulled(group))

    def _pulled(self, group: Sequence[Question]) -> Iterator[Question]:
        """The questions of one request, for an oracle that does not tell when each leaves: all of them are marked as
        sent before the first, and those that it does not pull were not sent after all."""
        bounds = self._oracle.estimate(group)
        if not self._leaving(list(zip(group, bounds, strict=True))):
            return
        self._unpulled.update(map(self._key_of, group))
        for question in group:
            if self._stopping:
                return
            self._unpulled.discard(self._key_of(question))
            yield question

    def _planned(self, keys: Sequence[str], *, more: bool = False) -> list[PlannedRequest]:
        oracle, questions = self._oracle, [self._questions[key] for key in keys]
        if isinstance(oracle, TellsRequests):
            return oracle.requests(questions, more=more)
        bounds = oracle.estimate(questions)
        together, planned = max(1, min(oracle.width, TOGETHER)), []
        start = 0
        for end in range(1, len(questions) + 1):
            is_full = end - start == together
            if is_full or end == len(questions) or questions[end].kind is not questions[start].kind:
                planned.append(PlannedRequest(tuple(questions[start:end]), tuple(bounds[start:end])))
                start = end
        return planned

    def _claim(self) -> Generator[Sequence[Question], None, None]:
        """What this process may ask, request by request."""
        width, keys = self._cached.width, list(self._questions)
        at_once = width  # few at first, for the oracle is idle until they come
        while keys and not self._stopping:
            wanted, keys = keys[:at_once], keys[at_once:]
            at_once = max(width, CLAIMED_AT_ONCE)
            planned = self._planned(wanted, more=bool(keys))
            taken = {self._key_of(question) for request in planned for question in request.questions}
            keys = [key for key in wanted if key not in taken] + keys
            self._wait_for_room()
            claimed = self._claimed(planned)
            refused = bool(claimed.refused)
            if refused and not claimed.granted and not self._began:
                claimed = self._claimed(self._shrunk(claimed.refused[0]))
            self._began |= bool(claimed.granted)
            yield from self._hand_over(claimed.granted)
            if self._stopping:
                return
            if refused:
                self.refused = True
                keys = self._requests.in_batches(keys)  # paid for: they are collected all the same

    def _claimed(self, planned: Sequence[PlannedRequest]) -> Claimed:
        """Claim these requests. One that the budget does not cover whole is not begun."""
        ledger, budget = self._ledger, self._ledger.budget
        claimed = self._requests.claim(
            ledger.run_id,
            self._cached.respondent,
            [self._wanted(request) for request in planned],
            owner=self._owner,
            lease_seconds=LEASE_SECONDS,
            budget=budget,
            again=dict.fromkeys(self._unusable, ledger.retry_unusable or 0.0),
        )
        if ledger.budget != budget:  # changed meanwhile: what is booked may be more than it is now
            self._budget = None
        self.held |= bool(claimed.held)
        return claimed

    def _wanted(self, request: PlannedRequest) -> Wanted:
        from twothirds.store import Wanted

        keys = tuple(self._key_of(question) for question in request.questions)
        return Wanted(keys, sum(request.bounds), request.questions[0].kind.value)

    def _shrunk(self, refused: Wanted) -> list[PlannedRequest]:
        """Of the request that was refused, as many of its questions as the rest of the budget covers together."""
        fits, few, many, left = list[PlannedRequest](), 0, len(refused.keys), self._ledger.left() or 0
        while many - few > 1:
            middle = (few + many) // 2
            planned = self._planned(refused.keys[:middle])
            if sum(sum(request.bounds) for request in planned) <= left:
                fits, few = planned, middle
            else:
                many = middle
        return fits

    def _hand_over(self, granted: Sequence[Granted]) -> Iterator[Sequence[Question]]:
        waiting = deque(granted)
        try:
            while waiting and not self._stopping:
                self._wait_for_room()
                grant = waiting.popleft()
                opened = OpenRequest(grant.request, grant.keys)
                if grant.is_adopted:
                    share = -(-grant.booked // len(grant.keys))
                    opened.at_most, opened.in_batch = dict.fromkeys(grant.keys, share), set(grant.keys)
                with self._books:
                    self._open |= dict.fromkeys(grant.keys, opened)
                yield [self._questions[key] for key in grant.keys]
        finally:
            if waiting:
                self._requests.release(self._owner, [grant.request for grant in waiting])

    def _leaving(self, requested: Sequence[tuple[Question, Money]]) -> bool:
        """Have it written down what these questions may have cost after the next attempt, and book what was not
        foreseen; False: another process has claimed some of them meanwhile."""
        with self._books:
            most = {self._key_of(question): amount for question, amount in requested}
            if self._is_lowered():
                self._abandoned.update(most)
                raise BudgetExhausted("the budget does not cover a further request")
            before = {key: self._open[key].at_most.get(key) for key in most}
            opened = {self._open[key].request: self._open[key] for key in most}
            for key in most:
                self._open[key].at_most[key] = most[key]
            at_most = {number: request.most for number, request in opened.items()}
            ledger = self._ledger
            sent, is_refused = self._requests.send(ledger.run_id, self._owner, at_most, ledger.budget)
            if is_refused or sent != at_most.keys():
                for key, amount in before.items():
                    self._open[key].at_most[key] = amount or 0
            if is_refused:
                self.refused = True
                self._abandoned.update(most)
                raise BudgetExhausted("the budget does not cover a further request")
            return sent == at_most.keys()

    def _note_batch(self, questions: Sequence[Question], batch: str | None) -> None:
        with self._books:
            opened = dict[int, OpenRequest]()
            for key in (self._key_of(question) for question in questions):
                if (request := self._open.get(key)) is not None:
                    (request.in_batch.discard if batch is None else request.in_batch.add)(key)
                    opened[request.request] = request
            in_batch = [number for number, request in opened.items() if request.in_batch]
            if batch is not None or not in_batch:
                self._requests.note_batch(self._owner, list(opened), batch)

    def _wait_for_room(self) -> None:
        """Until most of what arrived is committed: a crash may lose all that is sent and not committed."""
        while self._came - self._committed > UNCOMMITTED * self._cached.width and not self._stopping:
            self._room.clear()
            self._room.wait(POLL_SECONDS)

    def _collect(self, timeout: float | None) -> bool:
        """Wait until something has arrived, or time runs out; whether nothing more will arrive."""
        if not self._over.is_set() and self._news.wait(timeout):
            self._over.wait(COMMIT_SECONDS)
        self._news.clear()  # before looking: what comes after it sets it again
        return self._over.is_set()

    def _commit(self) -> list[tuple[str, Answer]]:
        """Store and book. If another process has stored its answer first, that one counts, but ours is paid for too.

        An interruption may come between any two steps: an answer is removed when it is stored, and storing it twice
        books it once."""
        answers = self._arrived[:]
        keyed = {self._key_of(answer.question): answer for answer in answers}
        stored = self._stored(keyed) if keyed else {}
        for key in keyed:
            self._open.pop(key, None)
        del self._arrived[: len(answers)]
        self._committed += len(answers)
        self._room.set()
        return [
            (key, replace(Answer.from_json(answer.question, stored[key], cached=False), cost=answer.cost))
            if key in stored
            else (key, answer)
            for key, answer in keyed.items()
        ]

    def _stored(self, answers: Mapping[str, Answer]) -> dict[str, dict[str, Any]]:
        """Returns the stored answers that count in place of ours."""
        with self._books:
            touched = dict[int, OpenRequest]()
            for key, answer in answers.items():
                # One that is not open was committed before: an interruption came between that and its removal.
                if (opened := self._open.get(key)) is not None:
                    opened.answers[key] = answer
                    touched[opened.request] = opened
            return self._recorded([opened.reply() for opened in touched.values()], len(answers))

    def _recorded(self, replies: list[Reply], answers: int = 0) -> dict[str, dict[str, Any]]:
        from twothirds.store import StoreUnavailable

        if not replies:
            return {}
        try:
            return self._requests.record(self._ledger.run_id, replies)
        except StoreUnavailable as error:
            lost = f" ({answers} answers that came last are not kept)" if answers else ""
            raise type(error)(f"{error}{lost}") from error

    def _close(self) -> None:
        """Close the requests that were not answered to the end. What cannot have been charged is given back; the rest
        stays booked."""
        with self._books:
            unasked = self._error.unasked if isinstance(self._error, OracleUnavailable) else ()
            for key in {*map(self._key_of, unasked), *self._unpulled}:
                if key in self._open and key not in self._open[key].in_batch:
                    self._open[key].at_most.pop(key, None)
            opened = {request.request: request for request in self._open.values()}
            if isinstance(self._error, AnswersPending):  # a later run collects them
                for request in opened.values():
                    request.at_most = {key: most for key, most in request.at_most.items() if key in request.in_batch}
            self.abandoned = sum(self._open[key].at_most.get(key, 0) for key in self._abandoned & self._open.keys())
            in_batches = [request for request in opened.values() if request.in_batch]
            others = [request for request in opened.values() if not request.in_batch]
            self._recorded([request.reply() for request in in_batches if request.answers])
            self._recorded([request.reply(closes=True) for request in others])
            self._requests.release(self._owner, [request.request for request in in_batches])
            self._ledger.count_lost(sum(request.open_most for request in others))
            self._open.clear()

    def _key_of(self, question: Question) -> str:
        """Most oracles answer with the very object that they were asked: its key is known."""
        return self._keys.get(id(question)) or self._cached.keys.of(question)


def take_over_probe(oracle: Oracle, store: Store, run_id: str) -> Money:
    """Book what probing the oracle's server has cost to this run, unless another run pays for it already."""
    return store.requests.take_over(oracle.account, run_id) if isinstance(oracle, ProbesServer) else 0


class CachedOracle:
    """An oracle that looks each question up before it asks, and is safe to use from many threads and processes."""

    def __init__(self, oracle: Oracle, ledger: RunLedger) -> None:
        from twothirds.store import Respondent

        ledger.cost += take_over_probe(oracle, ledger.store, ledger.run_id)
        self.oracle = oracle
        self.ledger = ledger
        self.identity: OracleIdentity = oracle.identity
        self.respondent = Respondent(str(oracle.identity), oracle.identity.to_json())
        self.keys = QuestionKeys(oracle.identity)
        self.width = oracle.width
        self.retries = ledger.retry_unusable is not None and not getattr(oracle, "refusals_are_final", False)
        if isinstance(oracle, TellsRequests):
            oracle.scale_bounds(ledger.store.requests.overcharge(self.respondent))

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
        waiting, last_settled, ledger = list(asked), time.monotonic(), self.ledger
        while waiting:
            known, unusable = self._lookup(waiting)
            self._count_stored(known.values())
            for key, stored in known.items():
                answer = Answer.from_json(asked[key][0], stored.answer, cached=True)
                first = replace(answer, reused=stored.scope != self._run.scope or not answer.cost)
                yield from ledger.counted([first, *_repeated(answer, asked[key][1:])])
            batch = PaidBatch(self, {key: asked[key][0] for key in waiting if key not in known}, unusable)
            settled = set(known)
            for key, answer in self._noting_outage(batch.run()):
                settled.add(key)
                yield from ledger.counted([answer, *_repeated(answer, asked[key][1:])])
            waiting = [key for key in waiting if key not in settled]
            if waiting and stopping.is_set():
                raise KeyboardInterrupt  # in whatever thread this is: the main one has it from the signal
            if waiting and ledger.overcharge:
                raise Overcharged(str(ledger.overcharge))
            if waiting and ledger.halted:
                raise Halted("stopped by a person: the same command goes on")
            if not settled and (batch.abandoned or batch.lowered):
                continue  # less is left now: a smaller request may fit
            if not settled and batch.refused and not batch.held:
                scale = ledger.store.requests.overcharge(self.respondent)
                raise ledger.outage or BudgetExhausted(ledger.why_refused(scale))
            last_settled = time.monotonic() if settled else last_settled
            if waiting and not settled:
                if time.monotonic() - last_settled > SILENT_SECONDS:
                    ledger.store.notice("held", _waits_for_others(len(waiting)))
                time.sleep(POLL_SECONDS)  # another process is asking the rest: its answers will be in the store

    def _noting_outage(self, answered: Iterator[tuple[str, Answer]]) -> Iterator[tuple[str, Answer]]:
        """Requests that failed may have been charged: if they use up the budget, the outage is why."""
        try:
            for pair in answered:
                self.ledger.outage = None
                yield pair
        except OracleUnavailable as error:
            self.ledger.outage = error
            raise

    def _lookup(self, keys: Sequence[str]) -> tuple[dict[str, StoredAnswer], set[str]]:
        """The answers that are stored, and apart from them the keys of those that are to be asked again."""
        known, before = self.ledger.store.requests.lookup(keys), self.ledger.retry_unusable
        if before is None or not self.retries:
            return known, set()
        again = {
            key for key, stored in known.items() if stored.answer["verdict"] in UNUSABLE and stored.answered_at < before
        }
        return {key: stored for key, stored in known.items() if key not in again}, again

    @cached_property
    def _run(self) -> RunRow:
        return self.ledger.store.runs.row(self.ledger.run_id)

    def _count_stored(self, stored: Iterable[StoredAnswer], answers: int = 0) -> None:
        """Count those that this run has not paid for itself."""
        hits: dict[str, tuple[int, Money]] = {}
        for found in stored:
            if found.run != self._run.run:
                count, worth = hits.get(found.kind, (0, 0))
                hits[found.kind] = count + 1, worth + found.answer.get("cost", 0)
        self.ledger.count_stored(str(self.identity), hits, answers)

    def stored_votes(self, keys: Sequence[str]) -> list[dict[str, Any] | None]:
        """Votes of yes and no as they are stored, in the order of the keys, counted as used; None where `ask` is
        needed, as for all that are of no use.

        Of a run that is resumed most answers are known: this makes no object for any of them."""
        found = self.ledger.store.requests.lookup(keys)
        usable = {key: stored for key, stored in found.items() if _verdict(stored) in (Verdict.YES, Verdict.NO)}
        votes = [usable[key].answer if key in usable else None for key in keys]
        if usable:
            self._count_stored(usable.values(), len(keys) - votes.count(None))
        return votes

    def note_computed(self, labels: int) -> None:
        """Count labels that an oracle which computes them was asked for past this one."""
        self.ledger.count_computed(str(self.identity), labels)


def _verdict(stored: StoredAnswer) -> Any:
    return stored.answer.get("verdict") if isinstance(stored.answer, dict) else None


def _repeated(answer: Answer, questions: Iterable[Question]) -> Iterator[Answer]:
    """The answer to equal questions, paid for once."""
    return (replace(answer, question=question, cached=True, reused=True) for question in questions)


def _waits_for_others(count: int) -> str:
    until = f"until they come or its claims expire, at most {LEASE_SECONDS / 60:.0f} minutes after it died"
    return f"another process is asking {count} of the questions: waiting for its answers, {until}"
