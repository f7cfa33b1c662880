"""Whoever holds the link of a published task can make up workers; they keep no real one from answering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import ask
from tests.support.made import texts
from tests.support.review_site import Site, Visitor, running_site
from twothirds.models.oracle import AnswersPending, Feature, Label
from twothirds.models.people.human import HumanOracle
from twothirds.store import Store
from twothirds.store.review.leases import LeaseTerms
from twothirds.store.review.mturk import Hit
from twothirds.studio.review.access import SECRET, TASK, Signer

MARKET = "https://workersandbox.mturk.com"
QUESTIONS, VOTES = 6, 2


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Store.open(str(tmp_path / "store.sqlite")) as store, running_site(store) as running:
        yield running


@pytest.fixture
def task(site: Site) -> str:
    return published(site, "round", "token")


def published(site: Site, feature: str, token: str) -> str:
    """The address of a task of six labels for two people."""
    wanted = [Label(Feature(feature), example, voter) for example in texts(QUESTIONS) for voter in range(VOTES)]
    with pytest.raises(AnswersPending) as pending:
        list(ask(HumanOracle(site.store.queue), wanted))
    terms = {"people": VOTES, "market": "sandbox", "bound": 0}
    site.store.queue.mturk.plan([Hit(token, "", pending.value.items, terms, "run")])
    return f"{site.address}/task/{Signer(site.store.queue.people.secret(SECRET)).sign(token, TASK)}"


def come(site: Site, task: str, worker: str, assignment: str) -> tuple[Visitor, dict[str, Any]]:
    visitor = site.stranger()
    reply = visitor.get(f"{task}?assignmentId={assignment}&workerId={worker}&turkSubmitTo={MARKET}")
    assert reply.status_code == 200, reply.text
    fields: dict[str, Any] = {name: visitor.hidden(name)[0] for name in ("assignment", "worker", "submit_to", "stamp")}
    return visitor, fields | {"lease": visitor.hidden("lease")}


def standing(site: Site) -> list[tuple[int, int, int]]:
    """Of each open question how many slots are taken, and how many votes are given and skipped."""
    states = Counter((row["item"], row["state"]) for row in site.store.queue.records.answers())
    return [
        (item["votes"] - item["missing"], states[item["id"], "given"], states[item["id"], "skipped"])
        for item in site.store.queue.records.waiting()
    ]


@pytest.mark.parametrize("deed", ["look", "answer", "skip"])
def test_made_up_workers_take_no_place_from_real_ones(site: Site, task: str, deed: str) -> None:
    for number in range(5):
        visitor, fields = come(site, task, f"MADEUP{number}", f"NONE{number}")
        if deed != "look":
            unsure = {"unsure": fields["lease"]} if deed == "skip" else {}
            assert "Submit" in visitor.post(task, fields | unsure).text
    assert standing(site) == [(0, 0, 0)] * QUESTIONS
    for worker in ("A1", "A2"):
        visitor, fields = come(site, task, worker, f"AS{worker}")
        assert len(fields["lease"]) == QUESTIONS
        visitor.post(task, fields | {"has": fields["lease"]})
    queue = site.store.queue
    assert [queue.mturk.confirm("token", f"AS{worker}", f"mturk {worker}") for worker in ("A1", "A2")] == [
        QUESTIONS,
        QUESTIONS,
    ]
    assert queue.records.waiting() == []
    queue.mturk.set_state("token", "collected")
    assert {row["by"] for row in queue.records.answers() if row["state"] == "given"} == {"mturk A1", "mturk A2"}
    assert {row["state"] for row in queue.records.answers() if row["by"].startswith("mturk MADEUP")} <= {"withdrawn"}
    assert site.store.check.problems() == []


def test_one_assignment_is_the_work_of_one_worker(site: Site, task: str) -> None:
    for worker in ("A1", "A2", "A3"):
        visitor, fields = come(site, task, worker, "AS1")
        visitor.post(task, fields)
    assert site.store.queue.mturk.confirm("token", "AS1", "mturk A2") == QUESTIONS
    assert standing(site) == [(1, 1, 0)] * QUESTIONS
    states = {row["by"]: row["state"] for row in site.store.queue.records.answers()}
    assert states == {"mturk A1 AS1": "withdrawn", "mturk A2": "given", "mturk A3 AS1": "withdrawn"}


def test_what_a_worker_cannot_tell_is_left_to_others_once_the_assignment_is_confirmed(site: Site, task: str) -> None:
    visitor, fields = come(site, task, "A1", "AS1")
    visitor.post(task, fields | {"unsure": fields["lease"][:2]})
    assert site.store.queue.mturk.confirm("token", "AS1", "mturk A1", 40) == QUESTIONS - 2
    assert sorted(standing(site)) == [(0, 0, 1)] * 2 + [(1, 1, 0)] * (QUESTIONS - 2)
    assert sorted(row["cost"] for row in site.store.queue.records.answers()) == [0, 0, 10, 10, 10, 10]


def test_a_task_that_was_collected_is_closed_and_its_questions_are_asked_on_the_page(site: Site, task: str) -> None:
    visitor, fields = come(site, task, "A1", "AS1")
    visitor.post(task, fields)
    early, early_fields = come(site, task, "A2", "AS2")
    site.store.queue.mturk.set_state("token", "collected")
    reply = early.post(task, early_fields)
    assert (reply.status_code, "This task is over" in reply.text) == (409, True)
    assert site.stranger().get(f"{task}?assignmentId=AS3&workerId=A3&turkSubmitTo={MARKET}").status_code == 409
    ann = site.store.queue.people.add("ann").id
    assert len(site.store.queue.leases.next_page(ann, LeaseTerms())) == QUESTIONS
    assert {row["state"] for row in site.store.queue.records.answers()} == {"withdrawn"}


def test_a_worker_finds_the_same_questions_again_and_answers_once(site: Site, task: str) -> None:
    first, fields = come(site, task, "A1", "AS1")
    _, again = come(site, task, "A1", "AS1")
    assert again["lease"] == fields["lease"]
    first.post(task, fields | {"has": fields["lease"]})
    first.post(task, fields)
    assert site.store.queue.mturk.submitted("token", "AS1", "mturk A1") == {"held": QUESTIONS}
    assert {row["answer"]["verdict"] for row in site.store.queue.records.answers()} == {"yes"}


def test_an_assignment_counts_in_the_task_in_which_it_was_made_and_nowhere_else(site: Site, task: str) -> None:
    other = published(site, "flat", "another")
    for link in (task, other):
        visitor, fields = come(site, link, "A1", "AS1")
        visitor.post(link, fields | {"has": fields["lease"]})
    mturk = site.store.queue.mturk
    assert mturk.confirm("token", "AS1", "mturk A1", 60) == QUESTIONS
    assert sorted(standing(site)) == [(0, 0, 0)] * QUESTIONS + [(1, 1, 0)] * QUESTIONS
    given = [row for row in site.store.queue.records.answers() if row["state"] == "given"]
    assert [row["cost"] for row in given] == [10] * QUESTIONS
    assert mturk.submitted("another", "AS1", "mturk A1") == {"held": QUESTIONS}
    visitor, fields = come(site, other, "A1", "AS2")  # the worker's own assignment in the other task
    assert len(fields["lease"]) == QUESTIONS
    visitor.post(other, fields)
    assert mturk.confirm("another", "AS2", "mturk A1") == QUESTIONS
    mturk.set_state("another", "collected")
    assert standing(site) == [(1, 1, 0)] * 2 * QUESTIONS
    assert site.store.check.problems() == []


@pytest.mark.usefixtures("task")
def test_an_assignment_without_answers_in_its_own_task_is_not_approved_for_those_in_another(site: Site) -> None:
    other = published(site, "flat", "another")
    visitor, fields = come(site, other, "A1", "AS1")
    visitor.post(other, fields)
    mturk = site.store.queue.mturk
    assert mturk.submitted("token", "AS1", "mturk A1") == {}
    assert mturk.confirm("token", "AS1", "mturk A1") == 0
    assert mturk.refuse("token", "AS1") == 0
    assert mturk.submitted("another", "AS1", "mturk A1") == {"held": QUESTIONS}


@pytest.mark.parametrize("deed", ["look", "answer", "skip"])
def test_whoever_uses_the_id_of_a_worker_first_locks_nobody_out(site: Site, task: str, deed: str) -> None:
    stranger, fields = come(site, task, "A1", "GUESSED")
    if deed != "look":
        stranger.post(task, fields | ({"unsure": fields["lease"]} if deed == "skip" else {}))
    worker, fields = come(site, task, "A1", "AS1")
    assert len(fields["lease"]) == QUESTIONS
    worker.post(task, fields | {"has": fields["lease"]})
    mturk = site.store.queue.mturk
    assert mturk.submitted("token", "AS1", "mturk A1") == {"held": QUESTIONS}
    assert mturk.confirm("token", "AS1", "mturk A1") == QUESTIONS
    assert standing(site) == [(1, 1, 0)] * QUESTIONS
    given = [row for row in site.store.queue.records.answers() if row["state"] == "given"]
    assert {(row["by"], row["answer"]["verdict"]) for row in given} == {("mturk A1", "yes")}
    if deed == "answer":
        assert mturk.confirm("token", "GUESSED", "mturk A1") == 0, "one worker, one vote"
        assert standing(site) == [(1, 1, 0)] * QUESTIONS
    mturk.set_state("token", "collected")
    assert site.store.check.problems() == []


def test_a_confirmed_worker_is_not_asked_again_what_was_answered(site: Site, task: str) -> None:
    visitor, fields = come(site, task, "A1", "AS1")
    visitor.post(task, fields)
    assert site.store.queue.mturk.confirm("token", "AS1", "mturk A1") == QUESTIONS
    reply = site.stranger().get(f"{task}?assignmentId=AS2&workerId=A1&turkSubmitTo={MARKET}")
    assert (reply.status_code, "All questions of this task are answered" in reply.text) == (409, True)
