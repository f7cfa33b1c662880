"""Figure 3: the first five questions of Adaptive Triple and their answers, as pictures."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

import numpy as np

from discovery.simulation import Matrix, make_crowd, rehearse
from discovery.strategies import make_strategy
from reports.replicate.claim import ClaimResult, ClaimTable, ClaimVerdict, Job, Scale, Topic, jobs_of
from reports.replicate.estimates import mean, with_interval
from reports.replicate.table_1 import DATASETS
from sources import Dataset, load_dataset

FIRST_QUESTIONS = 5
SIZE, GAP = 92, 8  # pixels of a picture, and between two


def first_questions(truth: Matrix, strategy: str, rng: np.random.Generator) -> list[tuple[tuple[int, ...], int | None]]:
    """The examples of each question, those that have the feature first, and the column that was named."""
    crowd = make_crowd("salience", truth, int(rng.integers(1 << 31)))
    history = rehearse(make_strategy(strategy, len(truth), rng), crowd, truth, FIRST_QUESTIONS, rng)
    asked = []
    for question, column in zip(history.questions, history.answers, strict=True):
        has = np.zeros(len(truth)) if column is None else truth[:, column]
        asked.append((tuple(sorted(question.examples, key=lambda row: -has[row])), column))
    return asked


def _faces() -> Dataset:
    return load_dataset(str(DATASETS / "faces"))


def _truth(dataset: Dataset) -> Matrix:
    if dataset.truth is None:
        raise ValueError(f"data set {dataset.name} has no truth.csv")
    return dataset.truth.matrix


def _plan(scale: Scale, seed: int) -> list[Job]:
    truth = _truth(_faces())
    cases = [{"truth": truth, "strategy": strategy} for strategy in ("adaptive-triple", "random-triple")]
    return jobs_of(first_questions, cases, (seed, 31), repeats=scale.of(2, 30, 200))


def _judge(scale: Scale, results: list[Any]) -> ClaimResult:  # noqa: ARG001
    dataset = _faces()
    half = len(results) // 2
    adaptive, at_random = results[:half], results[half:]
    different = [
        [len({column for _, column in run if column is not None}) for run in group] for group in (adaptive, at_random)
    ]
    known = [_settled_by_known(run, _truth(dataset)) for run in results]
    rows = [
        (name, str(half), with_interval(mean(counts)), with_interval(mean(shown)))
        for name, counts, shown in zip(
            ("adaptive-triple", "random-triple"), different, (known[:half], known[half:]), strict=True
        )
    ]
    never = not any(known[:half])
    return ClaimResult(
        title="Figure 3: the first five questions and answers",
        claim="Once the broad features are known, Adaptive Triple shows only examples that they do not tell apart, so "
        "that each answer brings something new.",
        simulated=f"The first {FIRST_QUESTIONS} questions about the shipped faces, answered by salience crowds, each "
        "with an order of its own; the picture shows the first run.",
        runs=len(results),
        verdict=ClaimVerdict.HOLDS if never else ClaimVerdict.FAILS,
        because=f"of the adaptive questions {'none' if never else 'some'} could have been answered by a known feature.",
        tables=[
            ClaimTable(
                ("algorithm", "runs", "different features from five questions", "questions a known feature settles"),
                rows,
            )
        ],
        pictures={"figure-3.svg": questions_svg(dataset, adaptive[0])},
    )


def _settled_by_known(run: list[tuple[tuple[int, ...], int | None]], truth: Matrix) -> int:
    """How many questions of the run a feature named before could have answered."""
    known: set[int] = set()
    settled = 0
    for examples, column in run:
        settled += any(truth[list(examples), feature].sum() == 2 for feature in known)
        if column is not None:
            known.add(column)
    return settled


def questions_svg(dataset: Dataset, run: list[tuple[tuple[int, ...], int | None]]) -> str:
    """A row per question: the two that have the feature, its name, and on the right the one that lacks it."""
    names = dataset.truth.columns if dataset.truth else ()
    width, height = 4 * SIZE + 130, len(run) * (SIZE + GAP) + 34
    alt = "; ".join("none" if column is None else names[column] for _, column in run)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="13"><title>{escape(f"Questions and answers: {alt}")}</title>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{GAP}" y="20">two have it</text><text x="{2 * SIZE + 40}" y="20">answer</text>'
        f'<text x="{width - SIZE - GAP}" y="20">one lacks it</text>',
    ]
    for place, (examples, column) in enumerate(run):
        top = 30 + place * (SIZE + GAP)
        left = (GAP, GAP + SIZE + 4, width - SIZE - GAP)
        parts += [_image(dataset, row, x, top) for row, x in zip(examples, left, strict=True)]
        name = "NONE" if column is None else names[column]
        parts.append(f'<text x="{2 * SIZE + 40}" y="{top + SIZE // 2 + 5}">{place + 1}. {escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _image(dataset: Dataset, row: int, x: int, y: int) -> str:
    example = dataset.examples[row]
    data = base64.b64encode(example.image_bytes()).decode("ascii")
    return (
        f'<image x="{x}" y="{y}" width="{SIZE}" height="{SIZE}" href="data:image/png;base64,{data}">'
        f"<title>{escape(example.id)}</title></image>"
    )


TOPICS = (Topic("Figure 3", _plan, _judge),)
