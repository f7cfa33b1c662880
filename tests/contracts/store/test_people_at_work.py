"""How far people are, what lies ahead, disputes and training: on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from tests.integration.conftest import Clock
from twothirds.store import Store
from twothirds.store.review import Queue
from twothirds.store.review.leases import LeaseTerms
from twothirds.store.review.questions import ReviewQuestion

YES, NO = {"verdict": "yes"}, {"verdict": "no"}
NAMED = {"verdict": "feature", "name": "odd", "definition": "", "shown": [0, 1]}


def label(number: int, votes: int = 2, feature: str = "beard") -> ReviewQuestion:
    question = {"kind": "label", "feature": [feature, ""], "example": f"d{number}", "dataset": "toy"}
    shown = {f"d{number}": {"id": f"e{number}", "text": f"text {number}"}}
    return ReviewQuestion(f"{feature} {number}", "main", "label", question, shown, page=feature, votes=votes)


def triple(number: int) -> ReviewQuestion:
    question = {"kind": "two-of-three", "examples": ["d1", "d2", "d3"], "known": [], "dataset": "toy"}
    return ReviewQuestion(f"triple {number}", "main", "two-of-three", question, {}, priority=1)


def answer(queue: Queue, name: str, said: dict[str, Any], terms: LeaseTerms | None = None) -> int:
    person = queue.people.add(name).id
    shown = queue.leases.next_page(person, terms or LeaseTerms())
    queue.votes.give(person, {one.id: said for one in shown})
    return person


def test_progress_is_counted_by_kind_and_names_by_data_set(store: Store, clock: Clock) -> None:
    queue = store.queue
    queue.questions.enqueue([triple(1), *(label(number, 1) for number in range(4))])
    person = queue.people.add("ann").id
    assert (queue.records.progress(person).comparisons, queue.records.progress(person).labels) == (1, 4)
    shown = queue.leases.next_page(person, LeaseTerms())
    (held,) = queue.leases.held()
    assert (held.person, held.kind, held.questions) == ("ann", "two-of-three", 1)
    clock.now += 30
    queue.votes.give(person, {one.id: NAMED for one in shown})
    progress = queue.records.progress(person, "main")
    assert (progress.given, progress.comparisons, progress.labels, progress.seconds) == (1, 0, 4, (30.0, None))
    assert queue.records.names_used("main", "toy") == ["odd", "beard"]
    assert queue.records.names_used("main", "another") == queue.records.names_used("elsewhere", "toy") == []


def test_the_outlook_follows_the_run(store: Store, clock: Clock) -> None:
    queue = store.queue
    assert queue.records.outlook().state == "unasked"
    settings = {"oracle": "human:main", "queries": 3, "votes": 1}
    store.runs.begin("r", "s", name="n", flow="discover", dataset="toy", oracle="human", settings=settings)
    queue.questions.enqueue([triple(1), *(label(number, 1) for number in range(4))])
    clock.now += 60
    outlook = queue.records.outlook("main")
    assert (outlook.state, outlook.comparisons, outlook.labels) == ("others", 2.0, 8.0)
    answer(queue, "ann", NAMED)
    answer(queue, "ann", YES)
    states = []
    for status in ("running", "waiting", "done"):
        store.runs.end("r", status, {})
        states.append(queue.records.outlook(fresh=True).state)
    assert states == ["working", "paused", "finished"]
    assert [(one.name, one.share) for one in queue.records.found("main")] == [("beard", 1.0)]


def test_disputes_are_ruled_and_agreement_trains(store: Store) -> None:
    queue = store.queue
    queue.questions.enqueue([label(number) for number in range(4)])
    answer(queue, "ann", YES)
    person = queue.people.add("bob").id
    shown = queue.leases.next_page(person, LeaseTerms())
    queue.votes.give(person, {one.id: YES if place else NO for place, one in enumerate(shown)})
    assert queue.quality.disputes("main") == 1
    (disputed,) = queue.quality.disputed()
    assert (disputed.yes, disputed.no) == (["ann"], ["bob"])
    terms = LeaseTerms(training=10)
    cyd = queue.people.add("cyd").id
    trained = queue.quality.training_page(cyd, terms)
    assert len(trained) == 3, "what is disputed trains nobody"
    assert queue.quality.training_page(cyd, terms) == trained
    queue.votes.give_labels(cyd, {one.id: True for one in trained}, submission="s")
    assert [(one.said, one.right) for one in queue.quality.training_results(cyd)] == [("yes", "yes")] * 3
    boss = queue.people.add("boss").id
    assert queue.quality.rule(boss, {disputed.item: False}) == 1
    assert queue.quality.disputes() == 0
    (standing,) = queue.questions.standing([label(int(disputed.question["example"][1:])).digest]).values()
    assert standing.ruling is not None
    assert standing.ruling.answer == NO
    effect = queue.votes.preview_withdrawal(person)
    assert (effect.answers, effect.reopened, effect.features) == (4, 4, [])
