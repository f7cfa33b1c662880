"""Cache, budget and ledger around any oracle: a stored answer is never paid for again.

The requests for questions that are not stored are claimed and their bounds reserved; each is marked as sent before it
leaves and asked with no lock held; its answers and cost are written in another transaction."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any, cast

from twothirds.models.keys import QuestionKeys
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    UNUSABLE,
    Answer,
    BudgetExhausted,
    ClaimLost,
    ComputingOracle,
    Halted,
    Money,
    Oracle,
    OracleIdentity,
    OracleUnavailable,
    Overcharged,
    Question,
    Reply,
    Request,
    Traits,
    Unlike,
    Verdict,
)
from twothirds.models.stopping import stopping

if TYPE_CHECKING:
    from twothirds.sources import Example
    from twothirds.store import Claimed, Granted, RunRow, StoredAnswer, Wanted
    from twothirds.store import Reply as StoredReply

LEASE_SECONDS = 900.0  # outlasts the longest time-out of any call
POLL_SECONDS = 0.1
COMMIT_SECONDS = 0.01  # replies that arrive so close together are committed together
AT_ONCE = 2  # times the width: requests that one transaction claims
UNCOMMITTED = 2  # times the width: with so many replies yet to be committed, no more is sent
DRAIN_SECONDS = 2.0  # how long an interrupted run waits for the replies in flight
SILENT_SECONDS = 2.0  # a longer wait is reported


def reserved_at_once(width: int) -> int:
    """For how many requests of an oracle the price may be reserved at the same time."""
    return 2 * AT_ONCE * width


@dataclass(eq=False)
class OpenRequest:
    """A request that this process has claimed, and what has come of it so far."""

    number: int
    request: Request
    keys: tuple[str, ...]
    has_left: bool = False
    in_batch: bool = False  # a provider's batch holds it
    lacked_budget: bool = False  # it was ended because the budget did not cover a further attempt
    cost: Money = 0  # counted by now, and so below
    in_doubt: Money = 0
    answered: frozenset[int] = frozenset()


class Sending:
    """Asks some questions that are not stored, and is the meter of their requests. `_ask` runs in a thread of its own,
    the rest in the caller's.

    claimed ──► sent ──► replied ──► committed     the usual way: `_claim`, `leaving`, `_ask`, `_collect`, `_commit`
       │          └──► given up      by `_give_up`: what is in doubt stays booked; what a provider's batch holds is left
       │                             to be adopted
       └──► deleted                  never left
    refused                          it would exceed the budget
    held                             another process has claimed its questions

    `_open` holds what is claimed and not committed to its end. An interruption commits what arrives within
    DRAIN_SECONDS."""

    def __init__(self, cached: CachedOracle, questions: Mapping[str, Question], unusable: Collection[str] = ()) -> None:
        from twothirds.store import new_owner

        self._cached, self._oracle, self._ledger = cached, cached.oracle, cached.ledger
        self._requests = cached.ledger.store.requests
        self._questions = questions
        self._unusable = unusable
        self._owner = new_owner()
        self._keys = {id(question): key for key, question in questions.items()}
        self._open: dict[Request, OpenRequest] = {}
        self._books = threading.RLock()  # around changes of open requests and telling the store of them
        self._began = False  # something was handed to the oracle
        self._arrived: list[Reply] = []  # and not yet committed; `_ask` appends, `_commit` removes
        self._news = threading.Event()  # something has arrived, or nothing more will
        self._over = threading.Event()  # nothing more arrives
        self._came, self._committed = 0, 0  # replies, each counted by one thread only
        self._room = threading.Event()  # some have been committed
        self._ended = False
        self._error: BaseException | None = None
        self._budget = cached.ledger.budget  # when what is booked was last compared with it
        self.lowered = False  # the budget, so far that what is claimed and not sent must be claimed again
        self.held = False  # another process is asking some of them
        self.refused = False  # some would exceed the budget
        self.abandoned: Money = 0  # what was spent on some that the budget did not cover to the end

    def run(self, probe: Request | None = None) -> Iterator[tuple[str, Answer]]:
        """The answers by their keys; or nothing, once the `probe` has been sent."""
        finished = False
        planned = iter([probe]) if probe else self._oracle.plan(list(self._questions.values()))
        asking = threading.Thread(target=self._ask, args=(planned,), name="paid requests", daemon=True)
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
            if finished:
                self._give_up()
        if self._error is not None:
            raise self._error

    # --- the thread that asks

    def _ask(self, planned: Iterator[Request]) -> None:
        try:
            with closing(self._claim(planned)) as claimed:  # deletes at once what was claimed and never pulled
                for reply in self._oracle.send(claimed, self):
                    self._came += 1
                    self._ledger.overcharge = self._ledger.overcharge or reply.overcharge
                    self._arrived.append(reply)
                    self._news.set()
        except BaseException as error:  # handed to the thread that waits for the replies
            self._error = error
        finally:
            self._over.set()
            self._news.set()

    @property
    def is_stopped(self) -> bool:
        """Nothing more is sent in this run."""
        ledger = self._ledger
        return ledger.halted or ledger.overcharge is not None or stopping.is_set() or self._is_lowered()

    @property
    def _is_over(self) -> bool:
        return self._ended or self.is_stopped

    def _is_lowered(self) -> bool:
        """Whether the budget was lowered below what is booked by now: nothing more is sent then."""
        budget = self._ledger.budget
        if budget is not None and budget != self._budget and not self.lowered:
            self.lowered |= (self._ledger.left() or 0) < 0
        self._budget = budget
        return self.lowered

    def _claim(self, planned: Iterator[Request]) -> Generator[Request, None, None]:
        """What this process may send, request by request."""
        taken = set[str]()
        at_once = self._oracle.traits.width  # few at first, for the oracle is idle until they come
        while not self._is_over and (wanted := [self._marked(request) for request in islice(planned, at_once)]):
            at_once = AT_ONCE * self._oracle.traits.width  # which follows a slow server
            taken.update(key for request in wanted for key in self._keys_of(request))
            self._wait_for_room()
            claimed = self._claimed(wanted)
            is_refused = bool(claimed.refused)
            if is_refused and not claimed.granted and not self._began:
                wanted = [self._marked(request) for request in self._shrunk(claimed.refused[0])]
                claimed = self._claimed(wanted)
            self._began |= bool(claimed.granted)
            yield from self._hand_over(claimed.granted, wanted)
            if is_refused:
                self.refused = True
                left = [key for key in self._questions if key not in taken]
                in_batches = self._requests.in_batches(left)  # paid for: they are collected all the same
                planned = self._oracle.plan([self._questions[key] for key in in_batches])

    def _marked(self, request: Request) -> Request:
        """With what the books know of it."""
        scale, since = self._cached.scale, 0.0
        if self._unusable and any(key in self._unusable for key in self._keys_of(request)):
            since = self._ledger.retry_unusable or 0.0
        if scale == request.scale and not since:
            return request
        bound, limit = ceil(request.bound * scale), ceil(request.limit * scale)
        return replace(request, bound=bound, limit=limit, scale=scale, since=since)

    def _keys_of(self, request: Request) -> tuple[str, ...]:
        if request.probe is not None:
            return (self._cached.keys.of_content(request.probe.content),)
        return tuple(map(self._key_of, request.questions))

    def _key_of(self, question: Question) -> str:
        """Most requests hold the very questions that were asked: their keys are known."""
        return self._keys.get(id(question)) or self._cached.keys.of(question)

    def _claimed(self, requests: Sequence[Request]) -> Claimed:
        """Claim these requests. One that the budget does not cover whole is not begun."""
        from twothirds.store import Wanted

        ledger, budget = self._ledger, self._ledger.budget
        claimed = self._requests.claim(
            ledger.run_id,
            self._cached.respondent,
            [Wanted(self._keys_of(request), request.bound, request.kind) for request in requests],
            owner=self._owner,
            lease_seconds=LEASE_SECONDS,
            budget=budget,
            again=dict.fromkeys(self._unusable, ledger.retry_unusable or 0.0),
        )
        if ledger.budget != budget:  # changed meanwhile: what is booked may be more than it is now
            self._budget = None
        self.held |= bool(claimed.held)
        return claimed

    def _shrunk(self, refused: Wanted) -> list[Request]:
        """Of the request that was refused, as many of its questions as the rest of the budget covers together."""
        fits, few, many, left = list[Request](), 0, len(refused.keys), self._ledger.left() or 0
        while many - few > 1:
            middle = (few + many) // 2
            planned = list(self._oracle.plan([self._questions[key] for key in refused.keys[:middle]]))
            if sum(ceil(request.bound * self._cached.scale) for request in planned) <= left:
                fits, few = planned, middle
            else:
                many = middle
        return fits

    def _hand_over(self, granted: Sequence[Granted], wanted: Sequence[Request]) -> Iterator[Request]:
        of_key = {key: request for request in wanted for key in self._keys_of(request)}
        waiting = deque(granted)
        try:
            while waiting and not self._is_over:
                self._wait_for_room()
                grant = waiting.popleft()
                request = of_key[grant.keys[0]]
                if grant.is_adopted or grant.keys != self._keys_of(request):
                    questions = tuple(self._questions[key] for key in grant.keys)
                    request = replace(request, questions=questions, bound=grant.booked, adopted=grant.is_adopted)
                opened = OpenRequest(grant.request, request, grant.keys, in_batch=grant.is_adopted)
                with self._books:
                    self._open[request] = opened
                yield request
        finally:
            if waiting:
                self._requests.release(self._owner, [grant.request for grant in waiting])

    def _wait_for_room(self) -> None:
        """Until most of what arrived is committed: a crash may lose all that is sent and not committed."""
        most = UNCOMMITTED * self._oracle.traits.width
        while self._came - self._committed > most and not self._is_over:
            self._room.clear()
            self._room.wait(POLL_SECONDS)

    # --- the meter: called by the oracle, in any thread

    def leaving(self, request: Request, most: Money) -> None:
        with self._books:
            opened, ledger = self._open[request], self._ledger
            is_refused, sent = self._is_lowered(), set[int]()
            if not is_refused:
                at_most = {opened.number: most}
                sent, is_refused = self._requests.send(ledger.run_id, self._owner, at_most, ledger.budget)
                self.refused |= is_refused
            if is_refused:
                opened.lacked_budget = True
                raise BudgetExhausted("the budget does not cover a further attempt")
            if not sent:
                raise ClaimLost("another process asks these questions by now")
            if not opened.has_left:
                opened.has_left = True
                ledger.traffic.sent()

    def failed(self, request: Request, fault: str) -> None:  # noqa: ARG002 (which one does not matter)
        self._ledger.traffic.noted_failure(fault)

    def in_batch(self, request: Request, batch: str | None) -> None:
        with self._books:
            opened = self._open[request]
            opened.in_batch = batch is not None
            self._requests.note_batch(self._owner, [opened.number], batch)

    # --- the thread of the caller

    def _collect(self, timeout: float | None) -> bool:
        """Wait until something has arrived, or time runs out; whether nothing more will arrive."""
        if not self._over.is_set() and self._news.wait(timeout):
            self._over.wait(COMMIT_SECONDS)
        self._news.clear()  # before looking: what comes after it sets it again
        return self._over.is_set()

    def _commit(self) -> list[tuple[str, Answer]]:
        """Store and book. If another process has stored its answer first, that one counts, but ours is paid for too.
        Interruptions may come anywhere: a reply is removed when it is stored, and storing it twice changes nothing."""
        with self._books:
            arrived = self._arrived[:]
            latest = {reply.request: reply for reply in arrived if reply.request in self._open}
            stored = self._recorded(latest.values())
            answers = [pair for reply in latest.values() for pair in self._counted(reply, stored)]
            del self._arrived[: len(arrived)]
            self._committed += len(arrived)
        self._room.set()
        return answers

    def _recorded(self, replies: Collection[Reply]) -> dict[str, dict[str, Any]]:
        """Returns the stored answers that count in place of ours."""
        from twothirds.store import StoreUnavailable

        if not replies:
            return {}
        try:
            return self._requests.record(self._ledger.run_id, [self._stored(reply) for reply in replies])
        except StoreUnavailable as error:
            count = sum(len(reply.answers.keys() - self._open[reply.request].answered) for reply in replies)
            lost = f" ({count} answers that came last are not kept)" if count else ""
            raise type(error)(f"{error}{lost}") from error

    def _stored(self, reply: Reply) -> StoredReply:
        from twothirds.store import Reply as StoredReply

        opened = self._open[reply.request]
        return StoredReply(
            request=opened.number,
            keys=opened.keys,
            answers={at: (answer.question.content, answer.to_json()) for at, answer in reply.answers.items()},
            cost=reply.cost - reply.prepaid,
            in_doubt=reply.in_doubt,
            attempts=reply.usage.requests,
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
            seconds=reply.seconds,
            closes=reply.done,
            overcharge=reply.overcharge.scale if reply.overcharge else 1.0,
        )

    def _counted(self, reply: Reply, stored: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, Answer]]:
        """Count what is new in a reply; its new answers, by their keys."""
        opened = self._open[reply.request]
        new = {at: answer for at, answer in reply.answers.items() if at not in opened.answered}
        self._ledger.count_paid(len(new), reply.cost - opened.cost, reply.in_doubt - opened.in_doubt)
        opened.cost, opened.in_doubt = reply.cost, reply.in_doubt
        opened.answered |= new.keys()
        if reply.done:
            del self._open[reply.request]
            self._ledger.outage = None if new else self._ledger.outage
            self._ledger.traffic.ended(reply.seconds, answered=bool(reply.answers), has_left=opened.has_left)
            if opened.lacked_budget:
                self.abandoned += reply.cost + reply.in_doubt
        for at, answer in new.items():
            if (other := stored.get(opened.keys[at])) is not None:
                answer = replace(Answer.from_json(answer.question, other, cached=False), cost=answer.cost)
            yield opened.keys[at], answer

    def _give_up(self) -> None:
        """What was claimed and has no last reply. What has not left is deleted; what is in doubt of the rest stays
        booked; what a provider's batch holds is left to be adopted."""
        with self._books:
            held = [opened.number for opened in self._open.values() if opened.in_batch]
            others = [opened for opened in self._open.values() if not opened.in_batch]
            if held:
                self._requests.release(self._owner, held)
            if others:
                in_doubt = self._requests.release(self._owner, [opened.number for opened in others])
                self._ledger.count_paid(0, 0, in_doubt - sum(opened.in_doubt for opened in others))
            for opened in self._open.values():
                self._ledger.traffic.ended(0.0, answered=False, has_left=opened.has_left)
            self._open.clear()


