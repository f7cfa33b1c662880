"""Every fault of the fake server, once and for ever, by every way of asking: what is recorded, what is booked, and that
no answer lands in another row. Through the real oracle, the real records and a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.models.openai.conftest import KEY, PRICE, begin, config_of
from tests.support.asking import learn
from tests.support.fake_openai import (
    BATCHES,
    COMPARISONS,
    DECISIONS,
    FAILURES,
    FILES,
    IN_DOUBT,
    LABELS,
    REPEATS,
    SPOILERS,
    USAGES,
    Abilities,
    BatchManners,
    FakeOpenAI,
)
from tests.support.fake_openai.examples import WORDS, labels, texts, wrong
from twothirds.discovery.questions import Kind
from twothirds.models import CachedOracle, RunLedger
from twothirds.models.openai import OpenAIOracle
from twothirds.models.oracle import Answer, Compare, OracleUnavailable, Question, Verdict
from twothirds.store import Store

EXAMPLES = texts(16)
COMPARISON = Compare(Kind.TWO_OF_THREE, (EXAMPLES[1], EXAMPLES[2], EXAMPLES[3]))
QUESTIONS: list[Question] = [COMPARISON, *labels(WORDS[:2], EXAMPLES[:8])]
TELLING = ("wrong keys", "half the labels", "refusal", "usage in words", "cut", "malformed")  # quick by every way


def by_every_way(faults: list[str]) -> list[Any]:
    """Each fault by chat; by decisions and batch only some of them where time is short."""
    quick = [(fault, way) for fault in faults for way in ("chat", "decisions", "batch")]
    return [
        pytest.param(*case, marks=() if case[1] == "chat" or case[0] in TELLING else pytest.mark.slow) for case in quick
    ]


HANGS_UP = 4.0  # seconds after which a server that says nothing is left; a busy machine may be slow, too
FOR_GOOD = {"429 for an hour", "no quota"}  # nobody waits for these
REFUSALS = {"refusal", "refusal in words", "filtered"}
PAID = [*SPOILERS, REPEATS]  # replies of status 200


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        begin(opened, "run")
        yield opened


@pytest.fixture
def memory() -> dict[str, Any]:
    return {}


def asked(server: FakeOpenAI, store: Store, way: str, memory: dict[str, Any], **changes: Any) -> list[Answer]:
    """All questions, asked by a program that has just been started."""
    config = config_of(server, provider_batch=way == "batch", batch_poll=0.01, **changes)
    with OpenAIOracle(config, memory) as oracle:
        recorded = CachedOracle(oracle, RunLedger(store, "run", "scope"))
        answers = list(recorded.ask(QUESTIONS))
    assert recorded.ledger.cost == sum(answer.cost for answer in answers if not answer.cached)
    assert recorded.ledger.cost + recorded.ledger.in_doubt <= store.runs.spent("scope")[0]
    return answers


def introduce(server: FakeOpenAI, way: str, memory: dict[str, Any]) -> None:
    """The server behaves until it is known what it can do."""
    server.abilities = Abilities(decisions=way == "decisions")
    with OpenAIOracle(config_of(server), memory) as oracle:
        learn(oracle)


def sum_of(server: FakeOpenAI) -> int:
    """What the provider's bill shows for questions."""
    return server.billed(PRICE) - (server.spent(PRICE) - server.spent_on_questions(PRICE))


def fail_once(server: FakeOpenAI, way: str, fault: str) -> None:
    """The first comparison fails and the first labels do, whichever of them comes first: none fails twice."""
    server.script(COMPARISONS, [fault] if way != "batch" or fault in FAILURES else [])  # a batch spoils it already
    server.script(LABELS, [fault])
    server.script(DECISIONS, [fault] if way == "decisions" else [])
    if fault in FAILURES:
        server.script(FILES, [fault] if fault != "hang" else [])  # an upload may take long
        server.script(BATCHES, [fault])
    else:
        server.batches.manners = BatchManners(spoiled=1.0, spoilers=(fault,), shuffled=True)


def assert_right(answers: list[Answer]) -> None:
    assert {answer.question for answer in answers} == set(QUESTIONS)
    assert len(answers) == len(QUESTIONS)
    assert wrong(answers) == []
    [found] = [answer for answer in answers if answer.question == COMPARISON]
    assert (found.verdict, found.feature and found.feature.name, found.shown) == (Verdict.FEATURE, "cat", (0, 2))


