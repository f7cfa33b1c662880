"""Who may ask, what becomes of a request whose asker went away, and what the budget has to do with it."""

from __future__ import annotations

import threading

import pytest

from tests.integration.conftest import Clock
from tests.support.store_steps import (
    CROWD,
    LEASE,
    PRICE,
    SCOPE,
    answers,
    begin,
    claim,
    granted,
    keys,
    lose,
    pay,
    reply,
    send,
)
from tests.support.stored_answers import every_request
from twothirds.store import Claimed, Reply, Store, StoreError, text_key
from twothirds.store.requests import COLLECTABLE_SECONDS, ClaimTerms, Wanted, drop_answer
from twothirds.store.runs import reserve


def test_a_question_is_granted_once_until_it_is_answered(store: Store) -> None:
    begin(store)
    [first, other] = granted(store, ["ab", "c"])
    second = claim(store, ["abd", "e"], owner="owner-2")
    assert second.held == keys("ab")
    assert [one.keys for one in second.granted] == [tuple(map(text_key, names)) for names in ("d", "e")]
    send(store, [first, other])
    store.requests.record("run-1", [reply(first, "ab")])
    third = claim(store, ["abc"], owner="owner-2")
    assert (third.known, third.held, third.granted) == (keys("ab"), keys("c"), [])


def test_an_owner_does_not_get_what_it_already_holds(store: Store) -> None:
    begin(store)
    claim(store, ["a"])
    assert claim(store, ["a"]).held == keys("a")


def test_a_claim_whose_acknowledgement_was_lost_is_recognised_by_its_token(store: Store) -> None:
    begin(store)
    wanted = [Wanted(tuple(keys("ab")), PRICE), Wanted(tuple(keys("c")), PRICE)]
    terms = ClaimTerms(owner="o", token="one call", lease_seconds=LEASE, budget=2 * PRICE, again={})
    first, second = (store.requests._claim("run-1", CROWD, wanted, terms) for _ in range(2))
    assert first == second
    assert store.runs.spent(SCOPE) == (0, 2 * PRICE)


def test_a_request_that_dies_before_it_is_sent_costs_nothing_and_leaves_nothing(store: Store, clock: Clock) -> None:
    begin(store)
    claim(store, ["a"])
    assert store.runs.spent(SCOPE) == (0, PRICE)
    clock.now += LEASE
    assert len(claim(store, ["a"], owner="owner-2").granted) == 1
    assert store.runs.spent(SCOPE) == (0, PRICE)
    assert store.costs.lines() == []
    assert len(every_request(store)) == 1


