"""A new feature that means what a known one means is asked about where that is in doubt, and not labelled in full."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.made import texts
from twothirds.discovery import Comparison, Described, Duplicates, Kind, Labels
from twothirds.flows.discover.findings import Finding
from twothirds.flows.discover.loop import Asker, Limits, Loop
from twothirds.flows.discover.same_questions import DuplicateCheck, SameQuestions
from twothirds.models import Answer, Compare, Elicited, Feature, OracleUnavailable, Same, Verdict, Votes
from twothirds.models.oracle import BudgetExhausted

N = 120
RNG = np.random.default_rng(2)
HAT = (RNG.random(N) < 0.4).astype(np.int8)
BEARD = (RNG.random(N) < 0.4).astype(np.int8)
TRUTH = {"hat": HAT, "headwear": HAT, "beard": BEARD}


class Judge:
    """Says that a hat is headwear, and counts."""

    def __init__(self, *verdicts: Verdict, stopped: Exception | None = None) -> None:
        self.asked: list[Same] = []
        self._verdicts, self._stopped = verdicts, stopped

    def __call__(self, questions: list[Same]) -> Elicited:
        self.asked += questions
        if self._stopped is not None:
            return Elicited([None] * len(questions), self._stopped)  # type: ignore[arg-type]
        verdicts = [self._verdicts[one.voter] if self._verdicts else self._right(one) for one in questions]
        return Elicited([Answer(one, said, "judge", cost=7) for one, said in zip(questions, verdicts, strict=True)])

    @staticmethod
    def _right(question: Same) -> Verdict:
        return Verdict.YES if {one.name for one in question.pair} == {"hat", "headwear"} else Verdict.NO


def noisy(labels: Labels, seed: int) -> Labels:
    return (labels ^ (np.random.default_rng(seed).random(N) < 0.05)).astype(np.int8)


def candidate(name: str, seed: int = 0) -> tuple[Described, Labels]:
    return Described(name, f"It shows a {name}."), noisy(TRUTH[name], seed)


def test_what_looks_alike_is_asked_about_until_it_is_sure() -> None:
    judge = Judge()
    duplicates = Duplicates(SameQuestions(judge))
    found = duplicates.among([candidate("headwear", 1), candidate("beard", 2)], [candidate("hat", 3)])
    assert found == {0: Described("hat", "It shows a hat.")}
    assert [question.voter for question in judge.asked] == [0, 1], "in other words, so one yes is not enough"


def test_two_new_ones_of_one_round_are_reported_too_and_both_lead_to_the_known_one() -> None:
    duplicates = Duplicates(SameQuestions(Judge(Verdict.YES, Verdict.YES)))
    found = duplicates.among([candidate("headwear", 1), candidate("headwear", 4)], [candidate("hat", 3)])
    assert {other.name for other in found.values()} == {"hat"}
    assert len(found) == 2


def test_a_no_is_believed_and_nothing_is_asked_twice() -> None:
    judge = Judge(Verdict.NO)
    duplicates = Duplicates(SameQuestions(judge))
    for _ in range(3):
        assert duplicates.among([candidate("headwear", 1)], [candidate("hat", 3)]) == {}
    assert len(judge.asked) == 1
    assert duplicates.denied(candidate("hat")[0], candidate("headwear")[0])


def test_who_cannot_answer_is_not_asked_again_and_a_budget_ends_it() -> None:
    lost = Judge(stopped=OracleUnavailable("away"))
    questions = SameQuestions(lost)
    duplicates = Duplicates(questions)
    for _ in range(2):
        assert duplicates.among([candidate("headwear", 1)], [candidate("hat", 3)]) == {}
    assert len(lost.asked) == 1
    assert questions.stopped is None
    used_up = BudgetExhausted("used up")
    for judge, stopped in ((Judge(stopped=used_up), used_up), (Judge(Verdict.REFUSED), None)):
        questions = SameQuestions(judge)
        assert Duplicates(questions).among([candidate("headwear", 1)], [candidate("hat", 3)]) == {}
        assert questions.stopped is stopped


class Named:
    """Proposes the same comparison over and over; remembers what it learned."""

    unresolved = 1.0

    def __init__(self) -> None:
        self.learned: list[list[str]] = []

    def next_questions(self, k: int) -> list[Comparison]:
        return [Comparison(Kind.TWO_OF_THREE, (0, 1, 2)) for _ in range(k)]

    def know(self, feature: str, labels: Labels) -> None:
        pass

    def learn(self, question: Comparison, features: Sequence[str], labels: Sequence[Labels]) -> None:  # noqa: ARG002
        self.learned.append(list(features))


def discovered(names: list[str]) -> tuple[list[Finding], Named, Judge, int]:
    judge, strategy, left, asked = Judge(), Named(), list(names), [0]

    def compare(questions: list[Compare]) -> Elicited:
        name = left.pop(0)
        return Elicited([Answer(questions[0], Verdict.FEATURE, "x", Feature(name, f"It shows a {name}."), (0, 1))])

    def label(features: list[Feature]) -> Votes:
        votes = Votes.empty(features, N, 1)
        for place, feature in enumerate(features):
            asked[0] += N
            votes.value[place, :, 0] = noisy(TRUTH[feature.name], len(feature.name))
        return votes

    loop = Loop(strategy, texts(N), Limits(len(names)), Asker(compare, label), DuplicateCheck(SameQuestions(judge)))
    return loop.run().findings, strategy, judge, asked[0]


def test_a_duplicate_does_not_count_and_the_strategy_learns_the_known_one() -> None:
    findings, strategy, judge, labels = discovered(["hat", "beard", "headwear"])
    last = findings[-1]
    assert str(last.twin) == "same as hat"
    assert last.repeats
    assert labels == 3 * N
    assert strategy.learned == [["hat"], ["beard"], ["hat"]]
    assert last.cost == 7 * len(judge.asked), "what it took to tell is part of its cost"
    assert [one.repeats for one in findings] == [False, False, True]
