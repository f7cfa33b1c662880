"""Which features are values of one attribute, and which value an example has, put to every kind of oracle."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from tests.support.asking import Scripted, ask, crowd_in, planned
from tests.support.fake_openai import Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import text_example
from tests.support.made import texts
from tests.support.review_site import Site
from tests.support.tiny_models import save_tiny_llava
from twothirds.models.cached import CachedOracle
from twothirds.models.contrastive.oracle import ContrastiveOracle
from twothirds.models.crowd import Asks, Crowd, Members
from twothirds.models.ledger import RunLedger
from twothirds.models.local.oracle import LocalVlmConfig, LocalVlmOracle
from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import OpenAIOracle
from twothirds.models.oracle import SEVERAL, Answer, Choose, Family, Feature, Oracle, Question, Verdict, examples_of
from twothirds.models.people import RecordedVotes
from twothirds.models.people.simulated import Behaviour, SimulatedOracle
from twothirds.models.prices import Price
from twothirds.sources.load import load_dataset
from twothirds.store import Store

PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
HAIR = tuple(Feature(f"{colour} hair") for colour in ("black", "brown", "red"))
COLOUR = Feature("hair colour", "The colour of the hair.")
LEVELS = {"decisions": Abilities(decisions=True), "schema": Abilities(), "text": Abilities(formats=(), chatty=True)}


def answered(oracle: Asks | Oracle, questions: list[Question]) -> list[Answer]:
    said = oracle.ask(questions) if isinstance(oracle, CachedOracle | Crowd) else ask(oracle, questions)  # type: ignore[arg-type]
    answers = {answer.question: answer for answer in said}
    return [answers[question] for question in questions]


@pytest.mark.parametrize("level", LEVELS)
def test_a_server_is_asked_once_for_the_price_that_is_booked(store: Store, level: str) -> None:
    values = (Feature("cat"), Feature("dog"))
    asked: list[Question] = [Family((*HAIR, Feature("hat")), (text_example("a cat"),))]
    asked += [
        Choose(COLOUR, values, text_example(words), voter) for words in ("a cat", "cat dog", "-") for voter in (0, 1)
    ]
    with FakeOpenAI(FakeModel(["cat", "dog"]), LEVELS[level]) as server:
        config = OpenAIConfig("gpt-4o-mini", server.base_url, SecretStr("key"), price=PRICE)
        with OpenAIOracle(config) as oracle:
            store.runs.begin("run", "scope", name="n", flow="f", dataset="d", oracle="o", settings={})
            asking = CachedOracle(oracle, RunLedger(store, "run", "scope"))
            first, again = answered(asking, asked), answered(asking, asked)
            requests = planned(oracle, asked)
        assert (first[0].verdict, first[0].shown) == (Verdict.FEATURE, (0, 1, 2))
        assert [one.shown for one in first[1:]] == [(0,), (0,), (), (), (), ()]
        assert [one.note for one in first[3:]] == [SEVERAL, SEVERAL, "", ""]
        assert all(one.cost > 0 for one in first)
        assert sum(one.cost for one in first) == server.spent_on_questions(PRICE)
        assert all(0 < request.usual < request.bound <= request.limit for request in requests)
    assert again == first
    assert all(one.cached for one in again)


def test_a_crowd_knows_the_attributes_of_its_truth() -> None:
    rng, examples = np.random.default_rng(0), texts(40)
    colours = rng.integers(4, size=40)
    truth = np.hstack([colours[:, None] == np.arange(3), rng.random((40, 2)) < 0.5]).astype(np.int8)
    names = [*(one.name for one in HAIR), "hat", "tie"]
    crowd = SimulatedOracle(examples, truth, names, behaviour=Behaviour(price=5))
    two = HAIR[:2]
    asked: list[Question] = [Family((*two, Feature("hat"))), Family((Feature("hat"), Feature("tie")))]
    asked += [Choose(COLOUR, HAIR, example) for example in examples]
    family, none, *values = answered(crowd, asked)
    assert (family.feature, family.shown) == (Feature("hair colour"), (0, 1))
    assert [one.feature for one in family.more] == [HAIR[2]]
    assert none.verdict is Verdict.NONE
    assert [one.shown for one in values] == [(c,) if c < 3 else () for c in colours.tolist()]
    assert {one.cost for one in (family, none, *values)} == {5}
    wrong = SimulatedOracle(examples, truth, names, behaviour=Behaviour(flip=0.3))
    said = answered(wrong, asked[2:])
    assert 0.5 < np.mean([one.shown == right.shown for one, right in zip(said, values, strict=True)]) < 0.9


def test_recorded_votes_choose_the_value_that_was_voted_for(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(
        "example,feature,worker,label\ne0,black hair,w,1\ne0,red hair,w,0\ne1,black hair,w,1\ne1,red hair,w,1\n"
    )
    votes, examples = RecordedVotes(path), texts(3)
    answers = answered(votes, [Family(HAIR), *(Choose(COLOUR, HAIR, example) for example in examples)])
    assert (answers[0].feature, answers[0].shown) == (Feature("hair colour"), (0, 1, 2))
    assert [one.shown for one in answers[1:]] == [(0,), (), ()]
    assert [one.note for one in answers[2:]] == [SEVERAL, "not in the table of recorded votes"]


@pytest.mark.slow
def test_the_model_that_ships_chooses_among_the_values() -> None:
    data = load_dataset("datasets/faces")
    assert data.truth is not None
    names = [f"{colour} background" for colour in ("grey", "blue", "yellow", "pink")]
    columns = [data.truth.columns.index(name) for name in names]
    values, shown = tuple(map(Feature, names)), data.examples[:24]
    family, *answers = answered(
        ContrastiveOracle(), [Family(values[:3]), *(Choose(Feature("background"), values, one) for one in shown)]
    )
    assert family.feature == Feature("background colour")
    assert [one.feature.name for one in family.more] == ["pink background"]  # of its vocabulary
    true = data.truth.matrix[:24, columns].argmax(axis=1)
    assert np.mean([one.shown == (place,) for one, place in zip(answers, true.tolist(), strict=True)]) >= 0.9


def test_a_local_model_is_asked_in_words(tmp_path: Path) -> None:
    oracle = LocalVlmOracle(
        LocalVlmConfig(model=str(save_tiny_llava(tmp_path / "model")), device="cpu", max_new_tokens=8)
    )
    questions: list[Question] = [Family(HAIR), Choose(COLOUR, HAIR, SHOWN)]
    for answer in answered(oracle, questions):
        assert answer.verdict in Verdict
        assert answer.usage.requests


SHOWN = text_example("a man with red hair")


def test_in_a_mixed_crowd_one_names_and_the_other_chooses(store: Store) -> None:
    names, labels = Scripted("names"), Scripted("labels")
    family, choice = Family(HAIR), Choose(COLOUR, HAIR, SHOWN)
    answered(crowd_in(store, Members(names, labels)), [choice, family])
    assert (names.questions, labels.questions) == ([family], [choice])
    assert examples_of(choice) == (SHOWN,)


def test_people_answer_both_on_the_page(site: Site) -> None:
    site.ask([Family(HAIR, (SHOWN,))])
    ann = site.visitor("ann")
    page = ann.get().text
    assert all(one.name in page for one in HAIR)
    assert "a man with red hair" in page
    assert "Mark at least two" in ann.answer(shown=[0], name="hair colour").text
    assert "Give it a name" in ann.answer(shown=[0, 1], name="").text
    assert ann.answer(shown=[0, 2], name="hair colour", missing="blonde hair, grey hair").status_code == 303
    [said] = [row["answer"] for row in site.store.queue.records.answers()]
    assert (said["name"], said["shown"]) == ("hair colour", [0, 2])
    assert said["more"] == [["blonde hair", "", [2]], ["grey hair", "", [3]]]
    site.ask([Choose(COLOUR, HAIR, SHOWN)])
    page = ann.get().text
    assert page.count('type="radio"') == len(HAIR)
    assert "Choose one" in ann.answer(choosing="1").text
    assert ann.answer(several="1").status_code == 303
    site.ask([Choose(COLOUR, HAIR, SHOWN, voter=1)])
    ben = site.visitor("ben")
    ben.get()
    assert ben.answer(shown=[2]).status_code == 303
    answers = [row["answer"] for row in site.store.queue.records.answers()][1:]
    assert answers[0] == {"verdict": "none", "note": SEVERAL}
    assert (answers[1]["name"], answers[1]["shown"]) == ("red hair", [2])
