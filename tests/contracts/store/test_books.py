"""What is kept, found again and counted."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Clock
from tests.support.store_steps import PRICE, SCOPE, answers, begin, claim, granted, pay
from tests.support.stored_answers import every_answer
from twothirds.store import Reply, Store, StoreError, Totals, text_key


def test_more_questions_than_one_statement_holds_are_claimed_and_found(store: Store) -> None:
    begin(store)
    names = [f"key {number}" for number in range(1201)]
    pay(store, [names], cost=1)
    assert answers(store, names).keys() == set(names)
    assert claim(store, [names]).known == set(map(text_key, names))


def test_text_that_databases_refuse_comes_back_as_it_was(store: Store) -> None:
    begin(store)
    odd = "nul \0 surrogate \ud800 right-to-left \u202e emoji \U0001f600"
    [number] = granted(store, ["a"])
    key = text_key("a")
    store.requests.record("run-1", [Reply(number, (key,), {0: ({"q": odd}, {"raw": odd})})])
    assert store.requests.answers([key]) == {key: {"raw": odd}}
    begin(store, run_id="run-2", scope="a \0 \udcff scope", name="file \udce9\0name")
    assert store.runs.overview()[0]["name"] == "file \\udce9\\x00name"


def test_every_answer_comes_with_all_that_its_key_was_made_of(store: Store, clock: Clock) -> None:
    begin(store)
    pay(store, ["ab"])
    (first, second) = every_answer(store)
    assert first.identity == second.identity == {"kind": "crowd", "model": "m"}
    assert (first.question, second.question) == ({"asked": "a"}, {"asked": "b"})
    assert (first.oracle, first.kind) == ("crowd", "label")
    [stored] = store.requests.lookup([text_key("a")]).values()
    run = store.runs.row("run-1")
    assert (stored.answered_at, stored.run, stored.scope, stored.kind) == (clock.now, run.run, run.scope, "label")


def test_costs_tell_what_was_paid_from_what_was_stored(store: Store) -> None:
    begin(store, "run-1")
    pay(store, ["ab"], cost=14)
    pay(store, ["c"], cost=11, kind="two-of-three")
    begin(store, "run-2")
    store.costs.note_stored("run-2", "crowd", {"label": (1, 7), "two-of-three": (1, 11)})
    pay(store, ["d"], run_id="run-2", cost=5)
    lines = {(line.run_id, line.kind): line for line in store.costs.lines()}
    assert set(lines) == {("run-1", "label"), ("run-1", "two-of-three"), ("run-2", "label"), ("run-2", "two-of-three")}
    first, second = lines["run-1", "label"], lines["run-2", "label"]
    assert (first.questions, first.paid_calls, first.cached_calls, first.paid, first.cached_worth) == (2, 2, 0, 14, 0)
    assert (first.requests, first.input_tokens, first.output_tokens) == (1, 20, 3)
    assert (second.questions, second.paid_calls, second.cached_calls) == (2, 1, 1)
    assert (second.paid, second.cached_worth) == (5, 7)
    assert lines["run-2", "two-of-three"].cached_worth == 11
    assert first.oracle == "crowd"
    assert store.costs.totals_of_scope(SCOPE) == Totals(4, 2, 30, 0, 0, {"label": 19, "two-of-three": 11})


def test_costs_are_found_by_run_and_by_name(store: Store) -> None:
    begin(store, "run-1", name="monday")
    begin(store, "run-2", name="tuesday")
    begin(store, "run-3", name="tuesday")
    for number in (1, 2, 3):
        pay(store, [(f"key {number}",)], run_id=f"run-{number}")
    assert [line.run_id for line in store.costs.lines("run-1")] == ["run-1"]
    assert [line.run_id for line in store.costs.lines("tuesday")] == ["run-2", "run-3"]
    assert [line.run_id for line in store.costs.lines()] == ["run-1", "run-2", "run-3"]
    assert store.costs.lines("sunday") == []


def test_what_earlier_executions_paid_for_is_there_for_the_next(store: Store) -> None:
    begin(store, "run-1")
    pay(store, ["ab"])
    begin(store, "run-2", scope="another")
    assert [store.requests.count(scope) for scope in (SCOPE, "another", "unheard of", None)] == [2, 0, 0, 2]


def test_runs_are_listed_with_their_ends_latest_first(store: Store, clock: Clock) -> None:
    begin(store, "run-1")
    clock.now += 10
    begin(store, "run-2")
    clock.now += 10
    store.runs.end("run-1", "done", {"features": 20})
    second, first = store.runs.overview()
    assert (first["run_id"], first["status"], first["summary"]) == ("run-1", "done", {"features": 20})
    assert (first["ended_at"] - first["started_at"], first["scope"], first["settings"]) == (20, SCOPE, {"seed": 1})
    assert (second["run_id"], second["status"], second["ended_at"]) == ("run-2", "running", None)


def test_a_run_that_is_taken_up_again_under_its_id_is_one_run(store: Store) -> None:
    begin(store, "run-1")
    store.runs.end("run-1", "suspended", {})
    begin(store, "run-1")
    assert [(run["run_id"], run["status"]) for run in store.runs.overview()] == [("run-1", "running")]
    with pytest.raises(StoreError, match="run run-1 was begun with other settings"):
        begin(store, "run-1", scope="another")


def test_a_run_that_was_never_begun_is_named(store: Store) -> None:
    for act in (lambda: claim(store, ["a"], run_id="ghost"), lambda: store.runs.end("ghost", "done", {})):
        with pytest.raises(StoreError, match="run ghost is not in the store"):
            act()


def test_computed_labels_are_counted_in_bulk_without_an_answer_or_a_charge(store: Store) -> None:
    begin(store)
    pay(store, ["a"])
    store.costs.note_computed("run-1", "contrastive:faces", 30)
    store.costs.note_computed("run-1", "contrastive:faces", 12)
    assert store.requests.count() == 1
    line = next(line for line in store.costs.lines("run-1") if line.kind == "computed")
    assert (line.oracle, line.questions, line.paid_calls) == ("contrastive:faces", 42, 42)
    assert (line.paid, line.requests, line.cached_calls) == (0, 0, 0)
    assert (store.costs.totals("run-1").paid_calls, store.costs.totals("run-1").paid) == (43, PRICE)
    assert store.check.problems() == []
