"""Questions wait for people: leases, votes, and what can be taken back."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import select

from tests.integration.conftest import Clock
from tests.support.store_steps import SCOPE, begin, pay
from twothirds.store import Store, StoreError, text_key
from twothirds.store.review import Queue
from twothirds.store.review.leases import LeasedQuestion, LeaseTerms
from twothirds.store.review.questions import ReviewQuestion, items

YES, NO = {"verdict": "yes"}, {"verdict": "no"}
SMALL = LeaseTerms(page_size=3, lease_seconds=60)


def label(number: int, feature: str = "beard", **terms: Any) -> ReviewQuestion:
    question = {"kind": "label", "feature": [feature, ""], "example": f"d{number}"}
    shown = {f"d{number}": {"id": f"e{number}", "text": f"text {number}"}}
    return ReviewQuestion(f"{feature} {number}", "main", "label", question, shown, page=feature, **terms)


def person(queue: Queue, name: str) -> int:
    return queue.people.add(name).id


def give_all(queue: Queue, who: int, shown: list[LeasedQuestion], answer: dict[str, str] = YES) -> None:
    queue.votes.give(who, {one.id: answer for one in shown})


def votes_of(queue: Queue, ask: ReviewQuestion) -> list[str]:
    return [vote.by for _, vote in sorted(queue.questions.standing([ask.digest])[ask.digest].given.items())]


def test_a_page_holds_questions_about_one_feature_in_order_of_priority(store: Store) -> None:
    queue = store.queue
    queue.questions.enqueue([label(1), label(2, "hat", priority=1), label(3, "hat", priority=1), label(4)])
    page = queue.leases.next_page(person(queue, "ann"), SMALL)
    assert {tuple(one.question["feature"]) for one in page} == {("hat", "")}
    assert {one.question["example"] for one in page} == {"d2", "d3"}


def test_looking_twice_shows_the_same_page_and_two_people_share_no_place(store: Store) -> None:
    queue = store.queue
    queue.questions.enqueue([label(number) for number in range(5)])
    ann, bob = person(queue, "ann"), person(queue, "bob")
    first = queue.leases.next_page(ann, SMALL)
    assert queue.leases.next_page(ann, SMALL) == first
    second = queue.leases.next_page(bob, SMALL)
    assert len(first) == 3
    assert len(second) == 2
    assert not {one.item for one in first} & {one.item for one in second}
    assert queue.leases.next_page(person(queue, "cyd"), SMALL) == []


def test_a_question_gets_its_number_of_votes_from_different_people(store: Store) -> None:
    queue, ask = store.queue, label(1, votes=2)
    queue.questions.enqueue([ask])
    for name in ("ann", "ann", "bob", "cyd"):
        who = person(queue, name)
        give_all(queue, who, queue.leases.next_page(who, SMALL))
    assert votes_of(queue, ask) == ["ann", "bob"]
    assert queue.records.waiting() == []
    queue.questions.enqueue([label(1, votes=3)])
    cyd = person(queue, "cyd")
    give_all(queue, cyd, queue.leases.next_page(cyd, SMALL))
    assert votes_of(queue, ask) == ["ann", "bob", "cyd"]


def test_answers_sent_twice_count_once_and_the_first_stays(store: Store) -> None:
    queue, ask = store.queue, label(1, votes=2)
    queue.questions.enqueue([ask])
    ann = person(queue, "ann")
    (shown,) = queue.leases.next_page(ann, SMALL)
    assert queue.votes.give(ann, {shown.id: YES}).given == 1
    assert queue.votes.give(ann, {shown.id: NO}).again == 1
    (vote,) = queue.questions.standing([ask.digest])[ask.digest].given.values()
    assert vote.answer == YES


def test_nobody_answers_under_the_lease_of_another(store: Store) -> None:
    queue, ask = store.queue, label(1)
    queue.questions.enqueue([ask])
    (shown,) = queue.leases.next_page(person(queue, "ann"), SMALL)
    assert queue.votes.give(person(queue, "bob"), {shown.id: YES}).given == 0
    assert votes_of(queue, ask) == []


def test_an_expired_lease_goes_to_another_and_a_late_answer_is_kept_but_not_counted(store: Store, clock: Clock) -> None:
    queue, ask = store.queue, label(1)
    queue.questions.enqueue([ask])
    ann, bob = person(queue, "ann"), person(queue, "bob")
    late = queue.leases.next_page(ann, SMALL)
    clock.now += 61
    give_all(queue, bob, queue.leases.next_page(bob, SMALL), NO)
    assert queue.votes.give(ann, {late[0].id: YES}).late == 1
    assert votes_of(queue, ask) == ["bob"]
    assert [(row["by"], row["state"]) for row in queue.records.answers()] == [("ann", "late"), ("bob", "given")]


def test_an_answer_after_the_lease_counts_while_its_place_is_free(store: Store, clock: Clock) -> None:
    queue, ask = store.queue, label(1)
    queue.questions.enqueue([ask])
    ann = person(queue, "ann")
    shown = queue.leases.next_page(ann, SMALL)
    clock.now += 61
    queue.leases.next_page(person(queue, "bob"), LeaseTerms(queue="another"))  # expires the lease
    give_all(queue, ann, shown)
    assert votes_of(queue, ask) == ["ann"]


def test_undo_lays_the_last_answers_back_until_a_run_has_taken_them(store: Store, clock: Clock) -> None:
    queue, asks = store.queue, [label(number) for number in range(4)]
    queue.questions.enqueue(asks)
    ann = person(queue, "ann")
    assert queue.votes.undo(ann, SMALL) == "nothing"
    first = queue.leases.next_page(ann, SMALL)
    give_all(queue, ann, first, NO)
    clock.now += 1
    assert len(queue.leases.next_page(ann, SMALL)) == 1  # the page after it
    assert queue.votes.undo(ann, SMALL) == ""
    again = queue.leases.next_page(ann, SMALL)
    assert [one.id for one in again] == [one.id for one in first]
    assert all(one.answer == NO for one in again)
    give_all(queue, ann, again, YES)
    standing = queue.questions.standing([ask.digest for ask in asks])
    given = [vote for one in standing.values() for vote in one.given.values()]
    queue.questions.note_used({f"key {place}": vote for place, vote in enumerate(given)})
    assert queue.votes.undo(ann, SMALL) == "used"


def test_a_skipped_question_goes_to_others_and_is_given_up_when_too_many_skip_it(store: Store) -> None:
    queue, ask = store.queue, label(1, patience=2)
    queue.questions.enqueue([ask])
    for name, abandoned in (("ann", False), ("bob", True)):
        who = person(queue, name)
        (shown,) = queue.leases.next_page(who, SMALL)
        assert queue.votes.skip(who, [shown.id], "cannot tell") == 1
        assert queue.leases.next_page(who, SMALL) == []
        assert queue.questions.standing([ask.digest])[ask.digest].abandoned is abandoned
    assert queue.votes.undo(person(queue, "bob"), SMALL) == ""
    assert not queue.questions.standing([ask.digest])[ask.digest].abandoned


def test_after_its_deadline_nobody_is_asked(store: Store, clock: Clock) -> None:
    queue, ask = store.queue, label(1, deadline=clock.now + 10)
    queue.questions.enqueue([ask])
    clock.now += 11
    assert queue.leases.next_page(person(queue, "ann"), SMALL) == []
    assert queue.questions.standing([ask.digest])[ask.digest].abandoned


def test_withdrawn_votes_are_kept_and_their_questions_asked_again(store: Store) -> None:
    begin(store)
    pay(store, [["key of the vote"]])
    queue, ask = store.queue, label(1)
    queue.questions.enqueue([ask])
    ann, bob = person(queue, "ann"), person(queue, "bob")
    give_all(queue, ann, queue.leases.next_page(ann, SMALL))
    (vote,) = queue.questions.standing([ask.digest])[ask.digest].given.values()
    queue.questions.note_used({text_key("key of the vote"): vote})
    spent = store.runs.spent(SCOPE)
    assert list(store.requests.answers([text_key("key of the vote")])) == [text_key("key of the vote")]
    assert queue.votes.withdraw(ann).answers == 1
    assert store.requests.answers([text_key("key of the vote")]) == {}
    assert store.runs.spent(SCOPE) == spent
    assert store.check.problems() == []
    assert queue.leases.next_page(ann, SMALL) == []
    give_all(queue, bob, queue.leases.next_page(bob, SMALL))
    assert votes_of(queue, ask) == ["bob"]
    assert [(row["by"], row["state"]) for row in queue.records.answers()] == [("ann", "withdrawn"), ("bob", "given")]


def test_what_an_answer_costs_is_a_price_or_the_time_it_took(store: Store, clock: Clock) -> None:
    queue = store.queue
    queue.questions.enqueue([label(1, price=50_000), label(2, "hat", hourly=36_000_000)])
    ann = person(queue, "ann")
    for _ in range(2):
        shown = queue.leases.next_page(ann, SMALL)
        clock.now += 20
        give_all(queue, ann, shown)
    rows = list(queue.records.answers())
    assert [row["cost"] for row in rows] == [50_000, 200_000]
    assert [row["seconds"] for row in rows] == [20, 20]


def test_checks_and_repetitions_are_mixed_in_and_never_counted_as_votes(store: Store) -> None:
    queue = store.queue
    known = label(99, expected="yes")
    queue.questions.enqueue([*(label(number) for number in range(6)), known])
    terms = LeaseTerms(page_size=3, lease_seconds=60, checks=1 / 3, repeats=1 / 3)
    ann = person(queue, "ann")
    first = queue.leases.next_page(ann, terms)
    assert sorted(one.purpose for one in first) == ["check", "vote", "vote", "vote"]
    give_all(queue, ann, first)
    second = queue.leases.next_page(ann, terms)
    assert sorted(one.purpose for one in second) == ["repeat", "vote", "vote", "vote"]
    give_all(queue, ann, second)
    assert sum(state.given for state in queue.records.states() if state.state == "done") == 6


def test_people_who_ask_at_once_never_get_the_same_place(store: Store) -> None:
    queue, asks = store.queue, [label(number, votes=2) for number in range(30)]
    queue.questions.enqueue(asks)

    def work(name: str) -> None:
        who = person(queue, name)
        while shown := queue.leases.next_page(who, SMALL):
            give_all(queue, who, shown)

    threads = [threading.Thread(target=work, args=(f"person {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ask in asks:
        by = votes_of(queue, ask)
        assert len(by) == len(set(by)) == 2


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)  # SQLite locks no single question
def test_a_question_that_another_person_is_just_given_is_waited_for(store: Store) -> None:
    queue, shown = store.queue, list[LeasedQuestion]()
    queue.questions.enqueue([label(1, votes=2)])
    who = person(queue, "ann")
    asking = threading.Thread(target=lambda: shown.extend(queue.leases.next_page(who, SMALL)))
    with store.engine.begin() as other:
        other.execute(select(items).with_for_update())
        asking.start()
        asking.join(0.3)
        assert asking.is_alive()
    asking.join()
    assert [one.question["example"] for one in shown] == ["d1"]


def test_a_suspended_run_is_ready_once_all_its_questions_are_answered(store: Store) -> None:
    queue, asks = store.queue, [label(1), label(2)]
    queue.questions.enqueue(asks)
    queue.waits.begin(
        "run", [one.item for one in queue.questions.standing([a.digest for a in asks]).values()], suspended=True
    )
    ann = person(queue, "ann")
    for ready in ([], ["run"]):
        give_all(queue, ann, queue.leases.next_page(ann, LeaseTerms(page_size=1)))
        assert queue.waits.ready_runs() == ready
    queue.waits.end("run")
    assert queue.waits.ready_runs() == []


def ended(queue: Queue, number: int) -> str:
    invitation = queue.people.invitation(number)
    assert invitation is not None
    return invitation.ended


def test_invitations_expire_and_are_revoked(store: Store, clock: Clock) -> None:
    queue = store.queue
    first, second = queue.people.invite("ann", "reviewer", 60), queue.people.invite("ann", "reviewer", 600)
    assert queue.people.invitation(first.id) == first
    clock.now += 61
    assert ended(queue, first.id) == "expired"
    assert ended(queue, second.id) == ""
    assert queue.people.revoke("ann") == 2
    assert ended(queue, second.id) == "revoked"
    assert queue.people.invitation(77) is None
    assert queue.people.revoke("nobody") == 0


def role(queue: Queue, number: int) -> str:
    invitation = queue.people.invitation(number)
    assert invitation is not None
    return invitation.role


def test_the_role_belongs_to_the_invitation_and_not_to_the_person(store: Store) -> None:
    people = store.queue.people
    old, new = people.invite("ann", "reviewer", 60), people.invite("ann", "editor", 60)
    assert [role(store.queue, old.id), role(store.queue, new.id)] == ["reviewer", "editor"], "no old link is raised"
    own = people.invite("ann", "admin", 60)
    assert people.revoke("ann", keep=["admin"]) == 2
    assert [ended(store.queue, one.id) for one in (old, new, own)] == ["revoked", "revoked", ""]
    assert role(store.queue, people.invite("ann", "reviewer", 60).id) == "reviewer", "not an editor as before"
    assert people.invite("ann", "reviewer", 60).person == old.person, "whose votes are known again"


def test_the_name_of_a_worker_is_nobody_elses(store: Store) -> None:
    store.queue.people.add("A2X", is_worker=True)
    with pytest.raises(StoreError, match="'A2X' is the name of a worker of Mechanical Turk already"):
        store.queue.people.invite("A2X", "reviewer", 60)
    store.queue.people.invite("ann", "reviewer", 60)
    with pytest.raises(StoreError, match="'ann' is the name of somebody who was invited already"):
        store.queue.people.add("ann", is_worker=True)


def test_the_signing_secret_stays_the_same(store: Store, store_url: str) -> None:
    secret = store.queue.people.secret("links")
    with Store.open(store_url) as again:
        assert again.queue.people.secret("links") == secret
    assert len(secret) == 64
