"""Comparisons and labels against a server over real sockets, at every level of what servers can do."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.models.openai.conftest import KEY, PRICE, Build, config_of
from tests.support.asking import CheckedMeter, ask, bounds, learn, planned, replies
from tests.support.fake_openai import CHAT, DECISIONS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, text_example, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.openai import OpenAIOracle, Remembered
from twothirds.models.oracle import Answer, Compare, Label, OracleUnavailable, Question, Request, Verdict

LEVELS = {
    "decisions": Abilities(decisions=True),
    "schema": Abilities(),
    "json": Abilities(formats=("json_object",)),
    "text": Abilities(formats=()),
    "ignored": Abilities(ignores_format=True, chatty=True),
    "old": Abilities(formats=(), unsupported=("seed", "temperature", "max_completion_tokens"), chatty=True),
    "thinking": Abilities(reasoning=640, cached=0.5, unsupported=("temperature",)),
}
HOW = {"json": "json_object", "text": "text", "ignored": "text", "old": "text"}
EXAMPLES = texts(32)


def comparisons() -> list[Compare]:
    """One of each kind, all with an answer."""
    cat, dog, both, bird = EXAMPLES[1:5]
    return [
        Compare(Kind.TWO_OF_THREE, (cat, dog, both)),
        Compare(Kind.PAIR, (cat, dog)),
        Compare(Kind.ONE_OF_THREE, (cat, dog, bird)),
        Compare(Kind.LEFT_RIGHT, (cat, both), (dog, bird)),
        Compare(Kind.TAG, (bird,)),
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_all_questions_are_answered_within_their_bounds_at_every_level(server: FakeOpenAI, level: str) -> None:
    server.abilities = LEVELS[level]
    with OpenAIOracle(config_of(server, temperature=0.7)) as oracle:
        identity = oracle.identity
        questions: list[Question] = [*comparisons(), *labels(["cat", "bird"], EXAMPLES)]
        meter = CheckedMeter()
        told = [reply for reply in replies(oracle, questions, meter) if reply.request.probe is None]
        assert oracle.identity == identity, "what a probe finds is in no key"
    answers = [answer for reply in told for answer in reply.answers.values()]
    assert {answer.question for answer in answers} == set(questions)
    assert len(answers) == len(questions)
    assert wrong(answers) == []
    assert all(reply.done and reply.cost <= reply.request.bound and not reply.in_doubt for reply in told)
    assert all(meter.most[reply.request] == reply.request.bound for reply in told)
    for answer in answers:
        is_label = isinstance(answer.question, Label)
        assert is_label or answer.verdict is Verdict.FEATURE
        assert answer.how == ("decisions" if is_label and level == "decisions" else HOW.get(level, "json_schema"))
    charged = server.spent_on_questions(PRICE)
    assert sum(reply.cost for reply in told) == sum(answer.cost for answer in answers) == charged
    requests = len(server.book_of_questions)
    assert sum(reply.usage.requests for reply in told) == requests
    assert sum(answer.usage.requests for answer in answers) == requests
    if level == "thinking":
        assert sum(answer.usage.reasoning_tokens for answer in answers) == 640 * requests
        cached = sum(charge.usage["prompt_tokens_details"]["cached_tokens"] for charge in server.book_of_questions)
        assert sum(answer.usage.cached_tokens for answer in answers) == cached > 0
        assert server.bodies(CHAT)[-1]["max_completion_tokens"] > 4_000


def test_decisions_give_probabilities_and_take_many_features_at_once(server: FakeOpenAI) -> None:
    server.abilities = Abilities(decisions=True)
    with OpenAIOracle(config_of(server)) as oracle:
        features = [*WORDS, *(f"word{number}" for number in range(195))]
        answers = list(ask(oracle, labels(features, EXAMPLES[7:8])))
    assert wrong(answers) == []
    assert {answer.probability for answer in answers} == {0.97, 0.02}
    assert server.count(DECISIONS) == 2  # one to find out, one to ask


def test_a_label_is_yes_from_the_probability_that_is_given(server: FakeOpenAI, oracle_of: Build) -> None:
    server.abilities = Abilities(decisions=True)
    asked = labels(WORDS, EXAMPLES[7:8])
    usual, never, always = (oracle_of(yes_from=threshold) for threshold in (0.5, 0.98, 0.01))
    assert {answer.verdict for answer in ask(usual, asked)} == {Verdict.YES, Verdict.NO}
    assert {answer.verdict for answer in ask(never, asked)} == {Verdict.NO}
    assert {answer.verdict for answer in ask(always, asked)} == {Verdict.YES}
    assert len({usual.identity, never.identity, always.identity}) == 3


@pytest.mark.parametrize(("grouping", "requests"), [("auto", 2), ("feature", 4), ("example", 32), ("none", 64)])
def test_labels_travel_together_as_configured(
    server: FakeOpenAI, oracle_of: Build, grouping: str, requests: int
) -> None:
    oracle, before = oracle_of(grouping=grouping), server.count(CHAT)
    assert wrong(ask(oracle, labels(["cat", "bird"], EXAMPLES))) == []
    assert server.count(CHAT) - before == requests
    assert oracle.traits.shares_rows == (grouping in ("auto", "example"))


def test_labels_of_one_request_share_its_cost_alike(server: FakeOpenAI, oracle_of: Build) -> None:
    examples = [EXAMPLES[1], text_example("cat " * 1_000), EXAMPLES[2]]
    answers = list(ask(oracle_of(), labels(["cat"], examples)))
    costs = [answer.cost for answer in answers]
    assert max(costs) - min(costs) <= 1
    assert sum(costs) == server.spent_on_questions(PRICE)


@pytest.mark.parametrize("listing", ["names", "numbers"])
@pytest.mark.parametrize("grouping", ["auto", "example", "feature"])
@pytest.mark.parametrize("level", ["schema", "text", "ignored"])
def test_labels_are_told_by_lists_of_what_holds(server: FakeOpenAI, level: str, grouping: str, listing: str) -> None:
    server.abilities = LEVELS[level]
    with OpenAIOracle(config_of(server, label_reply=listing, grouping=grouping, labels_per_request=20)) as oracle:
        answers = list(ask(oracle, labels(WORDS, EXAMPLES)))
    assert len(answers) == 160
    assert wrong(answers) == []
    assert dict(oracle.identity.parameters)["label_reply"] == listing


def test_lists_take_fewer_tokens_than_a_value_for_each(oracle_of: Build) -> None:
    written = {}
    for listing in ("each", "names", "numbers"):
        answers = ask(oracle_of(label_reply=listing, grouping="example"), labels(WORDS, EXAMPLES))
        written[listing] = sum(answer.usage.output_tokens for answer in answers)
    assert written["numbers"] < written["names"] < written["each"]


def test_requests_are_made_and_pulled_as_there_is_room(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle = oracle_of(concurrency=2, labels_per_request=5)
    pulled = ended = most = 0

    def lazy() -> Iterator[Request]:
        nonlocal pulled, most
        for request in oracle.plan(labels(WORDS, EXAMPLES)):
            pulled += 1
            most = max(most, pulled - ended)
            yield request

    for reply in oracle.send(lazy(), CheckedMeter()):
        ended += reply.done
    assert ended == 32
    assert most <= 4, "twice as many as may be in flight"
    assert server.count(CHAT) == 33


def test_an_error_of_the_source_is_raised_after_what_was_pulled(oracle_of: Build) -> None:
    oracle = oracle_of(labels_per_request=5)

    def broken() -> Iterator[Request]:
        yield from planned(oracle, labels(["cat"], EXAMPLES[:5]))
        raise RuntimeError("the source broke")

    told = oracle.send(broken(), CheckedMeter())
    answered = len(next(told).answers)
    with pytest.raises(RuntimeError, match="the source broke"):
        next(told)
    assert answered == 5


def test_answers_come_one_by_one_and_concurrency_is_held(server: FakeOpenAI, oracle_of: Build) -> None:
    server.abilities = replace(server.abilities, latency=0.03)  # in which a fifth would come, if it were let
    oracle, before = oracle_of(concurrency=4, grouping="none"), server.count(CHAT)
    server.answer_together(4)
    answers = ask(oracle, labels(["cat"], EXAMPLES[:24]))
    next(answers)
    assert server.count(CHAT) - before < 24
    assert len(list(answers)) == 23
    assert server.most_at_once == 4


def test_it_works_inside_a_running_event_loop_and_from_many_threads(oracle_of: Build) -> None:
    oracle = oracle_of()

    async def inside() -> list[Answer]:
        return list(ask(oracle, labels(["cat"], EXAMPLES)))

    assert len(asyncio.run(inside())) == 32
    results: list[list[Answer]] = []
    threads = [
        threading.Thread(target=lambda word=word: results.append(list(ask(oracle, labels([word], EXAMPLES)))))
        for word in WORDS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(result) for result in results] == [32] * 5
    assert wrong(answer for result in results for answer in result) == []


def test_closing_ends_whoever_still_waits_and_says_what_is_in_doubt(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle = oracle_of(labels_per_request=16)
    server.abilities = replace(server.abilities, latency=30.0)
    errors, doubts = list[str](), list[int]()

    def wait() -> None:
        try:
            for reply in oracle.send(oracle.plan(labels(["cat"], EXAMPLES)), CheckedMeter()):
                doubts.append(reply.in_doubt - reply.request.bound)
        except OracleUnavailable as error:
            errors.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while server.count(CHAT) < 3:
        time.sleep(0.01)
    oracle.close()
    waiting.join(120)
    assert (errors, doubts) == (["the oracle was closed while it was asked"], [0, 0])
    with pytest.raises(OracleUnavailable, match="the oracle was closed"):
        list(ask(oracle, labels(["cat"], EXAMPLES)))


def test_voters_differ_in_seed_words_and_order(server: FakeOpenAI, oracle_of: Build) -> None:
    oracle = oracle_of(temperature=0.7)
    server.requests.clear()
    list(ask(oracle, [Compare(Kind.TWO_OF_THREE, tuple(EXAMPLES[1:4]), voter=voter) for voter in range(12)]))
    bodies = server.bodies(CHAT)
    assert len({body["seed"] for body in bodies}) == 12
    pages = [body["messages"][1]["content"] for body in bodies]
    assert len({page[page.index("Example A") :].split("\n")[3] for page in pages}) == 3  # the question
    assert len({"".join(re.findall(r"^Example.*", page, re.MULTILINE)) for page in pages}) == 6
    assert {body["temperature"] for body in bodies} == {0.7}


def test_what_a_server_can_do_is_asked_once_and_remembered(server: FakeOpenAI, tmp_path: Path) -> None:
    memory = tmp_path / "deep" / "servers.json"
    for content in (None, None, "{broken"):
        if content:
            memory.write_text(content)
        with OpenAIOracle(config_of(server), Remembered(memory)) as oracle:
            learn(oracle)
        assert KEY not in memory.read_text()
    assert server.count(CHAT) == 2


@pytest.mark.parametrize(("output", "how"), [("schema", "json_schema"), ("json", "json_object"), ("text", "text")])
def test_the_form_of_replies_can_be_chosen(oracle_of: Build, output: str, how: str) -> None:
    answers = list(ask(oracle_of(output=output), labels(["cat"], EXAMPLES)))
    assert wrong(answers) == []
    assert {answer.how for answer in answers} == {how}


def test_an_outline_sends_nothing_and_is_near_the_truth(server: FakeOpenAI) -> None:
    questions: list[Question] = [*labels(["cat", "bird"], EXAMPLES), *comparisons()]
    with OpenAIOracle(config_of(server)) as oracle:
        outline = planned(oracle, questions)[1:]  # after the probe
        assert server.requests == []
        cost = sum(answer.cost for answer in ask(oracle, questions))
        assert [request.bound for request in outline] == bounds(oracle, questions)
    usual = sum(request.usual for request in outline)
    assert len(outline) == 7
    assert 0.3 < usual / cost < 3
    assert usual < sum(request.bound for request in outline)


def test_the_key_is_in_no_answer_even_if_the_server_echoes_it(server: FakeOpenAI, oracle_of: Build) -> None:
    server.mind = FakeModel([*WORDS, f"tag {KEY}"])
    examples = tuple(replace(EXAMPLES[0], text=text, digest=text) for text in (f"tag {KEY}", f"1 tag {KEY}", "none"))
    oracle = oracle_of()
    answers = list(ask(oracle, [Compare(Kind.TWO_OF_THREE, examples)]))
    assert answers[0].verdict is Verdict.FEATURE
    assert KEY not in str([answer.to_json() for answer in answers])
    assert KEY not in repr(oracle)
    assert KEY not in str(oracle.identity.to_json())


def test_an_oracle_that_nobody_uses_any_more_leaves_no_thread(server: FakeOpenAI) -> None:
    def used() -> weakref.ref[OpenAIOracle]:
        oracle = OpenAIOracle(config_of(server))
        list(ask(oracle, labels(["cat"], EXAMPLES[:1])))
        return weakref.ref(oracle)

    gone, before = used(), threading.active_count()
    gc.collect()
    assert gone() is None
    assert threading.active_count() <= before
    assert not [thread for thread in threading.enumerate() if thread.name == "openai"]
