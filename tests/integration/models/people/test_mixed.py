"""A model and people in one discovery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.made import texts
from tests.support.people import TruthfulPerson
from twothirds.discovery.questions import Kind
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models.labelling import LabelBatch, collect_votes
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import (
    Answer,
    AnswersPending,
    Compare,
    Feature,
    Label,
    Money,
    OracleIdentity,
    Question,
    Verdict,
    connect,
)
from twothirds.models.people.human import WaitingOracle
from twothirds.models.people.mixed import MixedCrowd, Mixture, RecordedCrowd
from twothirds.store import Store

BEARD = Feature("beard")
EXAMPLES = texts(8)


class Said:
    """Answers from a table of probabilities, one per example and voter; remembers what it was asked."""

    width = 100

    def __init__(self, name: str, probabilities: Sequence[Sequence[float]], price: Money = 0) -> None:
        self.identity = OracleIdentity("said", name)
        self._table = probabilities
        self._price = price
        self.questions: list[Question] = []

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        return [self._price] * len(questions)

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        for question in questions:
            self.questions.append(question)
            if not isinstance(question, Label):
                yield Answer(question, Verdict.NONE, self.identity.model)
            else:
                row = self._table[EXAMPLES.index(question.example)]
                chance = row[question.voter % len(row)]
                verdict = Verdict.YES if chance > 0.5 else Verdict.NO
                yield Answer(question, verdict, self.identity.model, probability=chance, cost=self._price)


def labelled(crowd: MixedCrowd, votes: int) -> list[int]:
    labels = collect_votes(crowd, LabelBatch(EXAMPLES, [BEARD], votes)).labels[0]
    return [int(label) for label in labels]


def test_a_crowd_connects_each_member_before_its_identity_is_known() -> None:
    class Remote(Said):
        connected = 0

        def connect(self) -> None:
            self.connected += 1

    model, people = Remote("model", []), Said("people", [])
    crowd = MixedCrowd(model, model, people, Mixture(escalate=0.1))
    assert model.connected == 0
    connect(crowd)
    assert model.connected == 2  # as elicitor and as labeller: connecting is idempotent
    assert str(crowd.identity) == "mixed:said:model+said:model+said:people"


def test_one_elicits_and_the_other_labels() -> None:
    model, people = Said("model", []), Said("people", [[1.0]] * 8)
    crowd = MixedCrowd(model, people, None, Mixture())
    assert labelled(crowd, 1) == [1] * 8
    list(crowd.ask([Compare(Kind.TWO_OF_THREE, EXAMPLES[:3])]))
    assert [type(question) for question in model.questions] == [Compare]
    assert all(isinstance(question, Label) for question in people.questions)


def test_people_decide_where_a_probability_is_near_one_half() -> None:
    model = Said("model", [[0.1], [0.45], [0.55], [0.9], [0.39], [0.61], [0.0], [1.0]])
    people = Said("people", [[1.0]] * 8)
    crowd = MixedCrowd(model, model, people, Mixture(escalate=0.1))
    assert labelled(crowd, 1) == [0, 1, 1, 1, 0, 1, 0, 1]
    assert {question.example for question in people.questions if isinstance(question, Label)} == set(EXAMPLES[1:3])
    assert crowd.asked.escalated == 2


def test_people_decide_where_votes_disagree_and_break_their_own_ties() -> None:
    model = Said("model", [[0.9, 0.1, 0.1], [0.9, 0.9, 0.9], *[[0.0, 0.0, 0.0]] * 6])
    people = Said("people", [[0.0, 1.0, 1.0]] * 8)
    crowd = MixedCrowd(model, model, people, Mixture(escalate=0.0))
    assert labelled(crowd, 3) == [1, 1, 0, 0, 0, 0, 0, 0]
    asked = [question for question in people.questions if isinstance(question, Label)]
    assert {question.example for question in asked} == {EXAMPLES[0]}
    assert sorted(question.voter for question in asked) == [0, 1, 2]


def test_people_check_a_share_and_how_often_they_agree_is_counted() -> None:
    model = Said("model", [[1.0]] * 8)
    people = Said("people", [[1.0]] * 4 + [[0.0]] * 4)
    crowd = MixedCrowd(model, model, people, Mixture(spot_check=1.0))
    assert labelled(crowd, 1) == [1, 1, 1, 1, 0, 0, 0, 0]
    assert (crowd.asked.checked, crowd.asked.agreed) == (8, 4)
    some = Said("people", [[1.0]] * 8)
    assert labelled(MixedCrowd(model, model, some, Mixture(spot_check=0.5)), 1) == [1] * 8
    assert 0 < len(some.questions) < 8


def test_which_labels_people_check_is_the_same_in_a_store_and_cannot_be_known_without_it(tmp_path: Path) -> None:
    def checked(name: str, run_id: str) -> list[bool]:
        with Store.open(f"sqlite:///{tmp_path / name}") as store:
            store.runs.begin(run_id, run_id, name="n", flow="f", dataset="d", oracle="o", settings={})
            crowd = MixedCrowd(Said("model", []), Said("model", []), Said("people", []), Mixture(spot_check=0.5))
            recorded = RecordedCrowd(crowd, RunLedger(store, run_id, run_id))
            return [recorded._is_checked((f"feature {number}", "", "digest")) for number in range(64)]

    first = checked("one.sqlite", "discovery")
    assert 12 < sum(first) < 52
    assert checked("one.sqlite", "a later change") == first
    assert checked("two.sqlite", "discovery") != first


def test_an_estimate_counts_everybody_who_may_be_asked() -> None:
    model, people = Said("model", [], price=3), Said("people", [], price=50)
    crowd = MixedCrowd(model, model, people, Mixture(escalate=0.1))
    assert crowd.estimate([Label(BEARD, EXAMPLES[0]), Compare(Kind.TAG, EXAMPLES[:1]), Label(BEARD, EXAMPLES[1])]) == [
        53,
        3,
        53,
    ]


def test_who_waits_for_people_asks_them_again_about_the_same_labels() -> None:
    class Slow(Said):
        def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
            listed = list(questions)
            seen = len(self.questions)
            yield from super().ask(listed[:1])
            if seen == 0:
                raise AnswersPending("one waits")
            yield from super().ask(listed[1:])

    model, people = Said("model", [[0.9, 0.1]] * 8), Slow("people", [[1.0]] * 8)
    crowd = MixedCrowd(model, model, people, Mixture(escalate=0.0))
    asked = [Label(BEARD, EXAMPLES[0], voter) for voter in range(2)]
    answers = list(WaitingOracle(crowd, lambda _: None).ask(asked))
    assert [answer.by for answer in answers] == ["people", "people"]


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
