"""Labels to put right: a grid of examples, the doubtful and contradicted ones first, by click or by key."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

import numpy as np
from fastapi.responses import RedirectResponse, Response

from twothirds.discovery import UNKNOWN
from twothirds.reports.curation import LABELS, LabelEdit, StaleEdit, record_corrections
from twothirds.reports.export import reason_for_doubt
from twothirds.reports.run import FoundFeature, RunError, names_of
from twothirds.sources import Example
from twothirds.studio.catalog import OpenRun
from twothirds.studio.pages import Key, StudioPages, for_staff
from twothirds.studio.review import Visitor
from twothirds.studio.views import json_response

PER_PAGE = 48
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
        opened = self.opened(key)
        which = which if which in WHICH else "doubtful"
        cells = cells_of(opened, feature, which)
        pages = max(1, -(-len(cells) // PER_PAGE))
        page = min(max(page, 1), pages)
        return self.render(
            "correct.html",
            visitor,
            run=opened,
            cells=cells[(page - 1) * PER_PAGE : page * PER_PAGE],
            total=len(cells),
            page=page,
            pages=pages,
            feature=feature,
            features=names_of(opened.run.findings.found),
            which=which,
            whiches=WHICH,
            seen=len(opened.run.corrections),
            kind="texts" if any(opened.texts) else "images",
            problem="Somebody else has corrected this label meanwhile: it is shown as it is now." if problem else "",
            here=urlencode({"feature": feature, "which": which, "page": page}),
        )

    @for_staff("POST /runs/{key}/correct")
    def correct(self, visitor: Visitor, key: Key) -> Response:
        """From the page's script, which wants JSON, or from its form."""
        form, opened = visitor.form, self.opened(key)
        wants_json, back = form.value("json") == "1", f"/runs/{key}/correct?{_own_query(form.value('here'))}"
        label, example = form.value("label"), form.value("example")
        if label not in LABELS:
            return json_response({"problem": "This is no label: yes, no or clear."}, 422)
        found = opened.examples[opened.rows[example]] if example in opened.rows else None
        edit = LabelEdit(example, form.value("feature"), LABELS[label])
        digests = {example: found.digest} if found else {}
        seen = (form.numbers("seen") or [0])[0]
        try:
            record_corrections(opened.run, opened.run.findings, [edit], visitor.who.name, digests, seen)
        except StaleEdit as stale:
            problem = {"problem": str(stale), "changed": stale.changed}
            return json_response(problem, 409) if wants_json else RedirectResponse(f"{back}&problem=stale", 303)
        except RunError as error:
            return json_response({"problem": str(error)}, 422)
        if not wants_json:
            return RedirectResponse(back, 303)
        now = self.opened(key)
        feature = next(feature for feature in now.run.findings.found if feature.name == edit.feature)
        cell = Cell(feature, now.rows[example], example, None, "")
        return json_response({"label": cell.label, "by": cell.by, "seen": len(now.run.corrections)})


def votes_on(feature: FoundFeature, row: int) -> str:
    """What stands behind a label that nobody has corrected."""
    if feature.predicted[row]:
        return f"predicted, {100 * feature.probability[row]:.0f}\N{NO-BREAK SPACE}% yes"
    vote_counts = feature.vote_counts
    counts = ((vote_counts.yes[row], "yes"), (vote_counts.no[row], "no"), (vote_counts.abstained[row], "abstained"))
    return ", ".join(f"{count} {word}" for count, word in counts if count) or "no votes"


def cells_of(opened: OpenRun, name: str, which: str) -> list[Cell]:
    """Of one feature or of all, the most divided first."""
    findings, found = opened.run.findings, list[tuple[bool, bool, float, int, Cell]]()
    for feature in findings.found:
        if name and feature.name != name:
            continue
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
        for row in np.flatnonzero(chosen).tolist():
            why = reason_for_doubt(feature, row) if doubtful[row] else ""
            cell = Cell(feature, row, findings.ids[row], opened.examples[row], why)
            found.append((not contradicted[row], not doubtful[row], -float(against[row]), len(found), cell))
    return [cell for *_, cell in sorted(found, key=lambda entry: entry[:4])]


def _own_query(text: str) -> str:
    """What a form says about the page that it is on, made again: nothing of it is believed."""
    try:
        wanted = dict(parse_qsl(text[:2000], max_num_fields=10))
    except ValueError:
        wanted = {}
    return urlencode({name: wanted.get(name, "") for name in ("feature", "which", "page") if wanted.get(name)})
