"""Labels of one example that are asked together are one row: with the same answers, books, claims and checks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from benchmarks import store as paid
from flows.cli.store_check import CheckResult, check
from models.oracle import Feature, Label
from models.recorded import Recorded
from store import Store, StoreError
from store.ledger.answers import StoredAnswers
from store.ledger.claims import ClaimTerms, Request
from store.packed.answers import unpack
from store.packed.claims import LEAST, NewClaim, all_packed_claims, claim_packs
from store.packed.content import MOST
from store.schema import answers, charges, packed_claims, packed_keys, packs
from tests.integration.conftest import Clock
from tests.support.made import crowd_of, random_truth, texts
from tests.support.store_steps import LEASE, PRICE, SCOPE, begin, claim, pay, record
from tests.support.stored_answers import every_answer

LABELS = [f"{16 * '0'}{letter * 48}" for letter in "0123456789"]


def rows(store: Store, *tables: Any) -> list[int]:
    with store.engine.connect() as connection:
        return [connection.execute(select(func.count()).select_from(one)).scalar_one() for one in tables]


def test_labels_that_are_claimed_and_answered_together_are_one_row(store: Store) -> None:
    begin(store)
    granted = claim(store, LABELS, price=PRICE, budget=10 * PRICE).granted
    assert granted == dict.fromkeys(LABELS, 1)
    assert rows(store, packed_claims, packs, charges) == [1, 0, 0]
    assert store.runs.spent(SCOPE) == (0, 10 * PRICE)
    assert store.claims.mark_sent("owner-1", LABELS) == set(LABELS)
    said = [record(key, 1, cost=number, says=f"it is {number}") for number, key in enumerate(LABELS)]
    assert store.answers.record("run-1", said) == {}
    assert rows(store, packed_claims, packs, charges, answers, packed_keys) == [0, 1, 0, 0, 10]
    assert store.answers.lookup([*LABELS, "a"]) == {one.key: one.answer for one in said}
    assert store.answers.member("verdict", LABELS[3:5]) == {LABELS[3]: "it is 3", LABELS[4]: "it is 4"}
    assert store.runs.spent(SCOPE) == (45, 0)
    (line,) = store.costs.lines()
    assert (line.paid_calls, line.paid, line.requests, line.input_tokens, line.output_tokens) == (10, 45, 10, 200, 30)
    assert (store.answers.count(), store.answers.count(SCOPE)) == (10, 10)
    assert {one.key: (one.question, one.cost) for one in every_answer(store)} == {
        one.key: (one.question, one.cost) for one in said
    }
    assert store.check.problems() == []
    assert sorted(claim(store, LABELS).answered) == LABELS


def test_few_labels_and_other_questions_have_rows_of_their_own(store: Store) -> None:
    begin(store)
    pay(store, LABELS[: LEAST - 1])
    requests = [Request(key, PRICE, "crowd", "two-of-three") for key in LABELS[LEAST:]]
    store.claims.claim("run-1", SCOPE, requests, owner="o", lease_seconds=LEASE, budget=None)
    assert rows(store, packed_claims, packs) == [0, 0]


def test_many_labels_of_one_example_are_several_rows(store: Store) -> None:
    begin(store)
    keys = [f"{16 * '0'}{number:048x}" for number in range(2 * MOST + 5)]
    pay(store, keys)
    assert rows(store, packs, charges) == [3, 0]
    assert set(store.answers.lookup(keys)) == set(keys)


def test_an_answer_is_kept_as_it_was_given_whatever_it_holds(store: Store) -> None:
    begin(store)
    granted = claim(store, LABELS, sending=10).granted
    odd: list[Any] = [1, 1.0, True, None, "\ud800 \0", "ä", 0.1 + 0.2, [1], [1.0], {"a": [True]}]
    said = [
        replace(record(key, granted[key]), answer={"same": 1, "raw": one}) for key, one in zip(LABELS, odd, strict=True)
    ]
    said[3] = replace(said[3], answer={"another": 2})
    store.answers.record("run-1", said)
    found = store.answers.lookup(LABELS)
    assert [repr(found[one.key]) for one in said] == [repr(one.answer) for one in said]
    assert rows(store, packs) == [2]


def test_a_commit_whose_acknowledgement_was_lost_may_be_repeated(store: Store) -> None:
    begin(store)
    terms: dict[str, Any] = {"owner": "o", "lease_seconds": LEASE, "budget": None, "sending": 5}
    requests = [Request(key, PRICE, "crowd", "label") for key in LABELS]
    once = store.claims.claim("run-1", SCOPE, requests, **terms)
    with store.engine.connect() as connection:
        (token,) = connection.execute(select(packed_claims.c.token)).scalars()
    again = store.claims._claim("run-1", SCOPE, requests, ClaimTerms("o", token, LEASE, None, 0.0, 5))
    assert (again.granted, again.sent) == (once.granted, once.sent)
    said = [record(key, 1, says=key[-1]) for key in LABELS]
    assert store.answers.record("run-1", said) == {}
    assert store.answers.record("run-1", said) == {one.key: one.answer for one in said}
    assert store.runs.spent(SCOPE) == (10 * PRICE, 0)
    assert store.check.problems() == []


@pytest.mark.parametrize("end", ["release", "abandon", "note_batch"])
def test_what_ends_otherwise_is_booked_as_if_it_were_not_packed(store: Store, end: str) -> None:
    begin(store)
    claim(store, LABELS, sending=6)
    acts: dict[str, Callable[[], object]] = {
        "release": lambda: store.claims.release("owner-1", LABELS[4:8]),
        "abandon": lambda: store.claims.abandon("owner-1", LABELS[4:8]),
        "note_batch": lambda: store.claims.note_batch("owner-1", LABELS[4:8], "batch 1"),
    }
    acts[end]()
    left = {"release": (0, 6), "abandon": (2, 6), "note_batch": (0, 10)}[end]
    assert store.runs.spent(SCOPE) == (left[0] * PRICE, left[1] * PRICE)
    assert store.check.problems() == []
    store.answers.record("run-1", [record(key, 1) for key in LABELS])
    assert store.runs.spent(SCOPE) == (10 * PRICE, 0)
    assert (rows(store, packs, charges), store.check.problems()) == ([1, 4], [])


def test_an_answer_with_costs_in_doubt_has_a_row_that_can_be_settled(store: Store) -> None:
    begin(store)
    claim(store, LABELS, sending=10)
    store.answers.record("run-1", [replace(record(key, 1), in_doubt=3 * (key == LABELS[0])) for key in LABELS])
    assert rows(store, packs, charges) == [1, 1]
    assert store.settlements.settle(None, 2, "a bill").calls == 1
    assert store.runs.spent(SCOPE) == (10 * PRICE + 2, 0)
    assert store.check.problems() == []


def test_uses_are_counted_once_for_a_run_and_once_for_a_scope(store: Store) -> None:
    for run, scope in (("run-1", SCOPE), ("run-2", SCOPE), ("run-3", "another"), ("run-4", "another")):
        begin(store, run, scope=scope)
    pay(store, LABELS)
    for run, keys in (("run-1", LABELS), ("run-2", LABELS[:3]), ("run-2", LABELS), ("run-3", LABELS[:4])):
        for _ in range(2):
            store.answers.note_uses(run, [*keys, "not kept"])
    store.answers.note_uses("run-4", LABELS[2:6])
    cached = {line.run_id: (line.cached_calls, line.cached_worth) for line in store.costs.lines()}
    expected = {"run-1": 0, "run-2": 10, "run-3": 4, "run-4": 4}
    assert cached == {run: (calls, calls * PRICE) for run, calls in expected.items()}
    assert [store.answers.count(scope) for scope in (SCOPE, "another")] == [10, 6]
    assert store.check.problems() == []
    store.transactions.write(lambda connection: unpack(connection, LABELS[1:4]))
    assert {line.run_id: (line.cached_calls, line.cached_worth) for line in store.costs.lines()} == cached
    assert store.check.problems() == []
    store.answers.note_uses("run-4", LABELS)
    assert [store.answers.count(scope) for scope in (SCOPE, "another")] == [10, 10]
    assert store.check.problems() == []


def test_an_answer_that_is_asked_again_is_replaced_and_both_charges_stay(store: Store, clock: Clock) -> None:
    begin(store)
    pay(store, LABELS)
    clock.now += 10
    again = Request(LABELS[0], PRICE, "crowd", "label", replaces=clock.now)
    granted = store.claims.claim("run-1", SCOPE, [again], owner="o", lease_seconds=LEASE, budget=None).granted
    assert granted == {LABELS[0]: 2}
    new = replace(record(LABELS[0], 2, says="anew"), replaces=clock.now)
    assert store.answers.record("run-1", [new]) == {}
    assert store.answers.lookup(LABELS[:2]) == {LABELS[0]: {"verdict": "anew"}, LABELS[1]: {"verdict": "yes"}}
    assert store.runs.spent(SCOPE) == (11 * PRICE, 0)
    assert store.check.problems() == []


def test_labels_that_another_process_has_claimed_and_given_back_meanwhile_are_not_packed(store: Store) -> None:
    """As if that had happened between the look at a question and its claim."""
    begin(store)
    claim(store, LABELS[:1], owner="other")
    store.claims.release("other", LABELS[:1])
    new = [NewClaim(key, "crowd", "label", 0, False) for key in LABELS]
    lease = {"lease_seconds": LEASE, "lease_until": LEASE, "claimed_at": 0.0}
    terms = {"run": 1, "owner": "mine", "token": "token", **lease}
    lost = store.transactions.write(lambda connection: claim_packs(connection, [new], terms))
    assert lost == (set(LABELS[:1]) if store.engine.dialect.name == "postgresql" else set())


OTHER = "SELECT other.content FROM packs other WHERE other.id <> packs.id"
TAMPERINGS = {
    "content": (f"UPDATE packs SET content = ({OTHER}) WHERE id = 1", "not what was written"),
    "cost": ("UPDATE packs SET cost = cost + 1 WHERE id = 1", "do not cost what is booked"),
    "places": ("UPDATE packs SET gone = 1 WHERE id = 1", "keys lead to them"),
    "key": ("DELETE FROM packed_keys WHERE place = 0 AND pack = 1", "keys lead to them"),
    "place": ("UPDATE packed_keys SET place = 1 WHERE place = 0 AND pack = 1", "its key is not"),
    "pack": ("UPDATE packed_keys SET pack = 2 WHERE place = 0 AND pack = 1", "its key is not"),
    "form": ("UPDATE question_forms SET form = replace(form, 'It has', 'It lacks') WHERE id = 1", "its key is not"),
    "uses": ("UPDATE packed_uses SET places = 1 WHERE pack = 1", "cached_calls is booked as"),
    "balance": ("UPDATE scopes SET kept = kept + 1", "answers booked, but"),
}  # fmt: skip


def enriched(store: Store, run_id: str) -> Recorded:
    begin(store, run_id)
    features = [Feature(f"feature {letter}", f"It has {letter}.") for letter in "abcdef"]
    oracle = Recorded(crowd_of(random_truth(2, 6), price=PRICE), store, run_id=run_id, scope=SCOPE)
    assert len(list(oracle.ask([Label(one, example) for example in texts(2) for one in features]))) == 12
    return oracle


@pytest.mark.parametrize("what", TAMPERINGS)
def test_whatever_is_altered_by_hand_is_named(store: Store, what: str) -> None:
    assert (enriched(store, "run-1").paid_calls, enriched(store, "run-2").cached_calls) == (12, 12)
    assert rows(store, packs) == [2]
    assert check(store) == CheckResult(answers=12)
    statement, line = TAMPERINGS[what]
    with store.engine.execution_options(writes=True).begin() as connection:
        assert connection.execute(text(statement)).rowcount == 1
    problems = check(store).problems
    assert any(line in problem for problem in problems), problems


def test_damaged_content_is_reported_in_one_line(store: Store) -> None:
    oracle = enriched(store, "run-1")
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.execute(packs.update().values(content=b"damaged"))
    assert any("no JSON object" in line for line in check(store).problems)
    with pytest.raises(StoreError, match="cannot be unpacked"):
        list(oracle.ask([Label(Feature("feature a", "It has a."), texts(1)[0])]))


def test_a_commit_that_is_rolled_back_leaves_no_number_of_a_question_behind(store: Store) -> None:
    """As when one of the writes that share a commit fails: the others are tried again, each alone."""
    begin(store)
    others = [f"{16 * '1'}{key[16:]}" for key in LABELS]
    claim(store, [*LABELS, *others], sending=20)
    said = {key: record(key, 1, says=key[:1]) for key in [*LABELS, *others]}
    broken = [record(LABELS[0], 7)]

    def work(connection: Any) -> None:
        keep = StoredAnswers.record.__wrapped__  # type: ignore[attr-defined]
        for part in ([said[key] for key in LABELS], [said[key] for key in others], broken):
            keep(store.answers, connection, "run-1", part)

    with pytest.raises(StoreError, match="never claimed under fence 7"):
        store.transactions.write(work)
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("INSERT INTO question_forms (digest, form) VALUES ('taken', '{}')"))
    store.answers.record("run-1", [said[key] for key in others])
    assert {one.key: one.question for one in every_answer(store)} == {key: said[key].question for key in others}


def test_requests_that_leave_together_are_marked_each_for_its_owner(store: Store) -> None:
    begin(store)
    keys = [f"{number:016x}{place:048x}" for number in range(24) for place in range(5)]
    for number in range(24):
        claim(store, keys[5 * number : 5 * number + 5], owner=f"owner-{number % 3}")
    claim(store, ["compared"], owner="owner-0")

    def leave(number: int) -> set[str]:
        strange = keys[5 * ((number + 1) % 24)]  # another owner's
        asked = [*keys[5 * number : 5 * number + 5], strange, *(["compared"] if number == 0 else [])]
        return store.claims.mark_leaving(f"owner-{number % 3}", dict.fromkeys(asked, number + 1))

    with ThreadPoolExecutor(24) as pool:
        marked = list(pool.map(leave, range(24)))
    own = [set(keys[5 * number : 5 * number + 5]) for number in range(24)]
    assert marked == [own[0] | {"compared"}, *own[1:]]
    with store.engine.connect() as connection:
        packed = {
            key: doubt
            for one in all_packed_claims(connection)
            for key, doubt in zip(one.keys, one.in_doubt, strict=True)
        }
        single = connection.execute(select(charges.c.key, charges.c.in_doubt)).tuples().all()
    assert packed == {key: place // 5 + 1 for place, key in enumerate(keys)}
    assert single == [("compared", 1)]


def test_a_paid_label_takes_at_most_120_bytes_and_is_booked_like_any_other(tmp_path: Path) -> None:
    url, labels = str(tmp_path / "store.sqlite"), 5_120
    with Store.open(url) as store:
        paid.begin(store, "first")
    empty = paid.size_of(url)
    paid.work(url, 0, labels // paid.PER_REQUEST)
    assert (paid.size_of(url) - empty) / labels <= 120
    with Store.open(url) as store:
        assert rows(store, charges, packs, packed_keys) == [0, labels // paid.PER_REQUEST, labels]
        assert store.runs.spent(paid.SCOPE) == (paid.PRICE * labels, 0)
        (line,) = store.costs.lines()
        assert (line.paid_calls, line.requests) == (labels, labels // paid.PER_REQUEST)
        assert store.check.problems() == []
