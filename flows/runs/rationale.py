"""Ask why: one question about each label of a run that is in doubt or disputed, kept with the run and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discovery import UNKNOWN
from flows.progress import SILENT, Display
from flows.runs.curate import CurationRequest, CurationResult, Relabelling, relabelling
from models import MICRO, Answer, Feature, OracleError, Question, Verdict, Why, in_usd
from reports import Run
from reports.drawing import plural
from reports.run import Found, Rationale, RunError, write_reasons

Which = Literal["doubtful", "disputed"]
LIMIT = 20


@dataclass(frozen=True)
class RationaleRequest:
    labels: Which = "doubtful"
    limit: int = LIMIT
    confirmed: bool = False
    budget: str | None = None
    store: str | None = None
    dataset: str | None = None


def ask_why(run: Run, request: RationaleRequest, display: Display = SILENT) -> CurationResult:
    """Say what it costs and, where that is confirmed, a budget is given or it is free, ask. What came before a stop is
    written."""
    cells = chosen_cells(run, request.labels, request.limit)
    if not cells:
        return CurationResult({"asked": 0, "done": True}, [f"no label is {request.labels}: nothing to ask"])
    shared: dict[str, Any] = {"budget": request.budget, "store": request.store, "dataset": request.dataset}
    with relabelling(run, CurationRequest("rationale", [request.labels], **shared), [], display) as asking:
        questions = {_question(asking, run, found, row): (found, row) for found, row in cells}
        cost = sum(asking.recorded.estimate(list(questions)))
        about = f"{plural(len(questions), 'question')} why, about {request.labels} labels"
        line = f"{about}: {in_usd(cost, at_most=True)} at most"
        agreed = request.confirmed or request.budget is not None or not cost
        if not agreed and not display.confirm([line]):
            data: dict[str, Any] = {"asked": 0, "questions": len(questions), "usd": cost / MICRO, "done": False}
            return CurationResult(data, [line, "nothing was asked: add --yes, or --budget USD"])
        answers, stopped = _answers(asking, list(questions), display)
        reasons = [_rationale(run, *questions[one.question], one) for one in answers if one.reason]
        write_reasons(run.folder, reasons)
        if stopped is not None:
            raise stopped
        asking.record.status = "done"
    refused = len(answers) - len(reasons)
    lines = [f"{one.feature}, {one.id}: {'has it' if one.has else 'lacks it'}. {one.reason}" for one in reasons]
    if refused:
        lines.append(f"{plural(refused, 'answer')} gave no reason that can be used: {_why_not(answers)}")
    spent = f"{plural(len(reasons), 'reason')} for {in_usd(asking.spent)}: `python -m flows report` shows them"
    data = {"asked": len(questions), "reasons": [one.to_json() for one in reasons], "usd": asking.spent / MICRO}
    return CurationResult(data | {"done": True}, [*lines, spent])


def chosen_cells(run: Run, which: Which, limit: int) -> list[tuple[Found, int]]:
    """Features and rows, one of each feature in turn, so that no feature takes all."""
    rows = [_rows(run, found, which) for found in run.findings.found]
    in_turn = sorted((turn, place) for place, its in enumerate(rows) for turn in range(len(its)))
    return [(run.findings.found[place], int(rows[place][turn])) for turn, place in in_turn[: max(limit, 0)]]


def _rows(run: Run, found: Found, which: Which) -> NDArray[np.intp]:
    """Disputed: votes on both sides, or a label that the comparison contradicts. Doubtful: these, and those that were
    nearly otherwise."""
    marked = (found.tally.yes > 0) & (found.tally.no > 0)
    if found.asked is not None:
        place_of = {name: row for row, name in enumerate(run.findings.ids)}
        for names, value in ((found.asked.having, 1), (found.asked.lacking, 0)):
            for row in (place_of[name] for name in names if name in place_of):
                marked[row] |= found.labels[row] not in (value, UNKNOWN)
    return np.flatnonzero(marked | found.doubtful if which == "doubtful" else marked)


def _question(asking: Relabelling, run: Run, found: Found, row: int) -> Question:
    name = run.findings.ids[row]
    example = next((one for one in asking.prepared.dataset.examples if one.id == name), None)
    if example is None:
        raise RunError(f"example {name!r} is not in the data set any more: say where it is with --dataset")
    return Why(Feature(found.name, found.definition), example)


def _answers(
    asking: Relabelling, questions: list[Question], display: Display
) -> tuple[list[Answer], OracleError | None]:
    answers: list[Answer] = []
    asking.record.status = "failed"
    try:
        with display.waiting(f"asking why, {plural(len(questions), 'question')}"):
            answers.extend(asking.recorded.ask(questions))
    except OracleError as error:
        return answers, error
    return answers, None


def _rationale(run: Run, found: Found, row: int, answer: Answer) -> Rationale:
    return Rationale(
        feature=found.name,
        definition=found.definition,
        id=run.findings.ids[row],
        label=int(found.labels[row]),
        has=answer.verdict is Verdict.YES,
        reason=answer.reason,
        quote=answer.quote,
        by=answer.by,
    )


def _why_not(answers: list[Answer]) -> str:
    return "; ".join(dict.fromkeys(one.note or one.verdict.value for one in answers if not one.reason))
