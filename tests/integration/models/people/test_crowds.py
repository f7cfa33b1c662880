"""A model and people in one discovery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.asking import Scripted, crowd_in
from tests.support.made import texts
from tests.support.people import TruthfulPerson
from twothirds.discovery.questions import Kind
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models.crowd import Crowd, Members, Review, ReviewCounts
from twothirds.models.labelling import LabelBatch, collect_votes
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    Compare,
    Feature,
    Label,
    Meter,
    Oracle,
    Question,
    Reply,
    Request,
    Verdict,
)
from twothirds.store import Store

BEARD = Feature("beard")
EXAMPLES = texts(8)


class Said(Scripted):
    """Answers from a table of probabilities, one per example and voter."""

    def __init__(self, name: str, probabilities: Sequence[Sequence[float]]) -> None:
        super().__init__(name)
        self._table = probabilities

    def answer(self, question: Question) -> Answer:
        if not isinstance(question, Label):
            return super().answer(question)
        row = self._table[EXAMPLES.index(question.example)]
        chance = row[question.voter % len(row)]
        return Answer(question, Verdict.YES if chance > 0.5 else Verdict.NO, self.identity.model, probability=chance)


def reviewed(
    store: Store, model: Oracle, people: Oracle, review: Review, run: str = "run"
) -> tuple[Crowd, ReviewCounts]:
    crowd = crowd_in(store, Members(model, model, people, review), run)
    assert crowd.review is not None
    return crowd, crowd.review.counts


def labelled(crowd: Crowd, votes: int) -> list[int]:
    labels = collect_votes(crowd, LabelBatch(EXAMPLES, [BEARD], votes)).labels[0]
    return [int(label) for label in labels]


def test_the_identity_names_everybody_and_is_known_without_a_request() -> None:
    model, people = Said("model", []), Said("people", [])
    assert str(Members(model, model, people).identity) == "mixed:scripted:model+scripted:model+scripted:people"
    assert Members.alone(model).identity == model.identity


def test_one_elicits_and_the_other_labels(store: Store) -> None:
    model, people = Said("model", []), Said("people", [[1.0]] * 8)
    crowd = crowd_in(store, Members(model, people))
    assert labelled(crowd, 1) == [1] * 8
    list(crowd.ask([Compare(Kind.TWO_OF_THREE, EXAMPLES[:3])]))
    assert [type(question) for question in model.questions] == [Compare]
    assert all(isinstance(question, Label) for question in people.questions)


def test_people_decide_where_a_probability_is_near_one_half(store: Store) -> None:
    model = Said("model", [[0.1], [0.45], [0.55], [0.9], [0.39], [0.61], [0.0], [1.0]])
    people = Said("people", [[1.0]] * 8)
    crowd, counts = reviewed(store, model, people, Review(doubtful=0.1))
    assert labelled(crowd, 1) == [0, 1, 1, 1, 0, 1, 0, 1]
    assert {question.example for question in people.questions if isinstance(question, Label)} == set(EXAMPLES[1:3])
    assert counts.escalated == 2
    assert [crowd.is_by_people(Label(BEARD, example)) for example in EXAMPLES[:3]] == [False, True, True]


def test_people_decide_where_votes_disagree_and_break_their_own_ties(store: Store) -> None:
    model = Said("model", [[0.9, 0.1, 0.1], [0.9, 0.9, 0.9], *[[0.0, 0.0, 0.0]] * 6])
    people = Said("people", [[0.0, 1.0, 1.0]] * 8)
    crowd, _ = reviewed(store, model, people, Review(doubtful=0.0))
    assert labelled(crowd, 3) == [1, 1, 0, 0, 0, 0, 0, 0]
    asked = [question for question in people.questions if isinstance(question, Label)]
    assert {question.example for question in asked} == {EXAMPLES[0]}
    assert sorted(question.voter for question in asked) == [0, 1, 2]


def test_people_check_a_share_and_how_often_they_agree_is_counted(store: Store) -> None:
    people = Said("people", [[1.0]] * 4 + [[0.0]] * 4)
    crowd, counts = reviewed(store, Said("model", [[1.0]] * 8), people, Review(check=1.0))
    assert labelled(crowd, 1) == [1, 1, 1, 1, 0, 0, 0, 0]
    assert (counts.checked, counts.agreed) == (8, 4)
    some = Said("other people", [[1.0]] * 8)
    crowd, _ = reviewed(store, Said("model", [[1.0]] * 8), some, Review(check=0.5), "again")
    assert labelled(crowd, 1) == [1] * 8
    assert 0 < len(some.questions) < 8


def test_which_labels_people_check_is_the_same_in_a_store_and_cannot_be_known_without_it(tmp_path: Path) -> None:
    def checked(name: str, run_id: str) -> set[str]:
        many, people = texts(64), Scripted(f"people of {run_id}")
        with Store.open(f"sqlite:///{tmp_path / name}") as opened:
            crowd, _ = reviewed(opened, Scripted("model"), people, Review(check=0.5), run_id)
            list(crowd.ask(Label(BEARD, example) for example in many))
        return {question.example.id for question in people.questions if isinstance(question, Label)}

    first = checked("one.sqlite", "discovery")
    assert 12 < len(first) < 52
    assert checked("one.sqlite", "a later change") == first
    assert checked("two.sqlite", "discovery") != first


def test_who_waits_for_people_asks_them_again_about_the_same_labels(store: Store) -> None:
    class Slow(Said):
        waits = True

        def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
            pulled = list(requests)
            if self.waits:
                self.waits = False
                yield from super().send(pulled[:1], meter)
                raise AnswersPending("one waits")
            yield from super().send(pulled, meter)

    model, people = Said("model", [[0.9, 0.1]] * 8), Slow("people", [[1.0]] * 8)
    members = Members(model, model, people, Review(doubtful=0.0))
    waited = list[AnswersPending]()
    crowd = crowd_in(store, members, wait=waited.append)
    answers = list(crowd.ask([Label(BEARD, EXAMPLES[0], voter) for voter in range(2)]))
    assert [answer.by for answer in answers] == ["people", "people"]
    assert len(waited) == 1


@pytest.mark.parametrize(
    ("mix", "counts"),
    [
        ({"labeller": "human:zoo"}, {"escalated": 0, "checked": 0, "agreed": 0}),
        ({"escalate": 0.1, "people": "human:zoo", "oracle": "simulated?flip=0.2"}, None),
    ],
)
def test_a_discovery_by_a_model_and_people_is_booked_to_each(
    tmp_path: Path, mix: dict[str, str | float], counts: dict[str, int] | None
) -> None:
    settings = DiscoverSettings.model_validate(
        {
            "dataset": "datasets/zoo",
            "oracle": "simulated?price=0.001",
            "queries": 2,
            "votes": 3,
            "store": str(tmp_path / "s.sqlite"),
            "out": str(tmp_path / "run"),
            **mix,
        }
    )
    prepared = prepare(settings)
    people = [TruthfulPerson(prepared.store.queue, name, prepared.dataset) for name in ("ann", "bob", "cyd")]
    for attempt in range(12):
        try:
            outcome = run_discovery(prepare(settings), run_id=f"attempt {attempt}")
            break
        except AnswersPending:
            for person in people:
                while person.answer_page():
                    pass
    summary = outcome.summary()
    assert summary.features == 2
    assert summary.oracle.kind == "mixed"
    assert {line.oracle for line in prepared.store.costs.lines()} == {"simulated:salience", "human:zoo"}
    if counts is not None:
        assert summary.people == counts
        assert summary.truth is not None
        assert summary.truth.mean_balanced_accuracy == 1.0
    else:
        assert summary.people is not None
        assert summary.people["escalated"] > 20
        assert summary.people["labels"] >= summary.people["escalated"]
        assert any(line.startswith("people decided ") for line in summary.notices)
        labels = outcome.label_table().value
        assert not (labels == -1).any()
