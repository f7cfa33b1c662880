"""Prompts of labels on the wire: texts share requests, and a provider's cache hits."""

from __future__ import annotations

from decimal import Decimal

import pytest

from models.openai.config import OpenAIConfig
from models.openai.oracle import OpenAIOracle
from models.oracle import Feature, Label
from models.prices import Price
from sources import load_dataset
from tests.support.fake_openai import CHAT, Failings, FakeOpenAI, LifelikeServer
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))


def test_several_short_texts_share_a_request_with_all_their_features(server: FakeOpenAI) -> None:
    with OpenAIOracle(OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE)) as oracle:
        oracle.connect()
        before = server.count(CHAT)
        answers = list(oracle.ask(labels(WORDS, texts(50))))
    assert wrong(answers) == []
    assert len(answers) == 250
    assert server.count(CHAT) - before == 2


@pytest.mark.parametrize("fault", ["half the labels", "wrong keys", "contradiction", "cut short", "refusal"])
def test_cells_that_a_reply_lacks_or_garbles_are_asked_again_and_shift_no_other(server: FakeOpenAI, fault: str) -> None:
    with OpenAIOracle(OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE)) as oracle:
        oracle.connect()
        server.script(CHAT, [fault, fault, None, fault])
        answers = list(oracle.ask(labels(WORDS, texts(32))))
        assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
    assert wrong(answers) == []
    assert len(answers) == 160


def test_one_request_goes_ahead_and_the_others_find_its_beginning_in_the_cache() -> None:
    dataset = load_dataset("datasets/zoo")
    exact = Failings(prose=0, too_many=0, broken=0, slow=0, seconds=0.02)
    features = [Feature(f"trait number {number}", f"The animal shows trait number {number}.") for number in range(45)]
    asked = [Label(feature, example) for example in dataset.examples[:40] for feature in features]
    with LifelikeServer(dataset, exact, price=PRICE) as server:
        config = OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE, concurrency=8)
        with OpenAIOracle(config) as oracle:
            answers = list(oracle.ask(asked))
        cached = [charge.usage["prompt_tokens_details"]["cached_tokens"] for charge in server.book_of_questions]
        assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
    assert len(answers) == len(asked)
    assert len(cached) == 8
    assert sum(tokens >= 1024 for tokens in cached) == 7
