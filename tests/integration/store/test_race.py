"""Budget race: 1,000 reservations started together by several processes admit exactly what the budget holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import Store
from tests.integration.store.test_processes import work_together
from tests.support.postgres import PostgresServer
from tests.support.store_steps import PRICE, SCOPE

PROCESSES, EACH, ADMITTED = 4, 250, 50
BUDGET = ADMITTED * PRICE  # 5.00 in reservations of 0.10


@pytest.fixture
def store_url(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if store_kind == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh_schema()


@pytest.mark.parametrize(
    ("store_kind", "rounds"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 100, marks=pytest.mark.slow),
        pytest.param("postgresql", 100, marks=pytest.mark.slow),
    ],
)
def test_a_thousand_reservations_started_together_admit_exactly_fifty(store_url: str, rounds: int) -> None:
    commands = [("race", f"process {number}", EACH, BUDGET, rounds) for number in range(PROCESSES)]
    granted = work_together(store_url, commands)
    assert [sum(counts) for counts in zip(*granted, strict=True)] == [ADMITTED] * rounds
    with Store.open(store_url) as store:
        assert store.check.problems() == []
        assert {store.runs.spent(f"{SCOPE} {number}") for number in range(rounds)} == {(0, BUDGET)}
    each = [sum(counts) for counts in granted]
    print(f"{rounds} rounds of {PROCESSES * EACH} reservations, {ADMITTED} admitted in each; by process {each}")
