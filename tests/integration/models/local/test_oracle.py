"""The oracle on tiny models that are loaded, tokenised, batched and run as large ones are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.asking import CheckedMeter, ask, bounds, replies
from tests.support.tiny_models import quiet_transformers, save_tiny_instruct, save_tiny_llava, save_tiny_mamba
from twothirds.discovery.questions import Kind
from twothirds.models.local.oracle import LocalVlmConfig, LocalVlmOracle
from twothirds.models.oracle import Answer, Compare, Feature, Label, Question, Request, Verdict
from twothirds.models.prompting.labels import label_form
from twothirds.sources.dataset import Example, picture_at

RED_HAT = '{"name": "red hat", "definition": "A hat that is red.", "have": "A and B"}'
FEATURES = (
    Feature("red hat", "There is a hat and it is red."),
    Feature("smile", "The mouth is curved upwards, whether it is open or closed, and both of its corners can be seen."),
    Feature("glasses"),
)


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llava(tmp_path_factory.mktemp("llava"))


@pytest.fixture(scope="module")
def instruct(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_instruct(tmp_path_factory.mktemp("instruct"))


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LLaVA that names a red hat, whatever it is shown."""
    return save_tiny_llava(tmp_path_factory.mktemp("speaker"), says=RED_HAT)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    """Of two shapes, because pictures of different sizes must not disturb each other in a batch."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    examples = []
    for number in range(6):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 256, (40, 40 + 20 * (number % 2), 3), dtype=np.uint8)).save(path)
        examples.append(picture_at(path, str(number)))
    return examples


@pytest.fixture(scope="module")
def texts() -> list[Example]:
    said = [
        "A hat.",
        "The hat is red and round, and it was not cheap.",
        "Yes.",
        "No hat at all, but " + "very " * 30 + "red.",
    ]
    return [
        Example(str(place), hashlib.sha256(text.encode()).hexdigest(), text=text) for place, text in enumerate(said)
    ]


def oracle_of(folder: Path, **options: object) -> LocalVlmOracle:
    return LocalVlmOracle(LocalVlmConfig(model=str(folder), **{"max_new_tokens": 8, **options}))  # type: ignore[arg-type]


def labels(examples: list[Example], voters: int = 2) -> list[Label]:
    """One feature after the other, as the labelling of a round asks."""
    return [Label(feature, example, voter) for feature in FEATURES for example in examples for voter in range(voters)]


def triples(examples: list[Example], voter: int = 0) -> list[Compare]:
    return [Compare(Kind.TWO_OF_THREE, (*pair, examples[0]), voter=voter) for pair in pairwise(examples[1:])]


def probabilities(oracle: LocalVlmOracle, questions: list[Label]) -> list[float]:
    return read_off(ask(oracle, questions), questions)


def read_off(answers: Iterable[Answer], questions: list[Label]) -> list[float]:
    by_question = {answer.question: answer.probability for answer in answers}
    found = [by_question[question] for question in questions]
    return [value for value in found if value is not None]


@pytest.mark.parametrize("feature_first", [False, True])
@pytest.mark.parametrize("share_prefix", [False, True])
def test_a_batch_gives_the_probabilities_that_each_question_gets_alone(
    llava: Path, pictures: list[Example], feature_first: bool, share_prefix: bool
) -> None:
    questions = labels(pictures)
    alone = probabilities(oracle_of(llava, batch=1, feature_first=feature_first), questions)
    together = oracle_of(llava, batch=16, feature_first=feature_first, share_prefix=share_prefix)
    np.testing.assert_allclose(probabilities(together, questions), alone, atol=1e-5, rtol=0)
    again = list(ask(together, questions))  # what was tried the first time is now relied upon
    assert any(answer.usage.cached_tokens for answer in again) == share_prefix
    np.testing.assert_allclose(read_off(again, questions), alone, atol=1e-5, rtol=0)
    assert np.std(alone) > 0.01, "pictures and features that make no difference would prove nothing"


def test_a_batch_of_texts_gives_the_probabilities_that_each_gets_alone(instruct: Path, texts: list[Example]) -> None:
    for questions in (labels(texts), sorted(labels(texts), key=lambda label: label.example.id)):
        alone = probabilities(oracle_of(instruct, batch=1), questions)
        together = oracle_of(instruct, batch=5)
        for _ in range(2):
            np.testing.assert_allclose(probabilities(together, questions), alone, atol=1e-5, rtol=0)
        assert np.std(alone) > 0.01


def test_a_model_that_cannot_share_a_prefix_is_asked_plainly(tmp_path: Path, texts: list[Example]) -> None:
    mamba = save_tiny_mamba(tmp_path)
    questions = labels(texts[:2])[:6]
    alone = probabilities(oracle_of(mamba, batch=1, least_mass=0.0), questions)
    together = oracle_of(mamba, least_mass=0.0)
    answers = [*ask(together, questions), *ask(together, questions)]
    assert all(answer.usage.cached_tokens == 0 for answer in answers)
    np.testing.assert_allclose(probabilities(together, questions), alone, atol=1e-5, rtol=0)


def test_many_features_of_one_picture_are_answered_behind_one_look_at_it(llava: Path, pictures: list[Example]) -> None:
    """All that comes before the features is computed once: each has only the words behind the picture of its own."""
    questions = [Label(feature, pictures[0]) for feature in FEATURES]
    oracle, tokenizer = oracle_of(llava), quiet_transformers().AutoTokenizer.from_pretrained(llava)
    list(ask(oracle, questions))
    for answer, question in zip(ask(oracle, questions), questions, strict=True):
        behind = label_form([question]).messages[-1].parts[-1]
        own = len(tokenizer(f"{behind}</s><|assistant|>")["input_ids"])
        assert 0 < answer.usage.input_tokens - answer.usage.cached_tokens <= own


def test_pictures_and_texts_can_be_asked_about_in_one_batch(
    llava: Path, pictures: list[Example], texts: list[Example]
) -> None:
    questions = labels([pictures[0], texts[0], pictures[1], texts[1]], voters=1)
    alone = probabilities(oracle_of(llava, batch=1), questions)
    np.testing.assert_allclose(probabilities(oracle_of(llava), questions), alone, atol=1e-5, rtol=0)


def test_the_verdict_and_the_raw_reply_follow_the_probability(llava: Path, pictures: list[Example]) -> None:
    answers = list(ask(oracle_of(llava), labels(pictures)))
    assert {answer.verdict for answer in answers} == {Verdict.YES, Verdict.NO}
    for answer in answers:
        assert answer.probability is not None
        assert (answer.verdict is Verdict.YES) == (answer.probability >= 0.5)
        assert answer.raw.startswith(f"P(yes)={answer.probability:.6f} mass=0.")
        assert answer.by == llava.name


def test_a_model_that_says_neither_yes_nor_no_is_unreadable(speaker: Path, pictures: list[Example]) -> None:
    for answer in ask(oracle_of(speaker), labels(pictures[:2])):
        assert answer.verdict is Verdict.UNREADABLE
        assert answer.probability is None
        assert "mass=0.0" in answer.raw
        assert "yes and no together have a probability of" in answer.note


def test_a_comparison_is_answered_with_a_feature(speaker: Path, pictures: list[Example]) -> None:
    for answer in ask(oracle_of(speaker), triples(pictures)):
        assert (answer.verdict, answer.feature) == (Verdict.FEATURE, Feature("red hat", "A hat that is red."))
        assert answer.shown == (0, 1)
        assert answer.raw == RED_HAT
        assert answer.usage.requests == 1
        assert answer.usage.output_tokens == 2  # its sentence is one token, and the end another


def test_an_unreadable_comparison_is_asked_once_more_and_recorded(llava: Path, pictures: list[Example]) -> None:
    questions = triples(pictures)
    answers = list(ask(oracle_of(llava), questions))
    assert [answer.question for answer in answers] == questions
    for answer in answers:
        assert answer.verdict is Verdict.UNREADABLE
        assert answer.usage.requests == 2
        assert answer.usage.output_tokens == 16
        assert "\n" in answer.raw
        assert "no JSON object" in answer.note


def test_a_batch_of_comparisons_gets_the_replies_that_each_gets_alone(llava: Path, pictures: list[Example]) -> None:
    questions = [*triples(pictures), Compare(Kind.PAIR, (pictures[0], pictures[1]))]
    alone = [answer.raw for answer in ask(oracle_of(llava, batch=1, max_new_tokens=24), questions)]
    assert [answer.raw for answer in ask(oracle_of(llava, max_new_tokens=24), questions)] == alone
    assert len(set(alone)) > 1


def test_requests_are_pulled_one_at_a_time(llava: Path, pictures: list[Example]) -> None:
    pulled: list[Request] = []
    oracle = oracle_of(llava, batch=4)

    def lazily() -> Iterator[Request]:
        for request in oracle.plan(labels(pictures)):
            pulled.append(request)
            yield request

    replies = oracle.send(lazily(), CheckedMeter())
    assert len(next(replies).answers) == len(pulled[0].questions) == 4
    assert len(pulled) == 1
    assert sum(len(reply.answers) for reply in replies) == len(labels(pictures)) - 4


def test_every_answer_costs_its_share_of_the_time_and_never_more_than_estimated(
    llava: Path, pictures: list[Example]
) -> None:
    oracle = oracle_of(llava, price_per_hour=36_000.0)  # a cent per millisecond
    questions: list[Question] = [*labels(pictures), *triples(pictures)]
    for reply in replies(oracle, questions):
        bound = reply.request.bound // len(reply.request.questions)  # of each: they are of one kind
        for answer in reply.answers.values():
            assert answer.cost == min(round(answer.seconds * 10_000_000), bound)
            assert 0 < answer.cost <= bound


def test_a_configured_time_bounds_the_price_without_loading_the_model(llava: Path, pictures: list[Example]) -> None:
    oracle = oracle_of(llava, price_per_hour=3.6, seconds_per_label=0.5, seconds_per_comparison=4.0)
    assert bounds(oracle, [labels(pictures)[0], triples(pictures)[0]]) == [500, 4000]
    assert set(bounds(oracle_of(llava), labels(pictures))) == {0}


def test_the_identity_names_the_weights_and_all_that_changes_an_answer(
    llava: Path, speaker: Path, tmp_path: Path
) -> None:
    identity = oracle_of(llava).identity
    copy = save_tiny_llava(tmp_path / llava.name)
    assert oracle_of(copy).identity == identity
    assert oracle_of(llava, price_per_hour=2.0, batch=3, share_prefix=False).identity == identity
    others = [oracle_of(speaker), oracle_of(llava, feature_first=True), oracle_of(llava, dtype="bfloat16")]
    others += [oracle_of(llava, least_mass=0.1), oracle_of(llava, yes_from=0.4)]
    assert len({identity, *(other.identity for other in others)}) == 6
