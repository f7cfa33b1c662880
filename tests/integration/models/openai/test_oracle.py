"""Whole flows of comparisons and labels against a server over real sockets, at every level of what servers can do."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.fake_openai import CHAT, DECISIONS, Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.openai.probe import Remembered
from twothirds.models.oracle import Answer, Compare, Label, OracleError, OracleUnavailable, Question, Verdict, connect
from twothirds.models.prices import Price
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
KEY = "sk-marked-secret"
LEVELS = {
    "decisions": Abilities(decisions=True),
    "schema": Abilities(),
    "json": Abilities(formats=("json_object",)),
    "text": Abilities(formats=()),
    "ignored": Abilities(ignores_format=True, chatty=True),
    "old": Abilities(formats=(), unsupported=("seed", "temperature", "max_completion_tokens"), chatty=True),
    "thinking": Abilities(reasoning=640, cached=0.5, unsupported=("temperature",)),
}
FORMATS = {"json": "json_object", "text": "", "ignored": "", "old": ""}
EXAMPLES = texts(32)


def settings(server: FakeOpenAI, **changes: Any) -> OpenAIConfig:
    base = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr(KEY), price=PRICE, temperature=0.7)
    return replace(base, **changes)


@pytest.fixture
def oracle_of(server: FakeOpenAI) -> Iterator[Callable[..., OpenAIOracle]]:
    opened: list[OpenAIOracle] = []

    def build(**changes: Any) -> OpenAIOracle:
        opened.append(OpenAIOracle(settings(server, **changes)))
        return opened[-1]

    yield build
    for oracle in opened:
        oracle.close()


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
def test_a_whole_flow_at_every_level(server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle], level: str) -> None:
    server.abilities = LEVELS[level]
    oracle = oracle_of()
    questions: list[Question] = [*comparisons(), *labels(["cat", "bird"], EXAMPLES)]
    oracle.connect()
    bounds = dict(zip(questions, oracle.estimate(questions), strict=True))
    answers = list(oracle.ask(questions))
    assert {answer.question for answer in answers} == set(questions)
    assert len(answers) == len(questions)
    assert wrong(answers) == []
    for answer in answers:
        assert isinstance(answer.question, Label) or answer.verdict is Verdict.FEATURE
        assert answer.cost <= bounds[answer.question]
        assert answer.by == "openai:gpt-4o-mini"
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
    assert sum(answer.usage.requests for answer in answers) == len(server.book_of_questions)
    assert dict(oracle.identity.parameters)["format"] == FORMATS.get(level, "json_schema")
    assert dict(oracle.identity.parameters)["labels"] == ("decisions" if level == "decisions" else "chat")


def test_decisions_give_probabilities_and_take_many_features_at_once(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    server.abilities = Abilities(decisions=True)
    features = [*WORDS, *(f"word{number}" for number in range(195))]
    answers = list(oracle_of(concurrency=32).ask(labels(features, EXAMPLES[7:8])))
    assert wrong(answers) == []
    assert {answer.probability for answer in answers} == {0.97, 0.02}
    assert server.count(DECISIONS) == 2  # one to find out, one to ask
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)


def test_a_label_is_yes_from_the_probability_that_is_given(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    server.abilities = Abilities(decisions=True)
    asked = labels(WORDS, EXAMPLES[7:8])
    usual, never, always = (oracle_of(yes_from=threshold) for threshold in (0.5, 0.98, 0.01))
    assert {answer.verdict for answer in usual.ask(asked)} == {Verdict.YES, Verdict.NO}
    assert {answer.verdict for answer in never.ask(asked)} == {Verdict.NO}
    assert {answer.verdict for answer in always.ask(asked)} == {Verdict.YES}
    assert len({usual.identity, never.identity, always.identity}) == 3


@pytest.mark.parametrize(("grouping", "requests"), [("auto", 2), ("feature", 4), ("example", 32), ("none", 64)])
def test_labels_travel_together_as_configured(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle], grouping: str, requests: int
) -> None:
    oracle = oracle_of(grouping=grouping)
    oracle.connect()
    before = server.count(CHAT)
    answers = list(oracle.ask(labels(["cat", "bird"], EXAMPLES)))
    assert wrong(answers) == []
    assert server.count(CHAT) - before == requests


@pytest.mark.parametrize("listing", ["names", "numbers"])
@pytest.mark.parametrize("grouping", ["auto", "example", "feature"])
@pytest.mark.parametrize("level", ["schema", "text", "ignored"])
def test_labels_are_told_by_lists_of_what_holds(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle], level: str, grouping: str, listing: str
) -> None:
    server.abilities = LEVELS[level]
    oracle = oracle_of(label_reply=listing, grouping=grouping, labels_per_request=20)
    answers = list(oracle.ask(labels(WORDS, EXAMPLES)))
    assert len(answers) == 160
    assert wrong(answers) == []
    assert dict(oracle.identity.parameters)["label_reply"] == listing


def test_lists_take_fewer_tokens_than_a_value_for_each(oracle_of: Callable[..., OpenAIOracle]) -> None:
    written = {}
    for listing in ("each", "names", "numbers"):
        answers = list(oracle_of(label_reply=listing, grouping="example").ask(labels(WORDS, EXAMPLES)))
        written[listing] = sum(answer.usage.output_tokens for answer in answers)
    assert written["numbers"] < written["names"] < written["each"]


@pytest.mark.parametrize("fault", ["cut short", "wrong shape", "refusal in words", "half the labels"])
def test_lists_that_cannot_be_read_are_asked_again(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle], fault: str
) -> None:
    oracle = oracle_of(label_reply="names", asks=6)
    oracle.connect()
    server.misbehave(0.4, [fault])
    answers = list(oracle.ask(labels(WORDS, EXAMPLES)))
    assert wrong(answers) == []


def test_questions_are_pulled_as_there_is_room_and_never_far_ahead(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    oracle = oracle_of(concurrency=2, labels_per_request=4)
    pulled = answered = most = 0

    def lazy() -> Iterator[Label]:
        nonlocal pulled, most
        for question in labels(WORDS, EXAMPLES):
            pulled += 1
            most = max(most, pulled - answered)
            yield question

    for _ in oracle.ask(lazy()):
        answered += 1
    assert answered == 160
    assert most <= oracle.width == 12
    assert server.count(CHAT) == 41


def test_an_error_of_the_source_is_raised_after_what_was_pulled(oracle_of: Callable[..., OpenAIOracle]) -> None:
    def broken() -> Iterator[Label]:
        yield from labels(["cat"], EXAMPLES[:5])
        raise RuntimeError("the source broke")

    answers: list[Answer] = []
    with pytest.raises(RuntimeError, match="the source broke"):
        answers.extend(oracle_of(labels_per_request=5).ask(broken()))
    assert len(answers) == 5


def test_answers_come_one_by_one_while_others_are_under_way(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    server.abilities = replace(server.abilities, latency=0.05)
    oracle = oracle_of(concurrency=1, grouping="none")
    answers = oracle.ask(labels(["cat"], EXAMPLES[:6]))
    next(answers)
    assert server.count(CHAT) < 6
    answers.close()  # type: ignore[attr-defined]


def test_it_works_inside_a_running_event_loop_and_from_many_threads(oracle_of: Callable[..., OpenAIOracle]) -> None:
    oracle = oracle_of()

    async def inside() -> list[Answer]:
        return list(oracle.ask(labels(["cat"], EXAMPLES)))

    assert len(asyncio.run(inside())) == 32
    results: list[list[Answer]] = []
    threads = [
        threading.Thread(target=lambda word=word: results.append(list(oracle.ask(labels([word], EXAMPLES)))))
        for word in WORDS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(result) for result in results] == [32] * 5
    assert wrong(answer for result in results for answer in result) == []


def test_concurrency_is_held(server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]) -> None:
    oracle = oracle_of(concurrency=4, grouping="none")
    oracle.connect()
    server.abilities = replace(server.abilities, latency=0.03)  # in which a fifth would come, if it were let
    server.answer_together(4)
    list(oracle.ask(labels(["cat"], EXAMPLES[:24])))
    assert server.most_at_once == 4


def test_requests_per_minute_are_held(server: FakeOpenAI, tmp_path: Path) -> None:
    memory: dict[str, Any] = {}
    with OpenAIOracle(settings(server), memory) as probing:
        probing.connect()
    limited = settings(server, requests_per_minute=5, grouping="none")
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store, OpenAIOracle(limited, memory, store) as oracle:
        answers = oracle.ask(labels(["cat"], EXAMPLES[:8]))
        assert next(answers).verdict is Verdict.NO  # the first goes at once, the second twelve seconds later

        def wait() -> None:
            with suppress(OracleUnavailable):  # the oracle is closed when the test ends
                next(answers)

        late = threading.Thread(target=wait)
        late.start()
        late.join(0.5)
        assert late.is_alive()


def test_the_identity_is_not_known_before_the_oracle_is_connected(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    oracle = oracle_of()
    for look in (lambda: oracle.identity, lambda: oracle.estimate([])):
        with pytest.raises(OracleError, match=r"openai:gpt-4o-mini at .* call connect\(\) first"):
            look()
    assert server.requests == []
    connect(oracle)
    sent = len(server.requests)
    connect(oracle)
    assert len(server.requests) == sent > 0
    assert str(oracle.identity) == "openai:gpt-4o-mini"


def test_closing_ends_whoever_still_waits(server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]) -> None:
    oracle = oracle_of()
    oracle.connect()
    server.abilities = replace(server.abilities, latency=30.0)
    errors: list[str] = []

    def ask() -> None:
        try:
            list(oracle.ask(labels(["cat"], EXAMPLES)))
        except OracleUnavailable as error:
            errors.append(str(error))

    waiting = threading.Thread(target=ask)
    waiting.start()
    while server.count(CHAT) < 3:
        time.sleep(0.01)
    oracle.close()
    waiting.join(120)
    assert errors == ["the oracle was closed while it was asked"]


def test_voters_differ_in_seed_words_and_order(server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]) -> None:
    oracle = oracle_of()
    oracle.connect()
    server.requests.clear()
    list(oracle.ask([Compare(Kind.TWO_OF_THREE, tuple(EXAMPLES[1:4]), voter=voter) for voter in range(12)]))
    bodies = server.bodies(CHAT)
    assert len({body["seed"] for body in bodies}) == 12
    pages = [body["messages"][1]["content"] for body in bodies]
    assert len({page[page.index("Example A") :].split("\n")[3] for page in pages}) == 3  # the question
    assert len({"".join(re.findall(r"^Example.*", page, re.MULTILINE)) for page in pages}) == 6
    assert {body["temperature"] for body in bodies} == {0.7}


def test_what_a_server_can_do_is_asked_once_and_remembered(server: FakeOpenAI, tmp_path: Path) -> None:
    memory = tmp_path / "deep" / "servers.json"
    for _ in range(3):
        with OpenAIOracle(settings(server), Remembered(memory)) as oracle:
            oracle.connect()
            assert dict(oracle.identity.parameters)["format"] == "json_schema"
    assert server.count(CHAT) == 1
    assert KEY not in memory.read_text()
    memory.write_text("{broken")
    with OpenAIOracle(settings(server), Remembered(memory)) as oracle:
        oracle.connect()
    assert server.count(CHAT) == 2


@pytest.mark.parametrize(("output", "form"), [("schema", "json_schema"), ("json", "json_object"), ("text", "")])
def test_the_form_of_replies_can_be_chosen(oracle_of: Callable[..., OpenAIOracle], output: str, form: str) -> None:
    oracle = oracle_of(output=output)
    oracle.connect()
    assert dict(oracle.identity.parameters)["format"] == form
    assert wrong(oracle.ask(labels(["cat"], EXAMPLES))) == []


def test_reasoning_and_cached_tokens_are_booked(server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]) -> None:
    server.abilities = Abilities(reasoning=640, cached=0.5)
    answers = list(oracle_of().ask(labels(["cat"], EXAMPLES)))
    assert sum(answer.usage.reasoning_tokens for answer in answers) == 640 * len(server.book_of_questions)
    cached = sum(charge.usage["prompt_tokens_details"]["cached_tokens"] for charge in server.book_of_questions)
    assert sum(answer.usage.cached_tokens for answer in answers) == cached > 0
    assert sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
    body = server.bodies(CHAT)[-1]
    assert body["max_completion_tokens"] > 4_000


def test_a_forecast_sends_nothing_and_is_near_the_truth(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    oracle = oracle_of()
    questions = labels(["cat", "bird"], EXAMPLES)
    forecast = oracle.forecast(questions)
    assert server.requests == []
    answers = list(oracle.ask(questions))
    assert forecast.requests == 2
    assert 0.3 < forecast.cost / sum(answer.cost for answer in answers) < 3
    assert forecast.cost < sum(oracle.estimate(questions))


def test_the_usage_of_one_request_is_split_in_proportion(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    long = replace(EXAMPLES[1], text="cat " * 1000, digest="long")
    answers = {a.question: a for a in oracle_of().ask(labels(["cat"], [EXAMPLES[0], long]))}
    short_share, long_share = (answers[question].cost for question in labels(["cat"], [EXAMPLES[0], long]))
    assert long_share > 3 * short_share
    assert sum(a.cost for a in answers.values()) == server.spent_on_questions(PRICE)


def test_the_key_is_in_no_answer_even_if_the_server_echoes_it(
    server: FakeOpenAI, oracle_of: Callable[..., OpenAIOracle]
) -> None:
    server.mind = FakeModel([*WORDS, f"tag {KEY}"])
    examples = tuple(replace(EXAMPLES[0], text=text, digest=text) for text in (f"tag {KEY}", f"1 tag {KEY}", "none"))
    oracle = oracle_of()
    answers = list(oracle.ask([Compare(Kind.TWO_OF_THREE, examples)]))
    assert answers[0].verdict is Verdict.FEATURE
    assert KEY not in str([answer.to_json() for answer in answers])
    assert KEY not in repr(oracle)
    assert KEY not in str(oracle.identity.to_json())
