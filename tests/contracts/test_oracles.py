"""What every oracle keeps to. Another one is another line of ORACLES."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.asking import CheckedMeter, ask, planned
from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.made import few_faces, random_truth, texts
from tests.support.people import TruthfulPerson
from tests.support.tiny_models import save_tiny_llava
from twothirds.discovery import Kind
from twothirds.models.cached import CachedOracle
from twothirds.models.contrastive import ContrastiveOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.local import LocalVlmConfig, LocalVlmOracle
from twothirds.models.openai import OpenAIConfig, OpenAIOracle
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    BudgetExhausted,
    Compare,
    Feature,
    Label,
    Meter,
    Money,
    Oracle,
    OracleUnavailable,
    Question,
    Reply,
    Request,
    Verdict,
)
from twothirds.models.people import Behaviour, HumanOracle, HumanTerms, RecordedVotes, SimulatedOracle
from twothirds.models.prices import Price
from twothirds.sources import Example, load_dataset
from twothirds.sources.dataset import Dataset, Truth
from twothirds.store import Store

NAMES = ("cat", "dog")
TRUTH = random_truth(12, len(NAMES), seed=3)
PRICE = 1_000


@dataclass(frozen=True)
class World:
    """An oracle, and examples about which it can be asked. `meanwhile` is what happens between two runs."""

    oracle: Oracle
    examples: Sequence[Example]
    meanwhile: Callable[[], object] = lambda: None
    price: bool = False  # it is paid

    @property
    def questions(self) -> list[Question]:
        labels: list[Question] = [Label(Feature(name), example) for example in self.examples for name in NAMES]
        return [*labels, Compare(Kind.TWO_OF_THREE, tuple(self.examples[:3]))]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


def simulated(_: Path, __: Store) -> Iterator[World]:
    yield World(SimulatedOracle(texts(12), TRUTH, NAMES), texts(12))


def simulated_paid(_: Path, __: Store) -> Iterator[World]:
    yield World(SimulatedOracle(texts(12), TRUTH, NAMES, behaviour=Behaviour(price=PRICE)), texts(12), price=True)


def simulated_late(_: Path, __: Store) -> Iterator[World]:
    behaviour = Behaviour(price=PRICE, latency=0.001, width=4)
    yield World(SimulatedOracle(texts(12), TRUTH, NAMES, behaviour=behaviour), texts(12), price=True)


def recorded(folder: Path, _: Store) -> Iterator[World]:
    rows = [
        f"{example.id},{name},ann,{TRUTH[row, column]}"
        for row, example in enumerate(texts(12))
        for column, name in enumerate(NAMES)
    ]
    (folder / "votes.csv").write_text("\n".join(["example,feature,worker,label", *rows]) + "\n")
    yield World(RecordedVotes(folder / "votes.csv", price=PRICE), texts(12), price=True)


def contrastive(folder: Path, _: Store) -> Iterator[World]:
    faces = load_dataset(str(few_faces(folder / "faces", 6))).examples
    yield World(ContrastiveOracle(), faces)


def local(folder: Path, _: Store) -> Iterator[World]:
    model = save_tiny_llava(folder / "model")
    yield World(LocalVlmOracle(LocalVlmConfig(model=str(model), device="cpu", max_new_tokens=8)), texts(4))


def openai(_: Path, __: Store) -> Iterator[World]:
    price = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
    with FakeOpenAI(FakeModel(list(NAMES))) as server:
        config = OpenAIConfig("gpt-4o-mini", server.base_url, price=price, labels_per_request=2)
        with OpenAIOracle(config) as oracle:
            yield World(oracle, texts(12), price=True)


def human(_: Path, store: Store) -> Iterator[World]:
    data = Dataset("d", "d", texts(12), (), Truth(NAMES, TRUTH), "d")
    people = [TruthfulPerson(store.queue, name, data) for name in ("ann", "ben")]

    def work() -> None:
        for person in people:
            while person.answer_page():
                pass

    yield World(HumanOracle(store.queue, terms=HumanTerms(price=PRICE)), texts(12), work, price=True)


ORACLES = [simulated, simulated_paid, simulated_late, recorded, contrastive, local, openai, human]


@pytest.fixture(params=ORACLES, ids=lambda made: made.__name__)
def world(request: pytest.FixtureRequest, tmp_path: Path, store: Store) -> Iterator[World]:
    yield from request.param(tmp_path, store)


def cached(world: World, store: Store, run: str = "run", budget: Money | None = None) -> CachedOracle:
    store.runs.begin(run, "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
    return CachedOracle(world.oracle, RunLedger(store, run, "scope", budget))


def answered(world: World, oracle: CachedOracle, questions: Sequence[Question]) -> list[Answer]:
    """With people at work whenever answers are pending."""
    for _ in range(4):
        try:
            return list(oracle.ask(questions))
        except AnswersPending:
            world.meanwhile()
    raise AssertionError("the answers are pending for ever")


def planned_when_known(world: World) -> list[Request]:
    """Once it is known what the server can do."""
    first = planned(world.oracle, world.questions)
    if first[0].probe is not None:
        list(world.oracle.send(first[:1], CheckedMeter()))
    return planned(world.oracle, world.questions)


def test_every_question_is_in_one_planned_request_and_no_request_costs_less_than_it_is_likely_to(
    world: World,
) -> None:
    requests = planned_when_known(world)
    asked = [question for request in requests for question in request.questions]
    assert len(asked) == len(world.questions)
    assert set(asked) == set(world.questions)
    assert all(request.usual <= request.bound <= request.limit for request in requests)
    assert all((request.bound > 0) == world.price for request in requests)


def test_every_question_is_answered_and_its_last_reply_says_so(world: World) -> None:
    try:
        said = list(ask(world.oracle, world.questions))
    except AnswersPending:
        world.meanwhile()
        said = list(ask(world.oracle, world.questions))
    assert {answer.question for answer in said} == set(world.questions)
    assert {answer.verdict for answer in said if isinstance(answer.question, Label)} <= set(Verdict) - {
        Verdict.FEATURE,
        Verdict.NONE,
    }


def test_what_is_stored_is_not_asked_again(world: World, store: Store) -> None:
    first = answered(world, cached(world, store), world.questions)
    again = cached(world, store, "again", budget=0 if world.price else None)
    repeated = {answer.question: answer for answer in again.ask(world.questions)}
    assert all(repeated[answer.question] == answer for answer in first)
    assert (again.ledger.paid_calls, again.ledger.cost) == (0, 0)


def test_a_question_asked_twice_in_one_call_is_paid_for_once(world: World, store: Store) -> None:
    oracle, question = cached(world, store), world.questions[0]
    first, second = answered(world, oracle, [question, question])
    assert first == second
    assert oracle.ledger.paid_calls == 1


def test_what_is_charged_is_booked_and_nothing_stays_reserved(world: World, store: Store) -> None:
    oracle = cached(world, store)
    answered(world, oracle, world.questions)
    spent, reserved = store.runs.spent("scope")
    assert (spent, reserved) == (oracle.ledger.cost, 0)
    assert (spent > 0) == world.price
    assert oracle.ledger.in_doubt == 0
    assert store.check.problems() == []


def test_a_budget_is_never_exceeded_and_another_run_goes_on_with_more(world: World, store: Store) -> None:
    if not world.price:
        return
    whole = cached(world, store)
    bounds = [request.bound for request in planned_when_known(world)]
    budget = max(bounds) + min(bounds) // 2
    whole.ledger.set_budget(budget)
    with pytest.raises((BudgetExhausted, AnswersPending)):
        list(whole.ask(world.questions))
    world.meanwhile()
    with pytest.raises(BudgetExhausted, match="budget"):
        list(whole.ask(world.questions))
    spent, reserved = store.runs.spent("scope")
    assert spent + reserved <= budget
    assert reserved == 0
    more = cached(world, store, "more")
    assert len(answered(world, more, world.questions)) == len(world.questions)
    assert more.ledger.paid_calls + whole.ledger.paid_calls >= len(world.questions)


class FailsAfter:
    """The oracle, whose connection breaks after so many replies."""

    def __init__(self, inner: Oracle, replies: int) -> None:
        self.identity, self.traits, self._inner, self._left = inner.identity, inner.traits, inner, replies
        self.plan, self.prepare = inner.plan, inner.prepare

    def send(self, requests: Iterator[Request], meter: Meter) -> Iterator[Reply]:
        for reply in self._inner.send(requests, meter):
            yield reply
            if reply.request.probe is None and reply.done:
                self._left -= 1
                if self._left == 0:
                    raise OracleUnavailable("the connection broke")


def test_what_came_before_a_fault_is_kept_and_only_the_rest_is_asked(world: World, store: Store) -> None:
    if isinstance(world.oracle, HumanOracle):
        with pytest.raises(AnswersPending):
            list(cached(world, store, "asks").ask(world.questions))
        world.meanwhile()
    store.runs.begin("failing", "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
    failing = CachedOracle(FailsAfter(world.oracle, 1), RunLedger(store, "failing", "scope"))  # type: ignore[arg-type]
    with pytest.raises(OracleUnavailable, match="the connection broke"):
        list(failing.ask(world.questions))
    kept = store.requests.count()
    assert kept > 0
    healthy = cached(world, store, "healthy")
    said = answered(world, healthy, world.questions)
    assert len(said) == len(world.questions)
    assert sum(answer.cached for answer in said) == kept


def test_the_identity_is_known_without_a_request_and_holds_no_address(world: World) -> None:
    told = str(world.oracle.identity.to_json())
    assert "http://" not in told
    assert world.oracle.identity.kind in ("simulated", "recorded", "contrastive", "vlm", "openai", "human")
