"""A store whose keys were bare digests, as before schema 6, is renamed when it is opened: nothing is paid twice."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection, text

from discovery.questions import Kind
from flows.cli.store_check import check
from models.oracle import Answer, AnswersPending, Compare, Feature, Label, Oracle, Question, digest_of
from models.people.human import HumanOracle, HumanTerms
from models.recorded import Recorded
from store import Store, StoreError, new_owner
from store.connection import connect
from store.review.leases import LeaseTerms
from tests.support.made import crowd_of, random_truth, texts
from tests.support.store_steps import SCOPE, begin, claim

EXAMPLES = texts(4)
LABELS = [Label(Feature("hat", "It wears a “hat”."), one, voter) for one in EXAMPLES for voter in range(2)]
QUESTIONS: list[Question] = [Compare(Kind.TWO_OF_THREE, EXAMPLES[:3], known=("red \ud800",)), *LABELS]
NAMES = {
    "answers": "SELECT id, key FROM answers ORDER BY id",
    "charges": "SELECT key, fence, state, cost FROM charges ORDER BY key, fence",
    "votes": "SELECT id, answer_key FROM review_votes ORDER BY id",
}


def asked(store: Store, run_id: str, oracle: Oracle, questions: list[Question]) -> tuple[Recorded, list[Answer]]:
    begin(store, run_id)
    recorded, answers = Recorded(oracle, store, run_id=run_id, scope=SCOPE), list[Answer]()
    with suppress(AnswersPending):
        answers.extend(recorded.ask(questions))
    return recorded, answers


def ask_people(store: Store, run_id: str) -> Recorded:
    return asked(store, run_id, HumanOracle(store.queue, terms=HumanTerms(price=50_000)), list(LABELS))[0]


def ask_crowd(store: Store, run_id: str) -> tuple[Recorded, list[Answer]]:
    return asked(store, run_id, crowd_of(random_truth(4, 3, seed=1), seed=1, price=1000), QUESTIONS)


def fill(store: Store) -> None:
    """Answers of a crowd and of two people, of whom one is withdrawn, and a claim that came to nothing."""
    ask_crowd(store, "crowd")
    ask_people(store, "first")
    for name in ("ann", "bob"):
        person = store.queue.people.add(name, "reviewer").id
        store.queue.votes.give(
            person, {one.id: {"verdict": "no"} for one in store.queue.leases.next_page(person, LeaseTerms())}
        )
    assert ask_people(store, "second").paid_calls == len(LABELS)
    assert store.queue.withdrawals.withdraw(store.queue.people.add("ann", "reviewer").id).answers == len(EXAMPLES)
    mine = new_owner()
    claim(store, ["0" * 64], owner=mine, run_id="crowd")
    store.claims.mark_sent(mine, ["0" * 64])
    store.claims.abandon(mine, ["0" * 64])


def names(store: Store) -> dict[str, list[Any]]:
    with store.engine.begin() as connection:
        return {name: list(connection.exec_driver_sql(query).all()) for name, query in NAMES.items()}


def make_old(store: Store) -> None:
    with store.engine.execution_options(writes=True).begin() as connection:
        every = text("SELECT a.key, a.question, i.identity FROM answers a JOIN identities i ON i.id = a.identity")
        for key, question, identity in connection.execute(every).all():
            bare = digest_of([json.loads(identity), json.loads(question)])
            rename(connection, key, bare + key[64:])
        undo_schema_7(connection)
        connection.execute(text("UPDATE twothirds_schema SET version = 5"))


def undo_schema_7(connection: Connection) -> None:
    """And those after it."""
    for table in ("packed_uses", "packs", "packed_claims", "packed_keys", "question_forms"):
        connection.exec_driver_sql(f"DROP TABLE {table}")
    connection.exec_driver_sql("DROP INDEX charges_asked_again")
    connection.exec_driver_sql("ALTER TABLE scopes DROP COLUMN kept")
    for column in ("in_doubt", "batch"):
        connection.exec_driver_sql(f"ALTER TABLE charges DROP COLUMN {column}")
    connection.exec_driver_sql("ALTER TABLE scopes DROP COLUMN taken_over_by")
    for table in ("settlements", "replaced_answers", "cost_totals"):
        connection.exec_driver_sql(f"DROP TABLE {table}")


def rename(connection: Connection, old: str, new: str) -> None:
    for table, column in (("answers", "key"), ("charges", "key"), ("review_votes", "answer_key")):
        statement = text(f"UPDATE {table} SET {column} = :new WHERE {column} = :old")
        connection.execute(statement, {"new": new, "old": old})


def test_everything_has_the_name_that_it_would_have_been_given(store: Store, store_url: str) -> None:
    fill(store)
    before, answers = names(store), ask_crowd(store, "crowd")[1]
    make_old(store)
    assert names(store) != before
    with Store.open(store_url) as opened:
        assert names(opened) == before
        again, found = ask_crowd(opened, "crowd again")
        assert (again.paid_calls, again.cached_calls) == (0, len(QUESTIONS))
        assert {one.question: one.verdict for one in found} == {one.question: one.verdict for one in answers}
        assert check(opened).problems == []


def test_an_answer_that_cannot_be_read_keeps_its_name_and_is_reported(store: Store, store_url: str) -> None:
    ask_crowd(store, "crowd")
    make_old(store)
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE answers SET question = '[1' WHERE id = 1"))
        connection.execute(text("UPDATE answers SET question = '{\"example\": 3}' WHERE id = 2"))
    with Store.open(store_url) as opened:
        problems = check(opened).problems
        assert any("no JSON object" in line for line in problems)
        assert any("its key is not that of its oracle and question" in line for line in problems)
        assert ask_crowd(opened, "again")[0].paid_calls == 2


def test_a_store_with_which_an_earlier_version_works_is_left_to_it(store: Store, store_url: str) -> None:
    begin(store)
    claim(store, ["a"], owner=new_owner(), lease=10**9)
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE twothirds_schema SET version = 5"))
    with pytest.raises(StoreError, match="is in use by a run of an earlier version: let it end"):
        Store.open(store_url)
    engine = connect(store_url)
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT version FROM twothirds_schema").scalar_one() == 5
    engine.dispose()
