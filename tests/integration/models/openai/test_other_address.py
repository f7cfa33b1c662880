"""Two servers with a model of one name, and one store: neither is served the other's answers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Answer
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
QUESTIONS = labels(["cat"], texts(8))


def asked(server: FakeOpenAI, store: Store, run: str, **changes: Any) -> list[Answer]:
    store.runs.begin(run, run, name="n", flow="f", dataset="d", oracle="o", settings={})
    config = replace(OpenAIConfig("gpt-4o-mini", server.base_url, price=PRICE), **changes)
    with OpenAIOracle(config, {}, store) as oracle:
        oracle.connect()
        return list(CachedOracle(oracle, RunLedger(store, run, run)).ask(QUESTIONS))


def test_a_model_of_the_same_name_elsewhere_gives_its_own_answers(server: FakeOpenAI, store: Store) -> None:
    with FakeOpenAI(FakeModel(["dog"])) as other:  # which finds no cat anywhere
        first = asked(server, store, "first")
        assert wrong(first) == []
        others = asked(other, store, "second")
        assert not any(answer.cached for answer in others)
        assert {answer.verdict for answer in others} != {answer.verdict for answer in first}
        again = asked(server, store, "third")
    assert all(answer.cached for answer in again)
    assert wrong(again) == []


def test_a_server_that_has_moved_goes_on_under_the_name_that_it_is_given(server: FakeOpenAI, store: Store) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as moved:
        asked(server, store, "first", served_by="ours")
        assert all(answer.cached for answer in asked(moved, store, "second", served_by="ours"))
        assert len(moved.book_of_questions) == 0
