"""Questions about words, put to every kind of oracle: do two features mean the same, and why has an example one?"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from tests.support.asking import ask, crowd_in
from tests.support.fake_openai import Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import text_example
from tests.support.fake_openai.mind import Page
from tests.support.made import crowd_of, random_truth, texts
from twothirds.models.cached import CachedOracle
from twothirds.models.crowd import Members
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Answer, AnswersPending, Feature, Label, Question, Same, Verdict, Why
from twothirds.models.people import HumanOracle, RecordedVotes
from twothirds.models.prices import Price
from twothirds.store import Store
from twothirds.store.review.leases import LeaseTerms

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
CAT, TOM, DOG = Feature("cat", "It shows a cat."), Feature("Cat", "A cat is there."), Feature("dog", "It shows a dog.")
LEVELS = {"decisions": Abilities(decisions=True), "schema": Abilities(), "text": Abilities(formats=(), chatty=True)}


def recorded(store: Store, oracle: OpenAIOracle) -> CachedOracle:
    store.runs.begin("run", "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
    return CachedOracle(oracle, RunLedger(store, "run", "scope"))


@pytest.mark.parametrize("level", LEVELS)
def test_a_server_is_asked_once_for_the_price_that_is_booked(store: Store, level: str) -> None:
    asked: list[Question] = [Same.of(CAT, TOM), Same.of(CAT, DOG), Why(CAT, text_example("a cat sleeps here"))]
    with FakeOpenAI(FakeModel(["cat", "dog"]), LEVELS[level]) as server:
        config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("key"), price=PRICE)
        with OpenAIOracle(config) as oracle:
            asking = recorded(store, oracle)
            first = {answer.question: answer for answer in asking.ask(asked)}
            again = {answer.question: answer for answer in asking.ask([*asked[1:], Same.of(TOM, CAT)])}
        assert [first[one].verdict for one in asked] == [Verdict.YES, Verdict.NO, Verdict.YES]
        assert "cat" in first[asked[2]].quote
        assert first[asked[2]].reason
        assert sum(answer.cost for answer in first.values()) == server.spent_on_questions(PRICE)
    assert all(answer.cached and answer == first[question] for question, answer in again.items())
    assert {line.kind for line in store.costs.lines("run")} >= {"same", "why"}


def test_a_quote_that_is_not_in_the_text_is_asked_for_again(store: Store) -> None:
    class Inventive(FakeModel):
        calls = 0

        def why(self, page: Page) -> dict[str, object]:  # noqa: ARG002
            self.calls += 1
            return {"has": True, "reason": "It says so.", "quote": "a cat" if self.calls > 1 else "a kitten"}

    with FakeOpenAI(Inventive()) as server:
        config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("key"), price=PRICE)
        with OpenAIOracle(config) as oracle:
            [answer] = recorded(store, oracle).ask([Why(CAT, text_example("a cat sleeps"))])
    assert (answer.quote, answer.usage.requests) == ("a cat", 2)
    assert "not in the text" in answer.note


def test_people_mark_pairs_as_they_mark_examples(store: Store) -> None:
    oracle = HumanOracle(store.queue)
    pairs = [Same.of(CAT, TOM), Same.of(CAT, DOG)]
    with pytest.raises(AnswersPending):
        list(ask(oracle, pairs))
    person = store.queue.people.add("Ann").id
    shown = store.queue.leases.next_page(person, LeaseTerms())
    assert {one.question["feature"][0] for one in shown} == {"mean the same"}
    examples = store.queue.questions.examples([one.question["example"] for one in shown])
    said = {one.id: "Cat (" in str(examples[one.question["example"]]["text"]) for one in shown}
    store.queue.votes.give_labels(person, said, [], submission="s")
    assert [answer.verdict for answer in ask(oracle, pairs)] == [Verdict.YES, Verdict.NO]


def test_recorded_votes_answer_by_the_two_names(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("example,feature,worker,label\nCat = cat,mean the same,ann,1\n")
    answers = list(ask(RecordedVotes(tmp_path / "votes.csv"), [Same.of(CAT, TOM), Same.of(CAT, DOG), why_cat()]))
    assert [answer.verdict for answer in answers] == [Verdict.YES, Verdict.REFUSED, Verdict.REFUSED]


def why_cat() -> Why:
    return Why(CAT, text_example("a cat"))


def test_a_simulated_crowd_knows_its_own_features_apart() -> None:
    truth = random_truth(6, 3)
    oracle = crowd_of(truth)
    a, b, unknown = Feature("feature a"), Feature("feature b"), Feature("else")
    answers = list(ask(oracle, [Same.of(a, b), Same.of(a, Feature("feature a", "again")), Same.of(a, unknown)]))
    assert [answer.verdict for answer in answers] == [Verdict.NO, Verdict.YES, Verdict.UNREADABLE]
    [reason] = ask(oracle, [Why(a, texts(6)[0])])
    assert reason.verdict is (Verdict.YES if truth[0, 0] else Verdict.NO)
    assert reason.quote in (texts(6)[0].text or "")


def test_in_a_mixed_crowd_those_who_label_say_why_and_what_is_the_same(store: Store) -> None:
    truth = random_truth(6, 3)
    labels, elicits = crowd_of(truth), crowd_of(np.zeros_like(truth))
    crowd = crowd_in(store, Members(elicits, labels))
    example, feature = texts(6)[0], Feature("feature a")
    asked: list[Question] = [Why(feature, example), Label(feature, example), Same.of(feature, Feature("feature b"))]
    answers: dict[Question, Answer] = {answer.question: answer for answer in crowd.ask(asked)}
    assert answers[asked[0]].verdict is answers[asked[1]].verdict
    assert answers[asked[2]].verdict is Verdict.NO
