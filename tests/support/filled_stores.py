"""A store with real answers in it, for tests of what is checked, copied and repeated."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from tests.support.made import letters, random_truth, texts
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import Feature, Label, Question, Request, in_requests
from twothirds.models.people.simulated import Behaviour, SimulatedOracle
from twothirds.store import Store

PRICE = 10_000
SCOPE = "the same run"
TRUTH = random_truth(400, 6)


class PricedTogether(SimulatedOracle):
    """Its questions share requests although they cost, as those of a server do."""

    def plan(self, questions: Sequence[Question]) -> Iterator[Request]:
        return in_requests(questions, self.behaviour.price)


def labels(n: int) -> list[Label]:
    return [Label(Feature("feature a", "It has a."), example) for example in texts(400)[:n]]


def recorded(store: Store, *, latency: float = 0.0, width: int = 16) -> CachedOracle:
    run_id = uuid.uuid4().hex
    store.runs.begin(run_id, SCOPE, name="t", flow="test", dataset="d", oracle="o", settings={})
    columns = [f"feature {letters(column)}" for column in range(TRUTH.shape[1])]
    behaviour = Behaviour(price=PRICE, latency=latency, width=width)
    kind = SimulatedOracle if latency else PricedTogether
    crowd = kind(texts(len(TRUTH)), TRUTH, columns, behaviour=behaviour)
    return CachedOracle(crowd, RunLedger(store, run_id, SCOPE))


def keep(store: Store, n: int) -> CachedOracle:
    """Ask `n` questions; what the store knows costs nothing."""
    oracle = recorded(store)
    assert len(list(oracle.ask(labels(n)))) == n
    return oracle
