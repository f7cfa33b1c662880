"""A server that fails, refuses and garbles: nothing is lost, no row is shifted, and no question is asked twice in the
same form: a repetition has other words, another order, a repair, or fewer labels."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.models.openai.conftest import KEY, PRICE, Build, config_of
from tests.support.asking import CheckedMeter, ask, learn, planned
from tests.support.fake_openai import CHAT, DECISIONS, LABELS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, text_example, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.openai import OpenAIOracle
from twothirds.models.oracle import (
    Answer,
    Choose,
    Compare,
    Feature,
    OracleUnavailable,
    Overcharged,
    Question,
    Reply,
    Verdict,
    Why,
)

EXAMPLES = texts(32)
TWO_OF_THREE = Compare(Kind.TWO_OF_THREE, (EXAMPLES[1], EXAMPLES[2], EXAMPLES[3]))
REFUSALS = ["refusal", "refusal in words", "filtered"]
UNUSABLE = ("prose", "empty", "cut short", "wrong shape", "half the labels", "refusal", "contradiction")
QUESTIONS: list[Question] = [
    TWO_OF_THREE,
    Compare(Kind.LEFT_RIGHT, (EXAMPLES[1],), (EXAMPLES[2],), voter=1),
    Why(Feature("cat", "It mentions a cat."), EXAMPLES[1]),
    Choose(Feature("animal"), (Feature("cat"), Feature("dog")), EXAMPLES[1]),
    *labels(["cat", "dog"], EXAMPLES[:8]),
    *labels(["tree"], EXAMPLES[:1], voter=1),
]


def asked(oracle: OpenAIOracle, questions: list[Question]) -> list[Answer]:
    answers = list(ask(oracle, questions))
    assert len(answers) == len(questions)
    return answers


def all_bodies(server: FakeOpenAI) -> list[dict[str, Any]]:
    return server.bodies(CHAT) + server.bodies(DECISIONS)


def repeated_forms(server: FakeOpenAI) -> int:
    """Requests that were sent before in the same form, whatever their seed."""
    bodies = [{key: value for key, value in body.items() if key != "seed"} for body in all_bodies(server)]
    counts = Counter(json.dumps(body, sort_keys=True) for body in bodies)
    return counts.total() - len(counts)


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
    [request] = planned(oracle, labels(["cat"], EXAMPLES[:1]))
    server.script(CHAT, [fault])
    [reply] = oracle.send([request], CheckedMeter())
    assert wrong(reply.answers.values()) == []
    assert reply.cost == reply.answers[0].cost == request.bound


def test_labels_too_long_for_one_request_are_split_and_one_alone_is_refused(
    server: FakeOpenAI, oracle_of: Build
) -> None:
    server.abilities = Abilities(context=700)
    examples = [text_example(f"{number} cat " + "word " * 150) for number in range(6)]
    endless = text_example("dog " * 2_000)
    answers = {a.question: a for a in asked(oracle_of(), [*labels(["cat"], [*examples, endless])])}
    refused = [question for question, answer in answers.items() if answer.verdict is Verdict.REFUSED]
    assert refused == labels(["cat"], [endless])
    assert "longer than" in answers[refused[0]].note
    assert sum(answer.verdict is Verdict.YES for answer in answers.values()) == 6
    assert sum(answer.cost for answer in answers.values()) == server.spent_on_questions(PRICE)


def test_what_the_provider_declines_is_refused_alone(server: FakeOpenAI, oracle_of: Build) -> None:
    server.abilities = Abilities(forbidden="secretword")
    bad = text_example("a secretword and a cat")
    answers = {a.question: a for a in asked(oracle_of(), [*labels(["cat"], [*EXAMPLES[:9], bad])])}
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
    oracle, meter = oracle_of(attempts=3, labels_per_request=4, concurrency=2), CheckedMeter()
    server.script(CHAT, [None])
    server.misbehave(1.0, [fault])
    told = list[Reply]()
    with pytest.raises(OracleUnavailable, match=words) as caught:
        told.extend(oracle.send(oracle.plan(labels(["cat"], EXAMPLES)), meter))
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    assert wrong(answer for reply in told for answer in reply.answers.values()) == []
    assert len(meter.attempts) <= 1 + 2 * 2, "no more begin than can soon be in flight"
    assert {reply.request for reply in told} == set(meter.attempts), "whatever has left has a last reply"
    assert len(meter.failures) == (0 if fault == "no quota" else server.count(CHAT) - 2)


def test_labels_that_are_there_are_told_before_the_others_are_asked_again(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle = oracle_of()
    server.script(CHAT, ["half the labels", "504"])
    first, last = oracle.send(oracle.plan(labels(["cat"], EXAMPLES[:8])), CheckedMeter())
    assert (first.done, last.done) == (False, True)
    assert 0 < len(first.answers) < len(last.answers) == 8
    assert first.answers.items() <= last.answers.items()
    assert (first.in_doubt, last.in_doubt > 0) == (0, True)
    assert last.cost == server.spent_on_questions(PRICE) > first.cost


def test_after_a_reply_above_its_bound_nothing_more_leaves(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle, meter = oracle_of(concurrency=4, grouping="none"), CheckedMeter()
    server.abilities = replace(server.abilities, overcharge=40)
    told = list[Reply]()
    with pytest.raises(
        Overcharged, match=r"openai:gpt-4o-mini at 127\.0\.0\.1.* charged 0\.00.* at most 0\.00.* run again"
    ):
        told.extend(oracle.send(oracle.plan(labels(["cat"], EXAMPLES)), meter))
    assert len(meter.attempts) == len(told) <= 4
    assert all(reply.overcharge and reply.cost == reply.overcharge.charged for reply in told if reply.answers)
    assert sum(reply.cost for reply in told) == server.spent_on_questions(PRICE)
    scale = max(reply.overcharge.scale for reply in told if reply.overcharge)
    raised = [replace(request, scale=scale) for request in planned(oracle, labels(["cat"], EXAMPLES))]
    ample = [replace(request, limit=request.limit * 1_000) for request in raised]
    assert len(list(oracle.send(ample, CheckedMeter()))) == 32, "bounds that are scaled by what was seen hold"


@pytest.mark.parametrize("fault", ["cut short", "wrong shape", "refusal in words", "half the labels"])
def test_lists_that_cannot_be_read_are_asked_again(server: FakeOpenAI, oracle_of: Build, fault: str) -> None:
    oracle = oracle_of(label_reply="names", asks=6)
    server.misbehave(0.25, [fault])
    assert wrong(asked(oracle, [*labels(WORDS, EXAMPLES)])) == []


# --- repetitions


@pytest.mark.parametrize("temperature", [0.0, None])
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("abilities", [Abilities(), Abilities(decisions=True), Abilities(formats=())])
def test_no_question_is_sent_twice_in_the_same_form(
    abilities: Abilities, share: float, temperature: float | None
) -> None:
    with (
        FakeOpenAI(FakeModel(WORDS), abilities) as server,
        OpenAIOracle(config_of(server, temperature=temperature)) as oracle,
    ):
        learn(oracle)
        server.misbehave(share, UNUSABLE, seed=3)
        asked(oracle, QUESTIONS)
        assert len(all_bodies(server)) > len(QUESTIONS) // 2
        assert repeated_forms(server) == 0


def test_a_server_that_ignores_formats_is_probed_in_other_words(server: FakeOpenAI, oracle_of: Build) -> None:
    server.abilities = Abilities(ignores_format=True)
    oracle_of()
    assert server.count(CHAT) > 3
    assert repeated_forms(server) == 0


def test_what_an_earlier_run_has_asked_in_vain_is_asked_again_in_other_forms(
    server: FakeOpenAI, oracle_of: Build
) -> None:
    oracle = oracle_of()
    server.misbehave(1.0, ("wrong shape",))
    for since in (0.0, 1.0):
        requests = [
            replace(request, since=since) for request in oracle.plan([TWO_OF_THREE, *labels(["cat"], EXAMPLES)])
        ]
        answers = [answer for reply in oracle.send(requests, CheckedMeter()) for answer in reply.answers.values()]
        assert {answer.verdict for answer in answers} == {Verdict.UNREADABLE}
    assert repeated_forms(server) == 0


def test_a_repair_is_sent_once_and_says_what_was_wrong(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle, sent = oracle_of(), server.count(CHAT)
    server.misbehave(1.0, ("wrong shape",))
    [answer] = asked(oracle, [TWO_OF_THREE])
    bodies = server.bodies(CHAT)[sent:]
    turns = [[turn["role"] for turn in body["messages"]] for body in bodies]
    assert [("assistant" in roles) for roles in turns] == [False, True, False, False]
    assert "it holds no JSON object" in bodies[1]["messages"][-1]["content"]
    assert [body["temperature"] for body in bodies] == [0.0, 0.7, 0.7, 0.7]
    assert answer.usage.requests == 4


def test_only_the_labels_are_asked_again_that_a_cut_reply_lacks(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle = oracle_of()
    server.script(LABELS, ["cut short"])
    assert not wrong(asked(oracle, [*labels(["cat"], EXAMPLES[:8])]))
    schemas = [body["response_format"]["json_schema"] for body in server.bodies(CHAT) if "response_format" in body]
    first, *later = [len(schema["schema"]["required"]) for schema in schemas if schema["name"] == "labels"]
    assert first == 8
    assert 0 < sum(later) < first
