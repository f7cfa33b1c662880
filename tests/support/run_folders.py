"""Run folders made to order: labels, votes and questions as a test wants them, without any oracle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery.metrics import g_curve, interest_and_distinctness, interesting_and_distinct
from twothirds.reports.finished_run import Run
from twothirds.reports.label_table import LabelledFeature, LabelTable
from twothirds.reports.run.findings import twins_of
from twothirds.reports.run.folder import write_run
from twothirds.reports.run.summary import RunSummary

HOSTILE = (
    '<script>document.title="owned"</script>',
    '"><img src=x onerror="document.title=\'owned\'">',
    '=HYPERLINK("http://127.0.0.1:9/","x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "שלום \u202eoverridden",
    "👩\u200d👩\u200d👧 family & co; `tick` | pipe",
    "x" * 300,
    "</script><!-- {{ 7*7 }} ${7*7}",
)


def make_run(
    folder: Path,
    dataset: str,
    ids: Sequence[str],
    names: Sequence[str],
    matrix: NDArray[np.int8],
    *,
    definitions: Sequence[str] = (),
    votes: int = 3,
    divided: float = 0.1,
    price: int = 0,
    seed: int = 0,
    further: Sequence[dict[str, Any]] = (),
    **summary: Any,
) -> Run:
    """`matrix` is features × examples. Of the known labels a share of `divided` had one vote against it; `further` are
    answers to comparisons that brought nothing."""
    rng = np.random.default_rng(seed)
    meanings = [*definitions, *[""] * (len(names) - len(definitions))]
    questions = [_question(row, ids, rng) for row in matrix]
    marks, twins = interest_and_distinctness(matrix), twins_of(names, list(matrix))
    features = [
        {
            "order": order,
            "name": name,
            "definition": meaning,
            "question": "two-of-three",
            "examples": " ".join(question["examples"]),
            "positives": int((row == 1).sum()),
            "labelled": int((row >= 0).sum()),
            "sampled_positives": int((row == 1).sum()),
            "sampled": len(ids),
            "interesting": interesting,
            "distinct": distinct,
            "consistent": True,
            "twin": twin,
            "look": "",
            "added_by": "",
            "cost_usd": price * len(ids) * votes / 1e6,
        }
        for order, (name, meaning, row, question, (interesting, distinct), twin) in enumerate(
            zip(names, meanings, matrix, questions, marks, twins, strict=True), start=1
        )
    ]
    compared = [
        _answer(question, "feature", price, feature=[name, meaning], shown=[0, 1])
        for question, name, meaning in zip(questions, names, meanings, strict=True)
    ]
    labelled = [
        line
        for name, row in zip(names, matrix, strict=True)
        for line in _votes(name, row, ids, votes, divided, price, rng)
    ]
    whole = summary_of(dataset, ids, matrix, len(names) + len(further), **summary)
    folder.mkdir(parents=True, exist_ok=True)
    write_run(
        folder,
        summary=whole,
        features=features,
        labels=label_table(ids, names, matrix, definitions),
        answers=[*compared, *further, *labelled],
    )
    return Run(folder)


def label_table(
    ids: Sequence[str], names: Sequence[str], matrix: NDArray[np.int8], definitions: Sequence[str] = ()
) -> LabelTable:
    meanings = [*definitions, *[""] * (len(names) - len(definitions))]
    features = [LabelledFeature(name, meaning) for name, meaning in zip(names, meanings, strict=True)]
    return LabelTable.of(list(ids), [""] * len(ids), features, np.asarray(matrix, np.int8))


def random_matrix(features: int, examples: int, seed: int = 0, unknown: float = 0.03) -> NDArray[np.int8]:
    """Features of different shares, each true of two examples and false of one at least, some labels unknown."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((features, examples)) < rng.uniform(0.1, 0.7, (features, 1))).astype(np.int8)
    matrix[rng.random(matrix.shape) < unknown] = -1
    for row in matrix:
        row[rng.permutation(examples)[:3]] = (1, 1, 0)
    return matrix


def unanswered(ids: Sequence[str], verdict: str, note: str = "", raw: str = "") -> dict[str, Any]:
    question = {"kind": "two-of-three", "examples": list(ids[:3]), "without": [], "known": [], "voter": 0}
    return _answer(question, verdict, 0, note=note, raw=raw)


def _question(row: NDArray[np.int8], ids: Sequence[str], rng: np.random.Generator) -> dict[str, Any]:
    having, lacking = rng.permutation(np.flatnonzero(row == 1))[:2], rng.permutation(np.flatnonzero(row == 0))[:1]
    examples = [ids[place] for place in (*having, *lacking)]
    return {"kind": "two-of-three", "examples": examples, "without": [], "known": [], "voter": 0}


def _votes(
    name: str,
    row: NDArray[np.int8],
    ids: Sequence[str],
    votes: int,
    divided: float,
    price: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    lines = []
    for place, label in enumerate(row.tolist()):
        if label < 0:
            verdicts = ["refused"] * votes
        else:
            with_it, against = ("yes", "no") if label else ("no", "yes")
            enough = votes // 2 + 1
            verdicts = [with_it] * enough if votes == 1 or rng.random() >= divided else [against, *[with_it] * enough]
        lines += [
            _answer({"kind": "label", "feature": name, "example": ids[place], "voter": voter}, verdict, price)
            for voter, verdict in enumerate(verdicts)
        ]
    return lines


def _answer(question: dict[str, Any], verdict: str, price: int, **more: Any) -> dict[str, Any]:
    answer = {
        "verdict": verdict,
        "by": f"worker {question['voter']}",
        "feature": None,
        "shown": [],
        "probability": None,
        "usage": [1, 0, 0, 0, 0],
        "cost": price,
        "seconds": 0.1,
        "raw": "",
        "note": "",
    }
    return {"question": question, "answer": answer | more}


def summary_of(dataset: str, ids: Sequence[str], matrix: NDArray[np.int8], queries: int, **changed: Any) -> RunSummary:
    curve = g_curve([[labels] for labels in matrix] + [[]] * (queries - len(matrix)), len(ids))
    summary = {
        "settings": {
            "dataset": dataset,
            "oracle": "simulated",
            "strategy": "adaptive-triple",
            "queries": queries,
            "votes": 3,
            "seed": 0,
        },
        "dataset": {
            "name": Path(dataset).stem,
            "digest": "0" * 64,
            "examples": len(ids),
            "compared": len(ids),
            "left_out": [],
        },
        "oracle": {"kind": "simulated", "model": "salience", "parameters": {}, "prompts": ""},
        "run_id": "00000000-0000-0000-0000-000000000000",
        "scope": "0" * 64,
        "queries": queries,
        "features": len(matrix),
        "interesting_distinct": sum(interesting_and_distinct(matrix)),
        "repeated_names": 0,
        "g": curve[-1] if curve else 1.0,
        "g_curve": curve,
        "unresolved": 0.5,
        "stopped_because": "queries",
        "cost_usd": 0.0,
        "paid_calls": 0,
        "cached_calls": 0,
        "total_usd": 0.0,
        "total_paid_calls": 0,
        "booked_usd": {"questions": 0.0, "labels": 0.0, "probes": 0.0},
        "seconds": 12.0,
        "finished_at": "2026-01-01T00:00:00+00:00",
        "versions": {"python": "3.11"},
    }
    return RunSummary.model_validate_json(json.dumps(summary | changed))