def test_one_that_dies_after_it_was_sent_stays_spent_and_is_booked_to_its_run(store: Store, clock: Clock) -> None:
    begin(store, "run-1")
    begin(store, "run-2")
    send(store, granted(store, ["ab"]), PRICE // 2)
    clock.now += LEASE
    assert len(claim(store, ["a"], owner="owner-2", run_id="run-2").granted) == 1
    assert store.runs.spent(SCOPE) == (PRICE // 2, PRICE)
    (line,) = store.costs.lines("run-1")
    assert (line.oracle, line.kind, line.unknown_calls, line.unknown) == ("crowd", "label", 1, PRICE // 2)
    assert (line.paid_calls, line.paid, line.questions) == (0, 0, 0)


def test_sending_starts_the_lease_anew(store: Store, clock: Clock) -> None:
    begin(store)
    numbers = granted(store, ["a"])
    clock.now += LEASE - 1
    assert send(store, numbers) == set(numbers)
    clock.now += LEASE - 1
    assert claim(store, ["a"], owner="owner-2").held == keys("a")
    clock.now += 1
    assert len(claim(store, ["a"], owner="owner-2").granted) == 1


def test_a_sleeper_whose_request_was_taken_is_told_not_to_send(store: Store, clock: Clock) -> None:
    begin(store)
    numbers = granted(store, ["a", "b"])
    clock.now += LEASE
    [new] = granted(store, ["a"], owner="owner-2")
    assert new not in numbers, "ids are fencing tokens"
    assert send(store, numbers) == set()
    assert send(store, [new], owner="owner-2") == {new}


def test_a_late_answer_replaces_what_was_in_doubt_and_serves_all(store: Store, clock: Clock) -> None:
    begin(store)
    [late] = granted(store, ["ab"])
    send(store, [late])
    clock.now += LEASE
    [second] = granted(store, ["a"], owner="owner-2")
    assert store.requests.record("run-1", [reply(late, "ab", cost=40_000, says="late")]) == {}
    assert store.runs.spent(SCOPE) == (40_000, PRICE)
    assert answers(store, "ab") == {"a": "late", "b": "late"}
    send(store, [second], owner="owner-2")
    kept = store.requests.record("run-1", [reply(second, "a", cost=50_000, says="second")])
    assert {key: answer["verdict"] for key, answer in kept.items()} == {text_key("a"): "late"}
    assert store.runs.spent(SCOPE) == (90_000, 0)
    (line,) = store.costs.lines()
    assert (line.questions, line.paid_calls, line.paid, line.unknown_calls) == (2, 3, 90_000, 0)
    assert store.check.problems() == []


def test_a_late_answer_to_an_answered_question_is_booked_but_changes_nothing(store: Store, clock: Clock) -> None:
    begin(store)
    [late] = granted(store, ["a"])
    send(store, [late])
    clock.now += LEASE
    [second] = granted(store, ["a"], owner="owner-2")
    send(store, [second], owner="owner-2")
    store.requests.record("run-1", [reply(second, "a", says="in time")])
    earlier = store.requests.record("run-1", [reply(late, "a", cost=30_000, says="late")])
    assert earlier[text_key("a")]["verdict"] == "in time"
    assert answers(store, "a") == {"a": "in time"}
    assert store.runs.spent(SCOPE) == (PRICE + 30_000, 0)
    assert store.check.problems() == []


def test_a_reply_in_parts_is_durable_part_by_part_and_its_amounts_are_totals(store: Store, clock: Clock) -> None:
    begin(store)
    [number] = granted(store, ["abc"])
    send(store, [number])
    whole = reply(number, "abc", cost=60_000)
    part = Reply(number, whole.keys, {0: whole.answers[0]}, cost=20_000, in_doubt=50_000)
    for _ in range(2):  # as after a commit whose acknowledgement was lost
        assert store.requests.record("run-1", [part]) == {}
        assert answers(store, "abc") == {"a": "yes"}
        assert store.runs.spent(SCOPE) == (20_000, PRICE - 20_000)
    clock.now += LEASE
    [rest] = granted(store, ["bc"], owner="owner-2")
    assert store.runs.spent(SCOPE) == (70_000, PRICE), "what the rest may have cost stays booked"
    store.requests.record("run-1", [whole])
    assert store.runs.spent(SCOPE) == (60_000, PRICE)
    assert store.requests.release("owner-2", [rest]) == 0
    assert answers(store, "abc") == dict.fromkeys("abc", "yes")
    assert store.check.problems() == []


def test_a_request_that_is_closed_without_all_answers_gives_its_questions_back(store: Store) -> None:
    begin(store)
    [number] = granted(store, ["abc"])
    send(store, [number])
    whole = reply(number, "abc")
    closed = Reply(number, whole.keys, {1: whole.answers[1]}, cost=7, in_doubt=3, closes=True)
    store.requests.record("run-1", [closed])
    assert (answers(store, "abc"), store.runs.spent(SCOPE)) == ({"b": "yes"}, (10, 0))
    assert len(claim(store, ["ac"]).granted[0].keys) == 2
    assert store.check.problems() == []


def test_dead_requests_of_other_questions_and_scopes_are_ended_too(store: Store, clock: Clock) -> None:
    begin(store, "run-1")
    claim(store, ["a"])
    begin(store, "run-2", scope="another")
    clock.now += LEASE
    claim(store, ["b"], owner="owner-2", run_id="run-2")
    assert (store.runs.spent(SCOPE), store.runs.spent("another")) == ((0, 0), (0, PRICE))


def test_what_is_known_to_be_uncharged_costs_nothing_and_can_be_claimed_at_once(store: Store) -> None:
    begin(store)
    numbers = granted(store, ["a", "b"])
    send(store, numbers[1:])
    assert store.requests.release("owner-1", numbers, uncharged=True) == 0
    assert store.runs.spent(SCOPE) == (0, 0)
    again = granted(store, ["a", "b"], owner="owner-2")
    store.requests.release("owner-1", again)
    assert store.runs.spent(SCOPE) == (0, 2 * PRICE), "they are another's"


def test_what_is_given_up_stays_spent_if_it_was_sent(store: Store) -> None:
    begin(store)
    numbers = granted(store, ["a", "b"])
    send(store, numbers[1:])
    assert store.requests.release("owner-1", numbers) == PRICE
    assert store.runs.spent(SCOPE) == (PRICE, 0)
    assert len(claim(store, ["a", "b"], owner="owner-2").granted) == 2


def test_what_a_batch_holds_does_not_expire_and_whoever_wants_it_adopts_it(store: Store, clock: Clock) -> None:
    begin(store, "run-1")
    begin(store, "run-2")
    [number] = granted(store, ["abcd"])
    store.requests.note_batch("owner-1", [number], "batch 7")
    clock.now += 100 * LEASE
    [first] = claim(store, ["ab"], owner="owner-2", run_id="run-2", budget=1).granted
    assert (first.is_adopted, first.keys, first.booked) == (True, tuple(map(text_key, "ab")), PRICE // 2)
    store.requests.record("run-2", [reply(first.request, "ab", cost=10)])
    assert store.runs.spent(SCOPE) == (PRICE // 2 + 10, 0), "the rest is still in the batch"
    [second] = claim(store, ["acd"], owner="owner-3", budget=1).granted
    assert (second.is_adopted, second.keys) == (True, tuple(map(text_key, "cd")))
    store.requests.release("owner-3", [second.request])
    assert store.requests.in_batches([text_key(name) for name in "dcba"]) == [text_key("d"), text_key("c")]
    assert store.check.problems() == []
    clock.now += COLLECTABLE_SECONDS
    assert not claim(store, ["cd"]).granted[0].is_adopted, "the provider has deleted it"
    assert store.runs.spent(SCOPE) == (PRICE // 2 + 10, PRICE)


def test_another_scope_adopts_only_what_its_own_budget_covers(store: Store, clock: Clock) -> None:
    begin(store)
    begin(store, "run-2", scope="another")
    [number] = granted(store, ["ab"])
    store.requests.note_batch("owner-1", [number], "batch 7")
    clock.now += LEASE
    assert claim(store, ["ab"], run_id="run-2", budget=PRICE - 1).refused
    assert (store.runs.spent(SCOPE), store.runs.spent("another")) == ((PRICE, 0), (0, 0))
    assert claim(store, ["ab"], run_id="run-2", budget=PRICE).granted[0].is_adopted
    assert (store.runs.spent(SCOPE), store.runs.spent("another")) == ((0, 0), (0, PRICE))
    assert store.check.problems() == []


def test_a_question_that_is_asked_again_is_open_until_another_answer_comes(store: Store, clock: Clock) -> None:
    begin(store)
    pay(store, ["ab"])
    clock.now += 10
    assert claim(store, ["ab"], again={"a": clock.now - 20}).known == keys("ab"), "it is newer than that"
    assert claim(store, ["ab"], again={"a": clock.now}, budget=PRICE).refused
    assert answers(store, "ab") == {"a": "yes", "b": "yes"}, "it was not claimed"
    [number] = [one.request for one in claim(store, ["ab"], again={"a": clock.now}).granted]
    assert store.requests.release("owner-1", [number]) == 0
    assert answers(store, "ab") == {"b": "yes"}
    [number] = [one.request for one in claim(store, ["ab"]).granted]
    send(store, [number])
    store.requests.record("run-1", [reply(number, "a", says="no")])
    assert answers(store, "ab") == {"a": "no", "b": "yes"}
    assert store.runs.spent(SCOPE) == (2 * PRICE, 0), "both stay booked"
    assert store.check.problems() == []


def test_a_question_whose_answer_is_dropped_is_open_again_and_stays_in_the_books(store: Store) -> None:
    begin(store)
    pay(store, ["ab"])
    store.transactions.write(lambda connection: drop_answer(connection, text_key("a")))
    assert answers(store, "ab") == {"b": "yes"}
    assert (store.runs.spent(SCOPE), store.requests.count(SCOPE)) == ((PRICE, 0), 1)
    pay(store, ["a"])
    assert store.check.problems() == []


def test_nothing_asked_for_does_nothing(store: Store) -> None:
    begin(store)
    assert claim(store, []) == Claimed()
    assert send(store, []) == set()
    assert store.requests.record("run-1", []) == {}
    assert store.requests.release("owner-1", []) == 0
    assert store.requests.answers([]) == {}


def test_a_reply_to_what_was_never_claimed_is_refused(store: Store) -> None:
    begin(store)
    with pytest.raises(StoreError, match="request 7 is not in the store"):
        store.requests.record("run-1", [reply(7, "a")])
    assert answers(store, "a") == {}


def test_requests_are_granted_in_order_while_the_budget_lasts(store: Store) -> None:
    begin(store)
    claimed = claim(store, ["ab", "c", "d"], budget=2 * PRICE + 1)
    assert [one.keys for one in claimed.granted] == [tuple(map(text_key, "ab")), (text_key("c"),)]
    assert [one.keys for one in claimed.refused] == [(text_key("d"),)]
    assert store.runs.spent(SCOPE) == (0, 2 * PRICE)


def test_what_an_answer_costs_less_than_its_bound_can_be_spent_again(store: Store) -> None:
    begin(store)
    claimed = claim(store, ["a", "b"], budget=PRICE)
    assert len(claimed.refused) == 1
    store.requests.record("run-1", [reply(claimed.granted[0].request, "a", cost=PRICE // 4)])
    assert len(claim(store, ["b"], price=PRICE * 3 // 4, budget=PRICE).granted) == 1
    assert claim(store, ["c"], price=1, budget=PRICE).refused


def test_executions_of_one_scope_share_the_budget_and_a_higher_one_goes_on(store: Store) -> None:
    begin(store, "run-1")
    claim(store, ["a", "b"], budget=2 * PRICE)
    begin(store, "run-2")
    assert claim(store, ["c"], run_id="run-2", owner="owner-2", budget=2 * PRICE).refused
    assert claim(store, ["c"], run_id="run-2", owner="owner-2", budget=3 * PRICE).granted
    begin(store, "run-3", scope="another")
    assert claim(store, ["d"], run_id="run-3", budget=PRICE).granted


def test_what_is_in_doubt_counts_against_the_budget(store: Store) -> None:
    begin(store)
    lose(store, ["a"], PRICE)
    assert claim(store, ["a"], owner="owner-2", budget=PRICE).refused
    assert store.runs.spent(SCOPE) == (PRICE, 0)


def test_a_price_beyond_its_bound_is_booked_in_full_and_stops_the_rest(store: Store) -> None:
    begin(store)
    [number] = granted(store, ["a"], budget=PRICE)
    store.requests.record("run-1", [reply(number, "a", cost=3 * PRICE)])
    assert store.runs.spent(SCOPE) == (3 * PRICE, 0)
    assert claim(store, ["b"], budget=2 * PRICE).refused
    assert claim(store, ["c"], price=0, budget=2 * PRICE).granted


def test_more_is_reserved_for_a_further_attempt_if_the_budget_allows_it(store: Store) -> None:
    begin(store)
    first, second = granted(store, ["ab", "c"], price=100, budget=1000)
    assert store.requests.send("run-1", "owner-1", {first: 90}, 1000) == ({first}, False)
    assert store.runs.spent(SCOPE) == (0, 200)
    for _ in range(2):  # as after a commit whose acknowledgement was lost
        assert store.requests.send("run-1", "owner-1", {first: 250, second: 100}, 1000) == ({first, second}, False)
        assert store.runs.spent(SCOPE) == (0, 350)
    assert store.requests.send("run-1", "owner-1", {first: 901}, 1000) == (set(), True)
    assert store.runs.spent(SCOPE) == (0, 350)
    assert store.requests.send("run-1", "another", {first: 500}, 1000) == (set(), False)
    store.requests.record("run-1", [reply(first, "ab", cost=50), reply(second, "c", cost=50)])
    assert store.runs.spent(SCOPE) == (100, 0)
    assert store.check.problems() == []


def test_nothing_is_known_of_a_scope_that_never_ran(store: Store) -> None:
    assert store.runs.spent("unheard of") == (0, 0)


def test_the_statement_that_reserves_knows_the_budget_itself(store: Store) -> None:
    begin(store)
    writing = store.engine.execution_options(writes=True).begin()
    with pytest.raises(StoreError, match="does not fit the budget of 99"), writing as connection:
        reserve(connection, store.runs.find(connection, "run-1"), 100, budget=99)
    assert store.runs.spent(SCOPE) == (0, 0)


def test_threads_in_two_scopes_that_want_the_same_questions_get_each_once(store_url: str, clock: Clock) -> None:
    """Each with connections of its own; nobody waits for ever for another."""
    names, got, errors = [f"key {number}" for number in range(60)], list[str](), list[BaseException]()
    stores = [Store.open(store_url, clock=clock, patience=60) for _ in range(4)]
    start = threading.Barrier(len(stores))

    def ask(number: int) -> None:
        own, run_id, owner = stores[number], f"run-{number}", f"owner-{number}"
        try:
            begin(own, run_id, scope=f"scope {number % 2}")
            start.wait()
            for first in range(0, len(names), 6):
                order = names[first : first + 6][:: 1 if number % 2 else -1]
                for one in claim(own, [tuple(order[:3]), tuple(order[3:])], owner=owner, run_id=run_id).granted:
                    got.extend(one.keys)
                    assert send(own, [one.request], owner=owner, run_id=run_id)
                    entries = {at: ({"asked": key}, {"verdict": owner}) for at, key in enumerate(one.keys)}
                    assert own.requests.record(run_id, [Reply(one.request, one.keys, entries, cost=PRICE)]) == {}
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(got) == sorted(map(text_key, names))
    assert stores[0].check.problems() == []
    for own in stores:
        own.close()
