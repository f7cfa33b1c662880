"""The run that the corpus holds: a small discovery, recorded once and replayed for ever."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from flows.discover.flow import run_discovery
from flows.discover.preparation import Prepared
from flows.discover.settings import DiscoverSettings
from models.oracle import Answer, Compare, Feature, Label, Money, Oracle, Question
from models.people.simulated import SimulatedOracle
from models.recorded import Recorded
from models.voting import Elicited, Labelled, Panel
from sources.dataset import Dataset, Example, Truth
from store import Store
from tests.support.made import crowd_of, random_truth, texts

FILES, ANSWERS = ("features.csv", "labels.csv"), "answers.jsonl"
LATER = ["look", "labelled", "twin", "given_by"]  # columns of features.csv that came after the records
TRUTH = random_truth(6, 4, seed=3)
PACKED_SINCE = 8  # the schema since which labels that are asked together are packed, and in the record


class Disabled:
    """The same crowd, but whoever asks it fails: a replay needs no answer that is not kept."""

    def __init__(self, crowd: SimulatedOracle) -> None:
        self.identity, self.width = crowd.identity, crowd.width

    def estimate(self, questions: Sequence[Question]) -> list[Money]:
        return [0] * len(questions)

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        asked = next(iter(questions))
        raise AssertionError(f"a question is not in the record: {asked.content}")
        yield


class Shuffled:
    """Hands over the answers in another order than they were asked for."""

    def __init__(self, oracle: Oracle, dice: random.Random) -> None:
        self._oracle = oracle
        self._dice = dice
        self.identity, self.width, self.estimate = oracle.identity, oracle.width, oracle.estimate

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        answers = list(self._oracle.ask(questions))
        self._dice.shuffle(answers)
        yield from answers


def crowd() -> SimulatedOracle:
    return crowd_of(TRUTH, seed=1, flip=0.1, price=1000)


def run(
    url: str, folder: Path, oracle: Oracle, dice: random.Random, examples: Sequence[Example] | None = None
) -> dict[str, str]:
    """Discover, and what the files of the run folder say."""
    settings = DiscoverSettings(dataset="made", oracle="simulated", queries=4, batch=2, seed=5)
    columns = tuple(f"feature {number}" for number in range(TRUTH.shape[1]))
    dataset = Dataset("made", "made", tuple(examples or texts(6)), (), Truth(columns, np.asarray(TRUTH)), "made")

    def shuffling(panel: Panel) -> Panel:
        return Panel(Shuffled(panel.oracle, dice), panel.examples, panel.votes)

    def compare(panel: Panel, questions: list[Compare]) -> Elicited:
        return shuffling(panel).compare(questions)

    def label(panel: Panel, features: list[Feature]) -> Labelled:
        return shuffling(panel).label(features)

    folder.mkdir(parents=True, exist_ok=True)
    with Store.open(url) as store:
        prepared = Prepared(settings, dataset, oracle, store, folder)
        run_discovery(prepared, run_id=f"run {folder.name}", compare=compare, label=label)
    tables = {name: pd.read_csv(folder / name, dtype=str, keep_default_na=False) for name in FILES}
    said = {name: table.drop(columns=LATER, errors="ignore").to_csv(index=False) for name, table in tables.items()}
    answers = (folder / ANSWERS).read_bytes()
    return said | {ANSWERS: f"sha256 of {len(answers)} bytes: {hashlib.sha256(answers).hexdigest()}"}


def label_rows(url: str, oracle: Oracle) -> dict[str, str]:
    """Labels of all features at once, example by example, and what they say."""
    features = [Feature(f"feature {letter}", f"It has {letter}.") for letter in "abcd"]
    questions = [Label(feature, example, voter) for example in texts(6) for feature in features for voter in range(2)]
    with Store.open(url) as store:
        store.runs.begin("rows", "rows", name="rows", flow="enrich", dataset="made", oracle="simulated", settings={})
        answers = {one.question: one for one in Recorded(oracle, store, run_id="rows", scope="rows").ask(questions)}
        assert store.check.problems() == []
    return {"rows": " ".join(answers[one].verdict.value for one in questions)}