@pytest.mark.parametrize(("fault", "way"), by_every_way([*PAID, *(name for name in FAILURES if name not in FOR_GOOD)]))
def test_one_bad_reply_changes_nothing_but_the_bill(
    server: FakeOpenAI, store: Store, memory: dict[str, Any], fault: str, way: str
) -> None:
    introduce(server, way, memory)
    fail_once(server, way, fault)
    answers = asked(server, store, way, memory, **({"timeout": HANGS_UP} if fault == "hang" else {}))
    assert_right(answers)
    spent, reserved = store.runs.spent("scope")
    assert reserved == 0
    if fault in IN_DOUBT:  # one that may have been charged is booked beside the one that succeeded
        assert spent > sum(answer.cost for answer in answers) == server.spent_on_questions(PRICE)
        assert spent >= sum_of(server)
    elif fault in USAGES:  # booked with the most that it can have cost, as the server reported nothing
        assert spent > server.spent_on_questions(PRICE)
    else:
        assert spent == server.spent_on_questions(PRICE)
    requests = len(server.requests)
    again = asked(server, store, way, memory)
    assert_right(again)
    assert all(answer.cached for answer in again)
    assert (len(server.requests), store.runs.spent("scope")) == (requests, (spent, 0))


@pytest.mark.parametrize(("fault", "way"), by_every_way([name for name in PAID if name not in USAGES]))
def test_a_server_that_never_makes_sense_is_recorded_as_such_and_paid(
    server: FakeOpenAI, store: Store, memory: dict[str, Any], fault: str, way: str
) -> None:
    introduce(server, way, memory)
    server.misbehave(1.0, [fault])
    server.batches.manners = BatchManners(spoiled=1.0, spoilers=(fault,))
    answers = asked(server, store, way, memory)
    assert len(answers) == len(QUESTIONS)
    decided = [answer for answer in answers if answer.verdict in (Verdict.YES, Verdict.NO)]
    assert wrong(decided) == []
    assert len(decided) == 0 or fault in ("half the labels", "cut short", "long name")
    left = [answer for answer in answers if answer not in decided]
    assert left
    assert all(answer.note for answer in left if answer.verdict is not Verdict.FEATURE)
    wanted = {Verdict.REFUSED, Verdict.UNREADABLE} if fault in REFUSALS else {Verdict.UNREADABLE, Verdict.FEATURE}
    assert {answer.verdict for answer in left} <= wanted
    assert store.runs.spent("scope") == (server.spent_on_questions(PRICE), 0)
    requests = len(server.requests)
    assert all(answer.cached for answer in asked(server, store, way, memory))
    assert len(server.requests) == requests


@pytest.mark.parametrize(("fault", "way"), by_every_way([name for name in FAILURES if name != "hang"]))
def test_a_server_that_is_down_is_one_line_and_nothing_is_recorded_in_its_name(
    server: FakeOpenAI, store: Store, memory: dict[str, Any], fault: str, way: str
) -> None:
    introduce(server, way, memory)
    server.misbehave(1.0, [fault])
    server.script(FILES, [fault] * 9)
    with pytest.raises(OracleUnavailable) as caught:
        asked(server, store, way, memory, attempts=3)
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    spent, reserved = store.runs.spent("scope")
    assert reserved == 0
    if fault in IN_DOUBT:  # it may have been charged, and no budget must be exceeded
        assert spent > server.spent_on_questions(PRICE)
    else:
        assert spent == 0
    server.misbehave(0.0, [])
    server.script(FILES, [])
    server._scripts.clear()
    answers = asked(server, store, way, memory)
    assert_right(answers)
    assert not any(answer.cached for answer in answers)


@pytest.mark.parametrize(
    "manners",
    [
        BatchManners(shuffled=True),
        BatchManners(foreign=True),
        BatchManners(expired=0.5, seed=2),
        BatchManners(failing=0.5, seed=2),
        BatchManners(twice=True),
        BatchManners(torn=True),
        BatchManners(polls=4),
    ],
    ids=["another order", "another's id", "half expired", "half failed", "contradicted", "torn file", "slow"],
)
def test_no_row_is_shifted_by_what_a_batch_may_do(
    server: FakeOpenAI, store: Store, memory: dict[str, Any], manners: BatchManners
) -> None:
    introduce(server, "batch", memory)
    server.batches.manners = manners
    answers = asked(server, store, "batch", memory, labels_per_request=3, attempts=12)
    assert_right(answers)
    spent, reserved = store.runs.spent("scope")
    assert reserved == 0
    if manners.torn:  # a result that was lost may have been paid for: it is booked at its bound
        assert spent > server.spent_on_questions(PRICE)
    else:
        assert spent == server.spent_on_questions(PRICE)


def test_what_was_wrong_with_a_name_is_recorded_with_the_answer(
    server: FakeOpenAI, store: Store, memory: dict[str, Any]
) -> None:
    introduce(server, "chat", memory)
    server.script(COMPARISONS, ["long name"])
    [found] = [answer for answer in asked(server, store, "chat", memory) if answer.question == COMPARISON]
    assert found.verdict is Verdict.FEATURE
    assert found.note.startswith("asked again: 'very very")
    assert "the name must have one to 5 words" in found.note
