"""Questions in, answers out: pulled as there is room, grouped, sent from the loop's thread, yielded as they come.

Which labels travel together: one example with many features, or one feature with many examples, of one voter."""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from models.background import Background
from models.openai.chat import ask_comparison, ask_labels
from models.openai.client import trail
from models.openai.decisions import ask_decisions
from models.openai.session import Desk, Emit
from models.oracle import Answer, Compare, Label, OracleUnavailable, Question


@dataclass(frozen=True, slots=True)
class Ended:
    """A group has come to its end, and so many of its questions without an answer."""

    unanswered: int = 0
    error: Exception | None = None
    unasked: Sequence[Question] = ()


async def ask_group(desk: Desk, group: Sequence[Question], emit: Emit) -> None:
    """One comparison, or labels that travel together."""
    if isinstance(group[0], Compare):
        await ask_comparison(desk, group[0], emit)
        return
    labels = [question for question in group if isinstance(question, Label)]
    by = ask_decisions if desk.bounds.labels_by_decisions else ask_labels
    await by(desk, labels, emit)


class Errand:
    """One call of `ask`. An error ends the pulling; what is under way is waited for, and then the error is raised."""

    def __init__(self, desk: Desk, background: Background, width: int) -> None:
        self._desk = desk
        self._background = background
        self._width = width
        self._waiting = desk.bounds.departures()
        self._comparisons: list[Compare] = []
        self._under_way = 0
        self._sent: set[Future[None]] = set()
        self._arrived: queue.SimpleQueue[Answer | Ended] = queue.SimpleQueue()
        self._unasked: list[Question] = []
        self._error: Exception | None = None
        self._exhausted = False  # nothing more is pulled
        self._useless = False  # nor sent: the oracle cannot be used

    def run(self, questions: Iterator[Question]) -> Iterator[Answer]:
        try:
            while True:
                self._pull(questions)
                self._send()
                if not self._under_way:
                    break
                yield from self._next_answers()
        finally:
            for future in list(self._sent):
                future.cancel()
        if isinstance(self._error, OracleUnavailable):
            never_sent = [label for group in self._waiting.leave(everyone=True) for label in group]
            self._error.unasked = (*self._unasked, *self._comparisons, *never_sent)
        if self._error is not None:
            raise self._error

    def _pull(self, questions: Iterator[Question]) -> None:
        """Questions are pulled in the caller's thread: their source may be bound to it."""
        while not self._exhausted and self._under_way + len(self._waiting) + len(self._comparisons) < self._width:
            try:
                question = next(questions)
            except StopIteration:
                self._exhausted = True
            except Exception as error:  # raised once what was pulled has been answered
                self._error = error
                self._exhausted = True
            else:
                if isinstance(question, Compare):
                    self._comparisons.append(question)
                else:
                    self._waiting.add(question)

    def _send(self) -> None:
        if self._useless:
            return
        groups: list[Sequence[Question]] = [[question] for question in self._comparisons]
        self._comparisons = []
        groups.extend(self._leaving())
        for group in groups:
            self._under_way += len(group)
            future = self._background.start(self._ask(group))
            self._sent.add(future)
            future.add_done_callback(self._sent.discard)

    def _leaving(self) -> list[Sequence[Question]]:
        """The labels that go now; those whose group is not full wait while others are under way."""
        return list(self._waiting.leave(everyone=self._exhausted or not self._under_way))

    async def _deliver(self, group: Sequence[Question], emit: Emit) -> None:
        await ask_group(self._desk, group, emit)

    async def _ask(self, group: Sequence[Question]) -> None:
        left = len(group)
        open_questions = Counter(group)
        trace = trail()  # this task's own
        error: Exception | None = OracleUnavailable("the oracle was closed while it was asked")

        def emit(answer: Answer) -> None:
            nonlocal left
            left -= 1
            open_questions[answer.question] -= 1
            self._arrived.put(answer)

        try:
            await self._deliver(group, emit)
            error = None
        except Exception as problem:
            error = problem
        finally:
            free = [] if trace.in_doubt else [one for one in open_questions.elements() if one not in trace.paid]
            self._arrived.put(Ended(left, error, free if isinstance(error, OracleUnavailable) else ()))

    def _next_answers(self) -> Iterator[Answer]:
        """Whatever has arrived, at least one thing."""
        arrived = [self._arrived.get()]
        while not self._arrived.empty():
            arrived.append(self._arrived.get())
        for item in arrived:
            if isinstance(item, Answer):
                self._under_way -= 1
                yield item
            else:
                self._under_way -= item.unanswered
                self._unasked.extend(item.unasked)
                if item.error is not None:
                    self._error = self._error or item.error
                    self._exhausted = self._useless = True
