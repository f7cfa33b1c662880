"""Ask why: one question about each label of a run that is in doubt or disputed, kept with the run and its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.flows.discover.preparation import Prepared
from twothirds.flows.estimate import Asked, Confirm, Estimate, Pricing, nobody, unanswered_by
from twothirds.flows.events import SILENT, Events
from twothirds.flows.runs.curate import (
    CurationRequest,
    CurationResult,
    asking,
    examples_of,
    prepare_request,
    scope_of,
)
from twothirds.models import MICRO, Answer, Crowd, Feature, OracleError, Question, Verdict, Why, in_usd
from twothirds.reports import Run
from twothirds.reports.run import FoundFeature, Rationale, write_reasons
from twothirds.store import ActiveRun
from twothirds.studio.web import plural

Which = Literal["doubtful", "disputed"]
Cell = tuple[FoundFeature, int]  # a feature and a row of the findings
LIMIT = 20


@dataclass(frozen=True)
class RationaleRequest:
    labels: Which = "doubtful"
    limit: int = LIMIT
    confirmed: bool = False
    budget: str | None = None
    store: str | None = None
    dataset: str | None = None

    @property
    def as_curation(self) -> CurationRequest:
        return CurationRequest("rationale", [self.labels], budget=self.budget, store=self.store, dataset=self.dataset)


def ask_why(run: Run, request: RationaleRequest, events: Events = SILENT, confirm: Confirm = nobody) -> CurationResult:
    """Say what it costs and, where that is confirmed, a budget is given or it is free, ask. What came before a stop is
    written."""
    cells = chosen_cells(run, request.labels, request.limit)
    if not cells:
        return CurationResult({"asked": 0, "done": True}, [f"no label is {request.labels}: nothing to ask"])
    with asking(run, request.as_curation, events) as (prepared, crowd, record):
        questions = _questions(prepared, run, cells)
        price = _price(run, request, prepared, questions)
        asked = f"{plural(len(questions), 'question')} why, about {request.labels} labels"
        likely, most = (in_usd(amount, at_most=True) for amount in (price.left, price.most_left))
        line = f"{asked}: likely {likely}, {most} at most"
        agreed = request.confirmed or request.budget is not None or not price.most_left
        if not agreed and not confirm([line]):
            usd = {"likely_usd": price.left / MICRO, "usd": price.most_left / MICRO}
            data: dict[str, Any] = {"asked": 0, "questions": len(questions), **usd, "done": False}
            return CurationResult(data, [line, "nothing was asked: add --yes, or --budget USD"])
        answers, stopped = _answers(crowd, record, list(questions), events)
        reasons = [_rationale(run, *questions[answer.question], answer) for answer in answers if answer.reason]
        write_reasons(run.folder, reasons)
        if stopped is not None:
            raise stopped
        record.status = "done"
    refused = len(answers) - len(reasons)
    lines = [
        f"{reason.feature}, {reason.id}: {'has it' if reason.has else 'lacks it'}. {reason.reason}"
        for reason in reasons
    ]
    if refused:
        notes = dict.fromkeys(answer.note or answer.verdict.value for answer in answers if not answer.reason)
        lines.append(f"{plural(refused, 'answer')} gave no reason that can be used: {'; '.join(notes)}")
    spent = f"{plural(len(reasons), 'reason')} for {in_usd(crowd.ledger.cost)}: `twothirds report` shows them"
    data = {
        "asked": len(questions),
        "reasons": [reason.to_json() for reason in reasons],
        "usd": crowd.ledger.cost / MICRO,
    }
    return CurationResult(data | {"done": True}, [*lines, spent])


def forecast_reasons(run: Run, request: RationaleRequest, events: Events = SILENT) -> Estimate:
    """What asking why will cost. Nothing is sent."""
    cells = chosen_cells(run, request.labels, request.limit)
    prepared = prepare_request(run, request.as_curation, events)
    with events.waiting("working out the price"):
        return _price(run, request, prepared, _questions(prepared, run, cells))


def _price(run: Run, request: RationaleRequest, prepared: Prepared, cells: dict[Question, Cell]) -> Estimate:
    members, questions = prepared.members, list(cells)
    spent, _ = prepared.store.runs.spent(scope_of(run, request.as_curation))
    return replace(
        Pricing(members).estimate(lambda _: [Asked(questions)]),
        dataset=prepared.dataset.name,
        oracle=str(members.identity),
        examples=len({row for _, row in cells.values()}),
        stored=len(questions) - len(unanswered_by(members, prepared.store)(questions)),
        spent=spent,
    )


def chosen_cells(run: Run, which: Which, limit: int) -> list[Cell]:
    """Features and rows, one of each feature in turn, so that no feature takes all."""
    rows = [_rows(run, found, which) for found in run.findings.found]
    in_turn = sorted((turn, place) for place, its in enumerate(rows) for turn in range(len(its)))
    return [(run.findings.found[place], int(rows[place][turn])) for turn, place in in_turn[: max(limit, 0)]]


def _rows(run: Run, found: FoundFeature, which: Which) -> NDArray[np.intp]:
    """Disputed: votes on both sides, or a label that the comparison contradicts. Doubtful: these, and those that were
    nearly otherwise. What a person has corrected is neither."""
    marked = (found.vote_counts.yes > 0) & (found.vote_counts.no > 0)
    if found.asked is not None:
        place_of = {name: row for row, name in enumerate(run.findings.ids)}
        for names, value in ((found.asked.having, 1), (found.asked.lacking, 0)):
            for row in (place_of[name] for name in names if name in place_of):
                marked[row] |= found.labels[row] not in (value, UNKNOWN)
    return np.flatnonzero((marked | found.doubtful if which == "doubtful" else marked) & ~found.is_corrected)


def _questions(prepared: Prepared, run: Run, cells: list[Cell]) -> dict[Question, Cell]:
    examples = examples_of(prepared, (run.findings.ids[row] for _, row in cells))
    return {
        Why(Feature(found.name, found.definition), example): (found, row)
        for (found, row), example in zip(cells, examples, strict=True)
    }


def _answers(
    crowd: Crowd, record: ActiveRun, questions: list[Question], events: Events
) -> tuple[list[Answer], OracleError | None]:
    answers: list[Answer] = []
    record.status = "failed"
    try:
        with events.waiting(f"asking why, {plural(len(questions), 'question')}"):
            answers.extend(crowd.ask(questions))
    except OracleError as error:
        return answers, error
    return answers, None


def _rationale(run: Run, found: FoundFeature, row: int, answer: Answer) -> Rationale:
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
