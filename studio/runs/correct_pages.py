"""Labels to put right: a grid of examples, the doubtful and contradicted ones first, by click or by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

import numpy as np
from fastapi import Header
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from twothirds.discovery import UNKNOWN
from twothirds.reports.curation import LABELS, LabelEdit, StaleEdit, record_corrections
from twothirds.reports.export import reason_for_doubt
from twothirds.reports.page import detailed
from twothirds.reports.run import FoundFeature, RunError
from twothirds.sources import Example
from twothirds.studio.catalog import OpenRun
from twothirds.studio.pages import Key, StudioPages, for_staff
from twothirds.studio.review import RequestContext, Visitor
from twothirds.studio.runs.place import finished_place

PER_PAGE = 36
SAME = "same"  # in place of a label: it stays, for a person has looked at it
STALE = "Somebody else has corrected this label meanwhile: it is shown as it is now."
WHICH = ("doubtful", "corrected", "yes", "no", "unknown", "all")
WORDS = {1: "yes", 0: "no", UNKNOWN: "unknown"}


@dataclass(frozen=True)
class Cell:
    """One label as the grid shows it."""

    feature: FoundFeature
    row: int
    name: str
    example: Example | None
    why: str

    @property
    def label(self) -> str:
        return WORDS[int(self.feature.labels[self.row])]

    @property
    def votes(self) -> str:
        return votes_on(self.feature, self.row)

    @property
    def by(self) -> str:
        corrected = self.feature.corrected.get(self.row)
        return corrected.by if corrected else ""


class CorrectPages(StudioPages):
    @for_staff("GET /runs/{key}/correct")
    def grid(
        self, visitor: Visitor, key: Key, feature: str = "", which: str = "doubtful", page: int = 1, problem: str = ""
    ) -> Response:
        """One feature at a time, the one with the most labels to check where none is named."""
        opened = self.opened(key)
        which = which if which in WHICH else "doubtful"
        rows = sorted(opened.outlines, key=lambda card: -card["doubtful_labels"])
        card = next((card for card in rows if card["found"].name == feature), rows[0] if rows else None)
        cells = cells_of(opened, card["found"], which) if card else []
        pages = max(1, -(-len(cells) // PER_PAGE))
        page = min(max(page, 1), pages)
        name = card["found"].name if card else ""
        return self.render(
            "correct.html",
            visitor,
            place=finished_place(opened),
            cells=cells[(page - 1) * PER_PAGE : page * PER_PAGE],
            total=len(cells),
            page=page,
            pages=pages,
            card=self._card(opened, card) if card else None,
            next_feature=next((row["found"].name for row in rows if row is not card and row["doubtful_labels"]), ""),
            rows=rows,
            which=which,
            whiches=WHICH,
            seen=len(opened.run.corrections),
            problem=STALE if problem else "",
            here=urlencode({"feature": name, "which": which, "page": page}),
        )

    def _card(self, opened: OpenRun, card: dict[str, Any]) -> dict[str, Any]:
        places = np.array(sorted(opened.places), np.intp)
        return card | detailed(opened.run.findings, card["order"] - 1, opened.show, places)

    @for_staff("POST /runs/{key}/correct")
    def correct(self, visitor: Visitor, key: Key, hx_request: Annotated[str, Header()] = "") -> Response:
        """Give labels to examples, or confirm each as it is. A script gets the cell as it is then."""
        form, opened = visitor.form, self.opened(key)
        label, names, feature = form.value("label"), form.all("example"), form.value("feature")
        found = next((found for found in opened.run.findings.found if found.name == feature), None)
        if label not in (*LABELS, SAME):
            raise HTTPException(422, "This is no label: yes, no or clear.")
        edits = (
            [LabelEdit(name, feature, LABELS[label]) for name in names]
            if label != SAME
            else _as_they_are(opened, found, names)
        )
        rows = [opened.rows[name] for name in names if name in opened.rows]
        digests = {example.id: example.digest for row in rows if (example := opened.examples[row]) is not None}
        stale = False
        try:
            record_corrections(
                opened.run, opened.run.findings, edits, visitor.who.name, digests, (form.numbers("seen") or [0])[0]
            )
        except StaleEdit:
            stale = True
        except RunError as error:
            raise HTTPException(422, str(error)) from None
        if hx_request and form.value("cell") and rows:
            return self._cell(visitor, key, feature, rows[0], stale=stale)
        if form.value("on") == "features":
            now = 0 if stale else len(self.opened(key).run.corrections)
            return RedirectResponse(f"/runs/{key}?{urlencode({'feature': feature, 'corrected': now})}", 303)
        problem = "&problem=stale" if stale else ""
        return RedirectResponse(f"/runs/{key}/correct?{_own_query(form.value('here'))}{problem}", 303)

    def _cell(self, visitor: RequestContext, key: str, name: str, row: int, *, stale: bool) -> Response:
        now = self.opened(key)
        feature = next(feature for feature in now.run.findings.found if feature.name == name)
        cell = Cell(feature, row, now.run.findings.ids[row], now.examples[row], "")
        context = {"key": key, "seen": len(now.run.corrections), "here": visitor.form.value("here")}
        problem = STALE if stale else ""
        return self.render("cell.html", visitor, 409 if stale else 200, cell=cell, problem=problem, **context)


def _as_they_are(opened: OpenRun, found: FoundFeature | None, names: Sequence[str]) -> list[LabelEdit]:
    """Of those whose label is known and that nobody has looked at yet."""
    if found is None:
        return []
    rows = [opened.rows[name] for name in names if name in opened.rows]
    open_rows = [row for row in rows if found.labels[row] != UNKNOWN and row not in found.corrected]
    return [LabelEdit(opened.run.findings.ids[row], found.name, int(found.labels[row])) for row in open_rows]


def votes_on(feature: FoundFeature, row: int) -> str:
    """What stands behind a label that nobody has corrected."""
    if feature.predicted[row]:
        return f"predicted, {100 * feature.probability[row]:.0f}\N{NO-BREAK SPACE}% yes"
    vote_counts = feature.vote_counts
    counts = ((vote_counts.yes[row], "yes"), (vote_counts.no[row], "no"), (vote_counts.abstained[row], "abstained"))
    return ", ".join(f"{count} {word}" for count, word in counts if count) or "no votes"


def cells_of(opened: OpenRun, feature: FoundFeature, which: str) -> list[Cell]:
    """The most divided first."""
    findings = opened.run.findings
    contradicted = feature.contradicted(findings.ids)
    doubtful = feature.doubtful | contradicted
    chosen = {
        "doubtful": doubtful,
        "corrected": feature.is_corrected,
        "yes": feature.labels == 1,
        "no": feature.labels == 0,
        "unknown": feature.labels == UNKNOWN,
        "all": np.ones(len(findings.ids), np.bool_),
    }[which]
    cast = np.maximum(feature.vote_counts.yes + feature.vote_counts.no, 1)
    against = np.where(
        feature.labels == UNKNOWN, 0.5, np.minimum(feature.vote_counts.yes, feature.vote_counts.no) / cast
    )
    rows = sorted(np.flatnonzero(chosen).tolist(), key=lambda row: (not doubtful[row], -float(against[row]), row))
    return [
        Cell(
            feature,
            row,
            findings.ids[row],
            opened.examples[row],
            reason_for_doubt(feature, row) if doubtful[row] and not contradicted[row] else "",
        )
        for row in rows
    ]


def _own_query(text: str) -> str:
    """What a form says about the page that it is on, made again: nothing of it is believed."""
    try:
        wanted = dict(parse_qsl(text[:2000], max_num_fields=10))
    except ValueError:
        wanted = {}
    return urlencode({name: wanted.get(name, "") for name in ("feature", "which", "page") if wanted.get(name)})
