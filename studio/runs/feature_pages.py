"""The features of a run: a list, the card of one with its labels as grids, and a map; changes to features; the
structure among them; settings and log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from twothirds.discovery import UNKNOWN
from twothirds.reports.analysis import example_order
from twothirds.reports.browse import scores_of
from twothirds.reports.curation import Correction, checked_by_people, unused_corrections
from twothirds.reports.page import STOPPED, detailed, heat_map, ordered, strongest
from twothirds.reports.run import LIVE, RUN_JSON, LiveRun, names_of
from twothirds.studio.catalog import OpenRun
from twothirds.studio.config import CurationCommand, CurationStep, EditRefused
from twothirds.studio.pages import OWNER, Key, StudioPages, for_staff
from twothirds.studio.review import RequestContext, Visitor
from twothirds.studio.runs.place import finished_place, unfinished_place, written
from twothirds.studio.views import json_response
from twothirds.studio.web import ExampleTile

SIDE = 120  # examples of either side in a card
RELATED, CLEARLY = 8, 0.3  # features that go with one, and from which correlation on
PRIVATE = {"store", "out"}
SORTS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "split": ("splits best", lambda card: abs(card["share"] - 0.5)),
    "doubtful": ("most doubtful", lambda card: -card["doubtful_labels"]),
    "order": ("discovery", lambda card: card["order"]),
    "name": ("name", lambda card: card["found"].name.casefold()),
}
DIGITS = np.array(["0", "1", "-"])  # unknown, -1, is the last


class FeaturePages(StudioPages):
    @for_staff("GET /runs/{key}")
    def run(
        self, visitor: Visitor, key: str, feature: str = "", sort: str = "split", changed: int = 0, corrected: int = 0
    ) -> Response:
        """By its key, or by the name of its folder, as links from elsewhere name it: the latest run of that name, else
        a table or a comparison. A run without results shows its discovery."""
        folder = self._run_catalog.folder(key)
        if folder is not None and self._run_catalog.open(key) is None:
            return RedirectResponse(f"/runs/{key}/discovery", 303)
        if folder is not None:
            return self._features(visitor, key, feature, sort, changed=changed, corrected=corrected)
        named = next((entry for entry in self._run_catalog.entries() if entry.name == key), None)
        address = f"/runs/{named.key}" if named else self._others.address_of(key)
        if address is None:
            raise HTTPException(404)
        return RedirectResponse(address, 303)

    @for_staff("GET /runs/{key}/plot")
    def plot(self, visitor: Visitor, key: Key) -> Response:
        """What map and matrix draw: labels as one string per feature, places of the examples, orders of both."""
        del visitor
        opened = self.opened(key)
        matrix = opened.run.findings.matrix
        places = opened.map_places(self._config.vectors)
        return json_response(
            {
                "ids": opened.run.findings.ids,
                "names": names_of(opened.run.findings.found),
                "labels": ["".join(DIGITS[row]) for row in matrix],
                "x": places[:, 0].round(4).tolist(),
                "y": places[:, 1].round(4).tolist(),
                "features": ordered(opened.correlations),
                "examples": example_order(matrix),
                "media": opened.media if opened.pictured else "",
            }
        )

    @for_staff("GET /runs/{key}/structure")
    def structure(self, visitor: Visitor, key: Key) -> Response:
        opened = self.opened(key)
        names = names_of(opened.run.findings.found)
        return self.render(
            "structure.html",
            visitor,
            place=finished_place(opened),
            names=names,
            tree=opened.tree,
            together=strongest(opened.correlations),
            heat=heat_map(opened.correlations, names) if len(names) > 1 else "",
        )

    @for_staff("GET /runs/{key}/settings")
    def settings(self, visitor: Visitor, key: Key) -> Response:
        if self._run_catalog.folder(key, RUN_JSON) is None:
            return self._unfinished_settings(visitor, key)
        opened = self.opened(key)
        findings, summary = opened.run.findings, opened.run.summary
        return self.render(
            "settings.html",
            visitor,
            place=finished_place(opened),
            settings=_written(summary.settings),
            summary=summary,
            checked=checked_by_people(findings.found).sentences(),
            unused=len(unused_corrections(findings, opened.run.corrections)),
            log=opened.run.log[::-1],
            seen=opened.changes,
            stopped=STOPPED,
        )

    def _unfinished_settings(self, visitor: RequestContext, key: str) -> Response:
        folder = self._run_catalog.folder(key, LIVE)
        if folder is None:
            raise HTTPException(404)
        live = LiveRun(folder / LIVE)
        place = unfinished_place(key, folder.name, live.begun, live.state, "images")
        settings = _written(live.begun.get("settings", {}))
        return self.render(
            "settings.html", visitor, place=place, settings=settings, summary=None, checked=[], unused=0, log=[]
        )

    @for_staff("POST /runs/{key}/change")
    def change(self, visitor: Visitor, key: Key) -> Response:
        """Make a change that asks nothing; show what another one keeps, asks and costs, until it is confirmed."""
        opened, command = self.opened(key), command_of(visitor)
        try:
            step = self._config.curate(opened.run, command)
            if not step.done and not step.calls and not step.usd and not step.unasked:
                step = self._config.curate(opened.run, _confirmed(command))
        except EditRefused as refused:
            status = 409 if refused.stale else 422
            return self._features(visitor, key, visitor.form.value("name"), "", problem=str(refused), status=status)
        if step.done:
            return self._changed(key, command)
        return self._asked(visitor, opened, command, step)

    def _asked(
        self, visitor: RequestContext, opened: OpenRun, command: CurationCommand, step: CurationStep
    ) -> Response:
        place = finished_place(opened)
        return self.render("change.html", visitor, place=place, run=opened, command=command, step=step)

    def _changed(self, key: str, command: CurationCommand) -> Response:
        """To the card that the change is about, if there is one still, with the change to take back."""
        now = self.opened(key)
        names = [command.into, *command.names[::-1]] if command.action in ("merge", "rename") else command.names
        there = set(names_of(now.run.findings.found))
        shown = next((name for name in names if name in there), "")
        return RedirectResponse(_address(key, shown, changed=0 if command.action == "undo" else now.changes), 303)

    def _features(
        self,
        visitor: RequestContext,
        key: str,
        feature: str,
        sort: str,
        *,
        changed: int = 0,
        corrected: int = 0,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        opened = self.opened(key)
        findings = opened.run.findings
        sort = sort if sort in SORTS else "split"
        rows = sorted(opened.outlines, key=SORTS[sort][1])
        common = [card for card in rows if opened.marks[card["order"] - 1][0]]
        shown = [*common, *(card for card in rows if not opened.marks[card["order"] - 1][0])]
        card = next((card for card in shown if card["found"].name == feature), shown[0] if shown else None)
        log, corrections = opened.run.log, opened.run.corrections
        return self.render(
            "features.html",
            visitor,
            status,
            place=finished_place(opened),
            rows=shown,
            common=len(common),
            card=self._card(opened, card, shown) if card else None,
            examples=len(findings.ids),
            sort=sort,
            sorts={name: words for name, (words, _) in SORTS.items()},
            seen=opened.changes,
            corrections=len(corrections),
            last_change=log[-1] if log and changed == len(log) else None,
            last_correction=corrections[-1] if corrections and corrected == len(corrections) else None,
            before=_before(corrections),
            problem=problem,
        )

    def _card(self, opened: OpenRun, card: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
        findings, number = opened.run.findings, card["order"] - 1
        found, place = findings.found[number], rows.index(card)
        scores, row = scores_of(found), opened.correlations[number]

        def side(label: int) -> list[ExampleTile]:
            chosen = np.flatnonzero(found.labels == label)
            nearest = chosen[np.argsort(-scores[chosen], kind="stable")][:SIDE]
            return [opened.show(int(example), found) for example in nearest]

        others = [int(other) for other in np.argsort(-np.abs(row)) if other != number and abs(row[other]) >= CLEARLY]
        node = next((node for node in opened.tree.nodes if node.feature == number), None)
        return {
            **card,
            **detailed(findings, number, opened.show, np.array(sorted(opened.places), np.intp)),
            "yes_tiles": side(1),
            "no_tiles": side(0),
            "unknown_tiles": side(UNKNOWN) if card["unknown"] else [],
            "before": rows[place - 1]["found"].name if place else "",
            "after": rows[place + 1]["found"].name if place + 1 < len(rows) else "",
            "related": [(findings.found[other].name, float(row[other])) for other in others[:RELATED]],
            "below": [(child.name, child.positives) for child in node.children] if node else [],
        }


def command_of(visitor: RequestContext) -> CurationCommand:
    """The form of a change; what is missing or wrong is reported by whoever plans it."""
    form = visitor.form
    action = form.value("action")
    texts: dict[str, Callable[[], list[str]]] = {
        "rename": lambda: [form.value("name"), form.value("to")],
        "split": lambda: [form.value("name"), *(line for line in form.value("parts").splitlines() if line.strip())],
        "define": lambda: [form.value("name"), form.value("definition")],
        "undo": list,
    }
    return CurationCommand(
        action=action,
        names=[text.strip() for text in texts.get(action, lambda: form.all("name"))()],
        by=visitor.who.name,
        seen=(form.numbers("seen") or [0])[0],
        into=form.value("into").strip() or None,
        keep=form.value("keep") == "1",
        ask=form.value("ask") != "0",
        budget=form.value("budget").strip() or None,
        may_spend=visitor.role == OWNER,
        confirmed=form.value("confirmed") == "1",
    )


def _confirmed(command: CurationCommand) -> CurationCommand:
    return replace(command, confirmed=True)


def _address(key: str, feature: str, **said: int) -> str:
    query = urlencode({"feature": feature} | {name: number for name, number in said.items() if number})
    return f"/runs/{key}?{query}"


def _written(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Those that were set."""
    return [
        (name.replace("_", " "), written(value))
        for name, value in settings.items()
        if name not in PRIVATE and value not in (None, "", [], {})
    ]


def _before(corrections: Sequence[Correction]) -> str:
    """The label that takes back the last correction: what a person had said before, or none."""
    if not corrections:
        return ""
    last = corrections[-1]
    same = (one for one in corrections[-2::-1] if (one.example, one.feature) == (last.example, last.feature))
    earlier = next(same, None)
    return "clear" if earlier is None or earlier.label is None else "yes" if earlier.label else "no"
