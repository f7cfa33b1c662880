"""Prompts of labels on the wire: texts share requests, and a provider's cache hits."""

from __future__ import annotations

from decimal import Decimal

from models.openai.config import OpenAIConfig
from models.openai.oracle import OpenAIOracle
from models.oracle import Feature, Label
from models.prices import Price
from sources import load_dataset
from tests.support.fake_openai import Failings, LifelikeServer

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))


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
