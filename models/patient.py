"""An oracle around one whose answers take their time: it waits for them instead of giving up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from models.oracle import Answer, AnswersPending, Money, Oracle, Question


class Patient:
    """Asks again for what is missing whenever `wait` returns. `wait` is told what is pending, and may raise."""

    def __init__(self, oracle: Oracle, wait: Callable[[AnswersPending], None]) -> None:
        self._oracle = oracle
        self._wait = wait
        self.identity = oracle.identity
        self.width = oracle.width

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        return self._oracle.estimate(questions)

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        missing = dict.fromkeys(questions)
        while missing:
            try:
                for answer in self._oracle.ask(list(missing)):
                    missing.pop(answer.question, None)
                    yield answer
                return
            except AnswersPending as pending:
                self._wait(pending)
