"""A question that is asked again is asked in another form: other words, another order, a repair, fewer labels. The
book of the server holds no request twice, but for those that failed on their way."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from tests.support.fake_openai import CHAT, DECISIONS, LABELS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Choose, Compare, Feature, Question, Verdict, Why
from twothirds.models.prices import Price

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
EXAMPLES = texts(8)
QUESTIONS: list[Question] = [
    Compare(Kind.TWO_OF_THREE, (EXAMPLES[1], EXAMPLES[2], EXAMPLES[3])),
    Compare(Kind.LEFT_RIGHT, (EXAMPLES[1],), (EXAMPLES[2],), voter=1),
    Why(Feature("cat", "It mentions a cat."), EXAMPLES[1]),
    Choose(Feature("animal"), (Feature("cat"), Feature("dog")), EXAMPLES[1]),
    *labels(["cat", "dog"], EXAMPLES),
    *labels(["tree"], EXAMPLES[:1], voter=1),
]
UNUSABLE = ("prose", "empty", "cut short", "wrong shape", "half the labels", "refusal", "contradiction")


def repeated_forms(server: FakeOpenAI) -> int:
    """Requests that were sent before in the same form, whatever their seed."""
    bodies = [{key: value for key, value in body.items() if key != "seed"} for body in all_bodies(server)]
    counts = Counter(json.dumps(body, sort_keys=True) for body in bodies)
    return counts.total() - len(counts)


def all_bodies(server: FakeOpenAI) -> list[dict[str, Any]]:
    return server.bodies(CHAT) + server.bodies(DECISIONS)


def config(server: FakeOpenAI, temperature: float | None = 0.0) -> OpenAIConfig:
    return OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE, temperature=temperature)


@pytest.mark.parametrize("temperature", [0.0, None])
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("abilities", [Abilities(), Abilities(decisions=True), Abilities(formats=())])
def test_no_question_is_sent_twice_in_the_same_form(
    abilities: Abilities, share: float, temperature: float | None
) -> None:
    with FakeOpenAI(FakeModel(WORDS), abilities) as server, OpenAIOracle(config(server, temperature)) as oracle:
        oracle.connect()
        server.misbehave(share, UNUSABLE, seed=3)
        answers = list(oracle.ask(QUESTIONS))
        assert len(answers) == len(QUESTIONS)
        assert len(all_bodies(server)) > len(QUESTIONS) // 2
        assert repeated_forms(server) == 0


def test_a_server_that_ignores_formats_is_probed_in_other_words() -> None:
    with FakeOpenAI(FakeModel(WORDS), Abilities(ignores_format=True)) as server, OpenAIOracle(config(server)) as oracle:
        oracle.connect()
        assert server.count(CHAT) > 3
        assert repeated_forms(server) == 0


def test_what_an_earlier_run_has_asked_in_vain_is_asked_anew_in_other_forms() -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server, OpenAIOracle(config(server)) as oracle:
        oracle.connect()
        server.misbehave(1.0, ("wrong shape",))
        question = QUESTIONS[0]
        for _ in range(2):
            [answer] = oracle.ask([question])
            assert answer.verdict is Verdict.UNREADABLE
            oracle.ask_anew([question], since=0.0)
        assert repeated_forms(server) == 0


def test_a_repair_is_sent_once_and_says_what_was_wrong() -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server, OpenAIOracle(config(server)) as oracle:
        oracle.connect()
        sent = server.count(CHAT)
        server.misbehave(1.0, ("wrong shape",))
        [answer] = oracle.ask(QUESTIONS[:1])
        turns = [[turn["role"] for turn in body["messages"]] for body in server.bodies(CHAT)[sent:]]
        assert [("assistant" in roles) for roles in turns] == [False, True, False, False]
        assert "it holds no JSON object" in server.bodies(CHAT)[sent + 1]["messages"][-1]["content"]
        assert [body["temperature"] for body in server.bodies(CHAT)[sent:]] == [0.0, 0.7, 0.7, 0.7]
        assert answer.usage.requests == 4


def test_only_the_labels_are_asked_again_that_a_cut_reply_lacks() -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server, OpenAIOracle(config(server)) as oracle:
        oracle.connect()
        server.script(LABELS, ["cut short"])
        answers = list(oracle.ask(labels(["cat"], EXAMPLES)))
        assert len(answers) == len(EXAMPLES)
        assert not wrong(answers)
        first, *later = [
            len(body["response_format"]["json_schema"]["schema"]["required"])
            for body in server.bodies(CHAT)
            if body["response_format"]["json_schema"]["name"] == "labels"
        ]
        assert first == len(EXAMPLES)
        assert 0 < sum(later) < first
