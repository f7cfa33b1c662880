"""Labels through the Batch API: half the price, whatever order they come in, and never paid for twice after a kill."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from pydantic import SecretStr

from tests.support.fake_openai import CHAT, BatchManners, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import Answer, Compare, Question, Verdict
from twothirds.models.prices import Price

PRICE = Price(Decimal("0.15"), Decimal("0.60"))
KEY = "sk-marked-secret"
EXAMPLES = texts(32)


def oracle_of(server: FakeOpenAI, memory: dict[str, Any] | None = None, **changes: Any) -> OpenAIOracle:
    base = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr(KEY), price=PRICE, retry_delay=0.01)
    by_batch = replace(base, provider_batch=True, batch_poll=0.01, batch_wait=100.0)
    return OpenAIOracle(replace(by_batch, **changes), memory)


def test_labels_go_in_one_batch_at_half_the_price(server: FakeOpenAI) -> None:
    questions = labels(WORDS, EXAMPLES)
    with oracle_of(server) as oracle:
        answers = list(oracle.ask(questions))
        bounds = dict(zip(questions, oracle.estimate(questions), strict=True))
    assert len(answers) == 160
    assert wrong(answers) == []
    assert len(server.batches.made) == 1
    assert server.count(CHAT) == 1  # to find out about the server
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
    assert all(answer.cost <= bounds[answer.question] for answer in answers)  # type: ignore[index]


def test_comparisons_do_not_wait_for_the_batch(server: FakeOpenAI) -> None:
    server.batches.manners = BatchManners(polls=5)
    questions: list[Question] = [*labels(["cat"], EXAMPLES), Compare(Kind.PAIR, (EXAMPLES[1], EXAMPLES[2]))]
    with oracle_of(server) as oracle:
        answers = list(oracle.ask(questions))
    assert answers[0].verdict is Verdict.FEATURE
    assert len(answers) == 33
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)


def test_what_never_finishes_is_unreadable(server: FakeOpenAI) -> None:
    server.batches.manners = BatchManners(failing=1.0)
    with oracle_of(server, attempts=2) as oracle:
        answers = list(oracle.ask(labels(["cat"], EXAMPLES)))
    assert {answer.verdict for answer in answers} == {Verdict.UNREADABLE}
    assert {answer.note for answer in answers} == {"not reached in 2 batches"}
    assert len(server.batches.made) == 2


def test_a_run_killed_while_it_collects_pays_for_nothing_twice(server: FakeOpenAI) -> None:
    """Some answers were kept before the kill: the questions asked again are others than those that were sent."""
    memory: dict[str, Any] = {}
    kept: list[Answer] = []
    with oracle_of(server, memory, labels_per_request=7) as first:
        for answer in first.ask(labels(WORDS, EXAMPLES)):
            kept.append(answer)
            if len(kept) == 45:
                break
    left = [question for question in labels(WORDS, EXAMPLES) if question not in {answer.question for answer in kept}]
    assert len(left) == 115
    with oracle_of(server, memory, labels_per_request=7) as second:
        collected = list(second.ask(left))
    assert len(collected) == 115
    assert wrong([*kept, *collected]) == []
    assert len(server.batches.made) == 1
    assert sum(answer.cost for answer in [*kept, *collected]) == server.spent_on_questions(PRICE)


def test_new_questions_beside_old_ones_go_into_a_batch_of_their_own(server: FakeOpenAI) -> None:
    memory: dict[str, Any] = {}
    for words in (["cat"], ["cat", "dog"]):
        with oracle_of(server, memory) as oracle:
            assert wrong(oracle.ask(labels(words, EXAMPLES))) == []
    assert [len(batch.lines) for batch in server.batches.made] == [2, 2]


def test_another_model_or_voter_finds_no_batch_of_this_one(server: FakeOpenAI) -> None:
    server.abilities = replace(server.abilities, models=("gpt-4o-mini", "gpt-4o"))
    for model, voter in (("gpt-4o-mini", 0), ("gpt-4o", 0), ("gpt-4o-mini", 1)):
        with oracle_of(server, model=model) as oracle:
            assert len(list(oracle.ask(labels(["cat"], EXAMPLES, voter)))) == 32
    assert len(server.batches.made) == 3


def test_a_create_whose_reply_was_lost_is_not_sent_twice(server: FakeOpenAI) -> None:
    server.batches.manners = BatchManners(loses_create=True)
    with oracle_of(server) as oracle:
        answers = list(oracle.ask(labels(["cat"], EXAMPLES)))
    assert wrong(answers) == []
    assert len(server.batches.made) == 1


def test_a_large_errand_goes_in_several_batches(server: FakeOpenAI) -> None:
    with oracle_of(server, batch_questions=50) as oracle:
        answers = list(oracle.ask(labels(WORDS, EXAMPLES)))
    assert wrong(answers) == []
    assert len(answers) == 160
    assert 4 <= len(server.batches.made) <= 5


def test_the_key_is_in_no_file_that_is_sent(server: FakeOpenAI) -> None:
    with oracle_of(server) as oracle:
        list(oracle.ask(labels(["cat"], EXAMPLES)))
    assert all(KEY.encode() not in content for content in server.batches.files.values())
