"""A server that fails, lies and garbles: nothing is lost, no row is shifted, every reply that had usage is booked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.fake_openai import CHAT, Abilities, FakeOpenAI
from tests.support.fake_openai.examples import labels, text_example, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Answer, Compare, OracleUnavailable, Question, Verdict
from twothirds.models.prices import Price

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
KEY = "sk-marked-secret"
EXAMPLES = texts(32)
TWO_OF_THREE = Compare(Kind.TWO_OF_THREE, (EXAMPLES[1], EXAMPLES[2], EXAMPLES[3]))
REFUSALS = ["refusal", "refusal in words", "filtered"]

Build = Callable[..., OpenAIOracle]


@pytest.fixture
def oracle_of(server: FakeOpenAI) -> Iterator[Build]:
    opened: list[OpenAIOracle] = []

    def build(**changes: Any) -> OpenAIOracle:
        base = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr(KEY), price=PRICE, retry_delay=0.01)
        opened.append(OpenAIOracle(replace(base, **changes)))
        opened[-1].connect()  # finds out about the server before it misbehaves
        return opened[-1]

    yield build
    for oracle in opened:
        oracle.close()


def asked(oracle: OpenAIOracle, questions: list[Question]) -> list[Answer]:
    answers = list(oracle.ask(questions))
    assert len(answers) == len(questions)
    return answers


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_refusal_is_an_answer_with_its_cost(server: FakeOpenAI, oracle_of: Build, fault: str) -> None:
    oracle = oracle_of()
    server.misbehave(1.0, [fault])
    answers = asked(oracle, [TWO_OF_THREE, *labels(["cat"], EXAMPLES[:1])])
    assert [answer.verdict for answer in answers] == [Verdict.REFUSED] * 2
    assert all(answer.note for answer in answers)
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
    assert server.count(CHAT) == 5  # each is declined twice before it is believed


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_refused_group_is_split_until_the_others_are_answered(
    server: FakeOpenAI, oracle_of: Build, fault: str
) -> None:
    oracle = oracle_of()
    server.script(CHAT, [fault, fault, None, None, None, None])
    answers = asked(oracle, [*labels(["cat"], EXAMPLES[:16])])
    assert wrong(answers) == []
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)


@pytest.mark.parametrize("fault", ["no usage", "absurd usage"])
def test_a_reply_without_credible_usage_is_booked_at_its_bound(
    server: FakeOpenAI, oracle_of: Build, fault: str
) -> None:
    oracle = oracle_of(asks=1)
    first = asked(oracle, [*labels(["dog"], EXAMPLES[:1])])
    server.script(CHAT, [fault])
    question = labels(["cat"], EXAMPLES[:1])
    [answer] = asked(oracle, [*question])
    assert wrong([answer]) == []
    assert first[0].cost < answer.cost == oracle.estimate(question)[0]


def test_labels_too_long_for_one_request_are_split_and_one_alone_is_refused(
    server: FakeOpenAI, oracle_of: Build
) -> None:
    server.abilities = Abilities(context=700)
    oracle = oracle_of()
    examples = [text_example(f"{number} cat " + "word " * 150) for number in range(6)]
    endless = text_example("dog " * 2_000)
    answers = {a.question: a for a in asked(oracle, [*labels(["cat"], [*examples, endless])])}
    refused = [question for question, answer in answers.items() if answer.verdict is Verdict.REFUSED]
    assert refused == labels(["cat"], [endless])
    assert "longer than" in answers[refused[0]].note
    assert sum(answer.verdict is Verdict.YES for answer in answers.values()) == 6
    assert sum(answer.cost for answer in answers.values()) == server.spent_on_questions(PRICE)


def test_what_the_provider_declines_is_refused_alone(server: FakeOpenAI, oracle_of: Build) -> None:
    server.abilities = Abilities(forbidden="secretword")
    oracle = oracle_of()
    bad = text_example("a secretword and a cat")
    answers = {a.question: a for a in asked(oracle, [*labels(["cat"], [*EXAMPLES[:9], bad])])}
    assert answers[labels(["cat"], [bad])[0]].verdict is Verdict.REFUSED
    assert len(wrong(answers.values())) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("429", "lower concurrency"),
        ("429 for an hour", "lower concurrency"),
        ("no quota", "add credit and run again"),
        ("500", "run again later"),
        ("silence", "check that the server runs"),
        ("cut", "check that the server runs"),
    ],
)
def test_a_server_that_does_not_recover_is_one_line(
    server: FakeOpenAI, oracle_of: Build, fault: str, words: str
) -> None:
    oracle = oracle_of(attempts=3, labels_per_request=4, concurrency=2)
    server.script(CHAT, [None])
    server.misbehave(1.0, [fault])
    answers: list[Answer] = []
    with pytest.raises(OracleUnavailable, match=words) as caught:
        answers.extend(oracle.ask(labels(["cat"], EXAMPLES)))
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert wrong(answers) == []
    assert server.count(CHAT) < 12
