"""Labels through the Batch API: half the price, whatever order they come in, and never paid for twice after a kill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.integration.models.openai.conftest import KEY, PRICE, Build
from tests.support.asking import CheckedMeter, ask, planned, replies
from tests.support.fake_openai import CHAT, BatchManners, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import AnswersPending, Compare, Question, Verdict

EXAMPLES = texts(32)


@pytest.fixture
def batching(oracle_of: Build) -> Build:
    return lambda memory=None, **changes: oracle_of(
        memory, **{"provider_batch": True, "batch_poll": 0.01, "batch_wait": 100.0} | changes
    )


def test_labels_go_in_one_batch_at_half_the_price(server: FakeOpenAI, batching: Build) -> None:
    oracle, meter = batching(), CheckedMeter()
    assert oracle.traits.slow
    told = list(replies(oracle, labels(WORDS, EXAMPLES), meter))
    answers = [answer for reply in told for answer in reply.answers.values()]
    assert len(answers) == 160
    assert wrong(answers) == []
    assert len(server.batches.made) == 1
    assert server.count(CHAT) == 1  # to find out about the server
    assert sum(reply.cost for reply in told) == server.spent_on_questions(PRICE)
    assert all(reply.cost <= reply.request.bound == meter.most[reply.request] for reply in told)
    assert {meter.batches[reply.request] for reply in told} == {server.batches.made[0].id}
    assert all(KEY.encode() not in content for content in server.batches.files.values())


def test_comparisons_do_not_wait_for_the_batch(server: FakeOpenAI, batching: Build) -> None:
    server.batches.manners = BatchManners(polls=5)
    questions: list[Question] = [*labels(["cat"], EXAMPLES), Compare(Kind.PAIR, (EXAMPLES[1], EXAMPLES[2]))]
    answers = list(ask(batching(), questions))
    assert answers[0].verdict is Verdict.FEATURE
    assert len(answers) == 33
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)


def test_what_never_finishes_is_unreadable(server: FakeOpenAI, batching: Build) -> None:
    server.batches.manners = BatchManners(failing=1.0)
    answers = list(ask(batching(attempts=2), labels(["cat"], EXAMPLES)))
    assert {answer.verdict for answer in answers} == {Verdict.UNREADABLE}
    assert {answer.note for answer in answers} == {"not reached in 2 batches"}
    assert len(server.batches.made) == 2


def test_a_run_killed_while_it_collects_pays_for_nothing_twice(server: FakeOpenAI, batching: Build) -> None:
    """Some answers were kept before the kill: the questions asked again are others than those that were sent."""
    memory: dict[str, Any] = {}
    answers = ask(batching(memory, labels_per_request=7), labels(WORDS, EXAMPLES))
    kept = [next(answers) for _ in range(45)]
    left = [question for question in labels(WORDS, EXAMPLES) if question not in {answer.question for answer in kept}]
    collected = list(ask(batching(memory, labels_per_request=7), left))
    assert len(collected) == 115
    assert wrong([*kept, *collected]) == []
    assert len(server.batches.made) == 1
    assert sum(answer.cost for answer in [*kept, *collected]) == server.spent_on_questions(PRICE)


def test_a_batch_that_is_waited_for_too_long_is_adopted_with_the_money_that_is_booked(
    server: FakeOpenAI, batching: Build
) -> None:
    memory, meter = dict[str, Any](), CheckedMeter()
    server.batches.manners = BatchManners(polls=1000)
    with pytest.raises(AnswersPending, match=r"batch_\d+ at 127.* is still running, .* run the same command again"):
        list(ask(batching(memory, batch_wait=0.02), labels(["cat"], EXAMPLES), meter))
    assert set(meter.batches.values()) == {server.batches.made[0].id}
    server.batches.finish()
    oracle, meter = batching(memory), CheckedMeter()
    adopted = [replace(request, adopted=True) for request in planned(oracle, labels(["cat"], EXAMPLES))]
    told = list(oracle.send(adopted, meter))
    assert wrong(answer for reply in told for answer in reply.answers.values()) == []
    assert meter.attempts == {}, "it has left before"
    assert sum(reply.cost for reply in told) == server.spent_on_questions(PRICE)
    assert len(server.batches.made) == 1


def test_what_is_asked_again_on_purpose_is_not_answered_by_an_earlier_batch(
    server: FakeOpenAI, batching: Build
) -> None:
    memory: dict[str, Any] = {}
    for since in (0.0, 4e9):
        oracle = batching(memory)
        requests = [replace(request, since=since) for request in planned(oracle, labels(["cat"], EXAMPLES))]
        assert len(list(oracle.send(requests, CheckedMeter()))) == 2
    assert len(server.batches.made) == 2
    bodies = [[line["body"]["messages"] for line in batch.lines] for batch in server.batches.made]
    assert bodies[0] != bodies[1]


def test_new_questions_beside_old_ones_go_into_a_batch_of_their_own(server: FakeOpenAI, batching: Build) -> None:
    memory: dict[str, Any] = {}
    for words in (["cat"], ["cat", "dog"]):
        assert wrong(ask(batching(memory), labels(words, EXAMPLES))) == []
    assert [len(batch.lines) for batch in server.batches.made] == [2, 2]


def test_another_model_or_voter_finds_no_batch_of_this_one(server: FakeOpenAI, batching: Build) -> None:
    server.abilities = replace(server.abilities, models=("gpt-4o-mini", "gpt-4o"))
    for served_by, voter in (("one", 0), ("another", 0), ("one", 1)):
        assert len(list(ask(batching(served_by=served_by), labels(["cat"], EXAMPLES, voter)))) == 32
    assert len(server.batches.made) == 3


def test_a_create_whose_reply_was_lost_is_not_sent_twice(server: FakeOpenAI, batching: Build) -> None:
    server.batches.manners = BatchManners(loses_create=True)
    assert wrong(ask(batching(), labels(["cat"], EXAMPLES))) == []
    assert len(server.batches.made) == 1


def test_many_labels_go_in_several_batches(server: FakeOpenAI, batching: Build) -> None:
    answers = list(ask(batching(batch_questions=50, labels_per_request=10), labels(WORDS, EXAMPLES)))
    assert wrong(answers) == []
    assert len(answers) == 160
    assert len(server.batches.made) == 4
