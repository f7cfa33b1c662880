"""PostgreSQL: what another process does between a look at the store and the lock that is taken after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from store import Store
from store.ledger.claims import are_known
from store.packed.settle import prepare_packs
from tests.support.postgres import PostgresServer
from tests.support.store_steps import PRICE, SCOPE, begin, claim, record
from tests.support.stored_answers import every_charge

LABELS = [f"{16 * '0'}{letter * 48}" for letter in "0123456789"]
OF_ANOTHER_EXAMPLE = [f"{16 * '1'}{key[16:]}" for key in LABELS]
OTHER, EARLIER = "another scope", "an earlier one"


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.fresh_schema()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """With earlier answers by the same oracle about the same features: whoever writes these first has others wait."""
    with Store.open(url) as opened:
        begin(opened)
        begin(opened, "run-0", EARLIER)
        claim(opened, OF_ANOTHER_EXAMPLE, run_id="run-0", scope=EARLIER, sending=len(LABELS))
        opened.answers.record("run-0", [record(key, 1) for key in OF_ANOTHER_EXAMPLE])
        yield opened


@pytest.mark.parametrize("scope", [SCOPE, OTHER])
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        pytest.param(LABELS, LABELS, id="packs"),
        pytest.param(LABELS[:6], LABELS[3:], id="packs that overlap"),
        pytest.param(LABELS, LABELS[4:5], id="a pack and a row"),
        pytest.param(LABELS[4:5], LABELS, id="a row and a pack"),
        pytest.param(LABELS[:1], LABELS[:1], id="rows"),
    ],
)
def test_a_question_that_two_have_looked_up_is_claimed_by_one(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch, scope: str, mine: list[str], theirs: list[str]
) -> None:
    looked = threading.Barrier(2, timeout=20)

    def look_together(*about: Any) -> bool:
        known = are_known(*about)
        if not looked.broken:
            looked.wait()
        return known

    monkeypatch.setattr("store.ledger.claims.are_known", look_together)
    with Store.open(url) as other, ThreadPoolExecutor(2) as threads:
        begin(other, "run-2", scope)
        first = threads.submit(claim, store, mine, owner="mine")
        second = threads.submit(claim, other, theirs, owner="theirs", run_id="run-2", scope=scope)
        granted = [set(one.result().granted) for one in (first, second)]
        looked.abort()
        assert granted[0] & granted[1] == set()
        assert granted[0] | granted[1] == {*mine, *theirs}
        assert sorted(first.result().held + second.result().held) == sorted({*mine} & {*theirs})
        for (opened, run_id), keys in zip([(store, "run-1"), (other, "run-2")], granted, strict=True):
            assert opened.answers.record(run_id, [record(key, 1) for key in sorted(keys)]) == {}
        assert store.check.problems() == []
        assert set(store.answers.lookup(LABELS)) == {*mine, *theirs}
        assert sum(store.runs.spent(one)[0] for one in {SCOPE, scope}) == PRICE * len({*mine, *theirs})


def answered_by_another(other: Store) -> None:
    other.answers.record("run-1", [record(key, 1, says="theirs") for key in LABELS])


def partly_answered_by_another(other: Store) -> None:
    other.answers.record("run-1", [record(key, 1, says="theirs") for key in LABELS[2:7]])


def abandoned(other: Store) -> None:
    other.claims.abandon("owner-1", LABELS)


def partly_given_up(other: Store) -> None:
    other.claims.abandon("owner-1", LABELS[3:5])


def happening_after_packing(monkeypatch: pytest.MonkeyPatch, url: str, happens: Callable[[Store], object]) -> None:
    """Once, between the packing of answers and the lock."""
    already = threading.Event()

    def prepare_too_early(*about: Any) -> Any:
        prepared = prepare_packs(*about)
        if not already.is_set():
            already.set()
            with Store.open(url) as other:
                happens(other)
        return prepared

    monkeypatch.setattr("store.ledger.answers.prepare_packs", prepare_too_early)


@pytest.mark.parametrize("happens", [answered_by_another, partly_answered_by_another, abandoned, partly_given_up])
def test_a_claim_that_changes_after_its_answers_were_packed_is_settled_as_it_is_by_then(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Store], None]
) -> None:
    claim(store, LABELS, sending=len(LABELS))
    happening_after_packing(monkeypatch, url, happens)
    before = store.answers.record("run-1", [record(key, 1, says="mine") for key in LABELS])
    theirs = LABELS if happens is answered_by_another else LABELS[2:7] if happens is partly_answered_by_another else []
    assert before == {key: {"verdict": "theirs"} for key in theirs}
    assert store.answers.lookup(LABELS) == {key: {"verdict": "theirs" if key in theirs else "mine"} for key in LABELS}
    assert store.check.problems() == []
    assert store.runs.spent(SCOPE) == (PRICE * len(LABELS), 0)
    assert len(every_charge(store)) == len(LABELS) + len(OF_ANOTHER_EXAMPLE)


def test_what_is_sent_after_the_answers_of_its_claim_were_packed_stays_sent(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(store, LABELS, sending=5)
    happening_after_packing(monkeypatch, url, lambda other: other.claims.mark_leaving("owner-1", {LABELS[7]: 3}))
    store.answers.record("run-1", [record(key, 1) for key in LABELS[:5]])
    store.claims.abandon("owner-1", LABELS)
    assert store.runs.spent(SCOPE) == (5 * PRICE + 3, 0), "the request may have been charged"
    assert store.check.problems() == []
