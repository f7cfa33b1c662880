"""One call of `ask`: pulls questions while there is room, sends them in groups and yields the answers."""

from __future__ import annotations

import queue
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from twothirds.models.event_loop import Background
from twothirds.models.openai.chat import ask_decisions, ask_labels, ask_single
from twothirds.models.openai.session import ClaimLost, Delivery, Session
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Label,
    Leaving,
    OracleUnavailable,
    Question,
    Single,
)

READY = 2  # times as many groups as requests may be in flight are made ready: they hold their pictures


@dataclass(frozen=True, slots=True)
class GroupEnded:
    """A group has ended, with so many of its questions unanswered."""

    unanswered: int = 0
    error: Exception | None = None
    unasked: Sequence[Question] = ()  # nothing can have been charged for these


async def ask_group(session: Session, group: Sequence[Question], delivery: Delivery) -> None:
    """One single question, or labels that share a request."""
    if not isinstance(group[0], Label):
        await ask_single(session, group[0], delivery)
        return
    labels = [question for question in group if isinstance(question, Label)]
    by = ask_decisions if session.bounds.labels_by_decisions else ask_labels
    await by(session, labels, delivery)


class Dispatch:
    """After an error nothing more is pulled or sent; what is in flight is waited for, then the error is raised."""

    def __init__(self, session: Session, background: Background, width: int, leaving: Leaving) -> None:
        self._session = session
        self._background = background
        self._width = width
        self._leaving = leaving
        self._pace = session.client.pace
        self._labels = session.bounds.label_groups(self._pace.most_labels)
        self._singles: list[Single] = []
        self._ready: deque[Sequence[Question]] = deque()  # groups that wait for others to end
        self._in_flight = 0  # questions
        self._running = 0  # groups
        self._sent: set[Future[None]] = set()
        self._arrived: queue.SimpleQueue[Answer | GroupEnded] = queue.SimpleQueue()
        self._unasked: list[Question] = []
        self._error: Exception | None = None
        self._exhausted = False  # nothing more is pulled
        self._unusable = False  # the oracle failed: nothing more is sent

    def run(self, questions: Iterator[Question]) -> Iterator[Answer]:
        """Groups of labels are made here."""
        return self._run(([question] for question in questions), self._add)

    def run_groups(self, groups: Iterator[Sequence[Question]]) -> Iterator[Answer]:
        """Each group shares a request."""
        return self._run(groups, self._add_group)

    def _add_group(self, group: Sequence[Question]) -> None:
        self._ready.append(group)

    def _add(self, group: Sequence[Question]) -> None:
        for question in group:
            if isinstance(question, Label):
                self._labels.add(question)
            else:
                self._singles.append(question)

    def _run(self, groups: Iterator[Sequence[Question]], add: Callable[[Sequence[Question]], None]) -> Iterator[Answer]:
        try:
            while True:
                self._pull(groups, add)
                self._send()
                if not self._running:
                    break
                yield from self._next_answers()
        finally:
            for future in list(self._sent):
                future.cancel()
        if isinstance(self._error, OracleUnavailable):
            waiting = [*self._ready, *self._labels.release(partial=True)]
            never_sent = [question for group in waiting for question in group]
            self._error.unasked = (*self._unasked, *self._singles, *never_sent)
        if self._error is not None:
            raise self._error

    def _pull(self, groups: Iterator[Sequence[Question]], add: Callable[[Sequence[Question]], None]) -> None:
        """Groups are pulled in the caller's thread: their source may be bound to it."""
        pulled = self._in_flight + len(self._labels) + len(self._singles) + sum(map(len, self._ready))
        while not self._exhausted and pulled < self._width and self._has_room():
            try:
                group = next(groups)
            except StopIteration:
                self._exhausted = True
            except Exception as error:  # raised once what was pulled has been answered
                self._error = error
                self._exhausted = True
            else:
                pulled += len(group)
                add(group)

    def _has_room(self) -> bool:
        """Groups for a slow server are made shortly before they are sent: by then its speed is known better."""
        return self._pace.most_labels is None or len(self._ready) + self._running < self._most_running

    @property
    def _most_running(self) -> int:
        return READY * self._pace.width

    def _send(self) -> None:
        if self._unusable:
            return
        self._ready.extend([question] for question in self._singles)
        self._singles = []
        self._ready.extend(self._ready_labels())
        while self._ready and self._running < self._most_running:
            group = self._ready.popleft()
            self._in_flight += len(group)
            self._running += 1
            future = self._background.start(self._ask(group))
            self._sent.add(future)
            future.add_done_callback(self._sent.discard)

    def _ready_labels(self) -> list[Sequence[Question]]:
        """The groups of labels to send now: while others are in flight only full ones."""
        idle = not (self._in_flight or self._ready)
        return list(self._labels.release(partial=self._exhausted or idle, more=not self._exhausted))

    async def _deliver(self, group: Sequence[Question], delivery: Delivery) -> None:
        await ask_group(self._session, group, delivery)

    async def _ask(self, group: Sequence[Question]) -> None:
        left = Counter(group)

        def emit(answer: Answer) -> None:
            left[answer.question] -= 1
            self._arrived.put(answer)

        delivery = Delivery(emit, self._leaving)
        error: Exception | None = OracleUnavailable("the oracle was closed while it was asked")
        try:
            await self._deliver(group, delivery)
            error = None
        except ClaimLost:  # the process that has claimed them asks them
            error = None
        except BudgetExhausted:  # whoever keeps the books knows, and asks them once there is money
            error = None
        except Exception as problem:
            error = problem
        finally:
            trace, unasked = delivery.trace, list[Question]()
            if isinstance(error, OracleUnavailable | AnswersPending) and not trace.maybe_charged:
                unasked = [question for question in left.elements() if question not in trace.paid]
            self._arrived.put(GroupEnded(left.total(), error, unasked))

    def _next_answers(self) -> Iterator[Answer]:
        """Everything that has arrived; waits until there is something."""
        arrived = [self._arrived.get()]
        while not self._arrived.empty():
            arrived.append(self._arrived.get())
        for item in arrived:
            if isinstance(item, Answer):
                self._in_flight -= 1
                yield item
            else:
                self._in_flight -= item.unanswered
                self._running -= 1
                self._unasked.extend(item.unasked)
                if item.error is not None:
                    if self._error is None or isinstance(self._error, AnswersPending):  # an outage is reported first
                        self._error = item.error
                    self._exhausted = self._unusable = True
