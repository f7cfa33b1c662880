"""Who may ask, and what becomes of a question whose asker went away."""

from __future__ import annotations

from store import Request, Store
from tests.integration.conftest import Clock
from tests.support.store_steps import LEASE, PRICE, SCOPE, begin, claim, record


def test_a_key_is_granted_once_until_it_is_answered(store: Store) -> None:
    begin(store)
    first = claim(store, ["a", "b"])
    assert first.granted == {"a": 1, "b": 1}
    second = claim(store, ["a", "b", "c"], owner="owner-2")
    assert (second.held, second.granted) == (["a", "b"], {"c": 1})
    store.claims.mark_sent("owner-1", ["a"])
    store.answers.record("run-1", [record("a", 1)])
    third = claim(store, ["a", "b"], owner="owner-2")
    assert (third.answered, third.held, third.granted) == (["a"], ["b"], {})


def test_an_owner_does_not_get_what_it_already_holds(store: Store) -> None:
    begin(store)
    claim(store, ["a"])
    assert claim(store, ["a"]).held == ["a"]


def test_a_claim_that_dies_before_it_is_sent_costs_nothing(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a"])
    assert store.runs.spent(SCOPE) == (0, PRICE)
    clock.now += LEASE
    assert claim(store, ["a"], owner="owner-2").granted == {"a": 2}
    assert store.runs.spent(SCOPE) == (0, PRICE)
    assert store.costs.lines() == []


def test_a_claim_that_dies_after_it_was_sent_stays_spent_and_is_booked_to_its_run(store: Store, clock: Clock) -> None:
    begin(store, "run-1")
    begin(store, "run-2")
    crowd = [Request("a", PRICE, "crowd", "label")]
    store.claims.claim("run-1", SCOPE, crowd, owner="owner-1", lease_seconds=LEASE, budget=None)
    store.claims.mark_sent("owner-1", ["a"])
    clock.now += LEASE
    assert claim(store, ["a"], owner="owner-2", run_id="run-2").granted == {"a": 2}
    assert store.runs.spent(SCOPE) == (PRICE, PRICE)
    (line,) = store.costs.lines("run-1")
    assert (line.oracle, line.kind, line.unknown_calls, line.unknown) == ("crowd", "label", 1, PRICE)
    assert (line.paid_calls, line.paid, line.questions) == (0, 0, 0)


def test_what_a_claim_marks_as_sent_is_as_good_as_sent_and_the_rest_is_not(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["b"], owner="owner-2")
    claimed = claim(store, ["a", "b", "c", "d"], sending=2, budget=4 * PRICE)
    assert (claimed.granted, claimed.sent, claimed.held) == ({"a": 1, "c": 1, "d": 1}, {"a", "c"}, ["b"])
    clock.now += LEASE
    claim(store, ["e"], owner="owner-3")
    assert store.runs.spent(SCOPE) == (2 * PRICE, PRICE)
    (line,) = store.costs.lines()
    assert (line.unknown_calls, line.unknown) == (2, 2 * PRICE)
    assert store.check.problems() == []


def test_sending_starts_the_lease_anew(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a"])
    clock.now += LEASE - 1
    assert store.claims.mark_sent("owner-1", ["a"]) == {"a"}
    clock.now += LEASE - 1
    assert claim(store, ["a"], owner="owner-2").held == ["a"]
    clock.now += 1
    assert claim(store, ["a"], owner="owner-2").granted == {"a": 2}


def test_a_sleeper_whose_claim_was_taken_is_told_not_to_send(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a", "b"])
    clock.now += LEASE
    claim(store, ["a"], owner="owner-2")
    assert store.claims.mark_sent("owner-1", ["a", "b"]) == set()
    assert store.claims.mark_sent("owner-2", ["a"]) == {"a"}


def test_a_late_answer_replaces_the_unknown_charge_and_serves_all(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a"])
    store.claims.mark_sent("owner-1", ["a"])
    clock.now += LEASE
    claim(store, ["a"], owner="owner-2")
    assert store.answers.record("run-1", [record("a", 1, cost=40_000, says="late")]) == {}
    assert store.runs.spent(SCOPE) == (40_000, PRICE)
    assert store.answers.lookup(["a"]) == {"a": {"verdict": "late"}}
    store.claims.mark_sent("owner-2", ["a"])
    kept = store.answers.record("run-1", [record("a", 2, cost=50_000, says="second")])
    assert kept == {"a": {"verdict": "late"}}
    assert store.runs.spent(SCOPE) == (90_000, 0)
    (line,) = store.costs.lines()
    assert (line.questions, line.paid_calls, line.paid, line.unknown_calls) == (1, 2, 90_000, 0)
    assert store.check.problems() == []


def test_a_late_answer_to_an_answered_question_is_booked_but_changes_nothing(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a"])
    store.claims.mark_sent("owner-1", ["a"])
    clock.now += LEASE
    claim(store, ["a"], owner="owner-2")
    store.claims.mark_sent("owner-2", ["a"])
    store.answers.record("run-1", [record("a", 2, says="in time")])
    store.answers.record("run-1", [record("a", 1, cost=30_000, says="late")])
    assert store.answers.lookup(["a"]) == {"a": {"verdict": "in time"}}
    assert store.runs.spent(SCOPE) == (PRICE + 30_000, 0)
    assert store.check.problems() == []


def test_dead_claims_of_other_keys_and_scopes_are_freed_too(store: Store, clock: Clock) -> None:
    begin(store, "run-1")
    claim(store, ["a"])
    begin(store, "run-2", scope="another")
    clock.now += LEASE
    claim(store, ["b"], owner="owner-2", run_id="run-2", scope="another")
    assert (store.runs.spent(SCOPE), store.runs.spent("another")) == ((0, 0), (0, PRICE))


def test_what_is_released_costs_nothing_and_can_be_claimed_at_once(store: Store) -> None:
    begin(store)
    claim(store, ["a", "b"])
    store.claims.mark_sent("owner-1", ["b"])
    store.claims.release("owner-1", ["a", "b"])
    assert store.runs.spent(SCOPE) == (0, 0)
    assert claim(store, ["a", "b"], owner="owner-2").granted == {"a": 2, "b": 2}
    store.claims.release("owner-1", ["a"])
    assert store.runs.spent(SCOPE) == (0, 2 * PRICE)


def test_what_is_given_up_stays_spent_if_it_was_sent(store: Store) -> None:
    begin(store)
    claim(store, ["a", "b"])
    store.claims.mark_sent("owner-1", ["b"])
    store.claims.abandon("owner-1", ["a", "b"])
    assert store.runs.spent(SCOPE) == (PRICE, 0)
    assert claim(store, ["a", "b"], owner="owner-2").granted == {"a": 2, "b": 2}


def test_empty_batches_do_nothing(store: Store) -> None:
    begin(store)
    assert claim(store, []).granted == {}
    assert store.claims.mark_sent("owner-1", []) == set()
    assert store.answers.record("run-1", []) == {}
    store.claims.release("owner-1", [])
    store.answers.note_uses("run-1", [])
    assert store.answers.lookup([]) == {}