class CachedOracle:
    """An oracle that looks each question up before it asks, and is safe to use from many threads and processes."""

    def __init__(self, oracle: Oracle, ledger: RunLedger) -> None:
        from twothirds.store import Respondent

        self.oracle = oracle
        self.ledger = ledger
        self.identity: OracleIdentity = oracle.identity
        self.respondent = Respondent(str(oracle.identity), oracle.identity.to_json())
        self.keys = QuestionKeys(oracle.identity)
        # How many times its bounds a request may be charged; what people have given up stays given up.
        self.scale = ledger.store.requests.overcharge(self.respondent)
        self._retries = ledger.retry_unusable is not None and oracle.traits.profile != "people"
        self._probing = threading.Lock()

    @property
    def traits(self) -> Traits:
        return self.oracle.traits

    @property
    def labeller(self) -> CachedOracle:
        """Who alone gives the labels."""
        return self

    @property
    def computing(self) -> ComputingOracle | None:
        """The oracle, where it can compute labels."""
        return cast("ComputingOracle", self.oracle) if self.traits.deterministic else None

    def prepare(self, examples: Sequence[Example]) -> Unlike:
        return self.oracle.prepare(examples)

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
                yield from ledger.count_cached([first, *_repeated(answer, asked[key][1:])])
            settled, missing = set(known), {key: asked[key][0] for key in waiting if key not in known}
            with self._outages_noted():
                sending = self._probed(missing) or Sending(self, missing, unusable)
                for key, answer in sending.run() if missing and not sending.refused else ():
                    settled.add(key)
                    yield answer
                    yield from ledger.count_cached(_repeated(answer, asked[key][1:]))
            waiting = [key for key in waiting if key not in settled]
            if waiting and stopping.is_set():
                raise KeyboardInterrupt  # in whatever thread this is: the main one has it from the signal
            if waiting and ledger.overcharge:
                raise Overcharged(str(ledger.overcharge))
            if waiting and ledger.halted:
                raise Halted("stopped by a person: the same command goes on")
            if not settled and (sending.abandoned or sending.lowered):
                continue  # less is left now: a smaller request may fit
            if not settled and sending.refused and not sending.held:
                raise ledger.outage or BudgetExhausted(ledger.why_refused(self.scale))
            last_settled = time.monotonic() if settled else last_settled
            if waiting and not settled:
                if time.monotonic() - last_settled > SILENT_SECONDS:
                    ledger.store.notice("held", _waits_for_others(len(waiting)))
                time.sleep(POLL_SECONDS)  # another process is asking the rest: its answers will be in the store

    def _probed(self, missing: Mapping[str, Question]) -> Sending | None:
        """Find out what the server can do, if it is not known: by a request like others. What was refused to it, if it
        was."""
        with self._probing:
            for is_asked in (False, True):
                planned = next(self.oracle.plan(list(islice(missing.values(), 1))), None)
                if planned is None or planned.probe is None:
                    return None
                if is_asked:
                    raise OracleUnavailable(f"{self.oracle!r} was asked what it can do and forgot it: run again")
                sending = Sending(self, {})
                list(sending.run(planned))
                if sending.refused or sending.is_stopped:
                    return sending
        return None

    @contextmanager
    def _outages_noted(self) -> Iterator[None]:
        """Requests that failed may have been charged: if they use up the budget, the outage is why."""
        try:
            yield
        except OracleUnavailable as error:
            self.ledger.outage = error
            raise

    def _lookup(self, keys: Sequence[str]) -> tuple[dict[str, StoredAnswer], set[str]]:
        """The answers that are stored, and apart from them the keys of those that are to be asked again."""
        known, before = self.ledger.store.requests.lookup(keys), self.ledger.retry_unusable
        if before is None or not self._retries:
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
