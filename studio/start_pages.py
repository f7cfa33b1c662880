"""Start a discovery, an enrichment or a comparison: a form that the settings make, the estimate beside it, the run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

from cachetools import LRUCache
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from twothirds.reports.compare import COMPARISON_JSON
from twothirds.reports.versions import SUMMARY
from twothirds.sources import Dataset, DatasetError, load_dataset
from twothirds.studio.catalog import key_of
from twothirds.studio.config import EditRefused, FormField, StartPlan
from twothirds.studio.pages import OWNER, Key, Row, Studio, StudioPages, for_staff
from twothirds.studio.review import RequestContext, Visitor, for_role

MOST_SUGGESTED = 50
PREVIEWED, OPEN_DATASETS = 12, 4
STARTED = "start.json"
RESULTS = {SUMMARY: "/tables/", COMPARISON_JSON: "/comparisons/"}  # the file that is written last, and its page
TITLES = {"discover": "New discovery", "enrich": "Enrich a data set", "compare": "Compare oracles"}
Command = Literal["discover", "enrich", "compare"]
Values = dict[str, str]


class StartPages(StudioPages):
    """For the owner alone: a run reads files of this machine and spends money. The Enter key never starts one: the
    first button of the form estimates."""

    def __init__(self, studio: Studio) -> None:
        super().__init__(studio)
        self._starter = studio.config.starter
        self._datasets: LRUCache[str, Dataset] = LRUCache(OPEN_DATASETS)
        self._lock = threading.Lock()
        self._fields = {command: self._starter.fields(command) for command in TITLES}
        self._oracles = {oracle.kind: oracle for oracle in self._starter.oracles()}

    @for_role("GET /start", OWNER)
    def first(self, visitor: Visitor) -> Response:
        del visitor
        return RedirectResponse("/start/discover", 303)

    @for_role("GET /start/{command}", OWNER)
    def form(self, visitor: Visitor, command: Command, table: str = "") -> Response:
        """With the settings of a table's last night, where one is named."""
        values = {field.name: field.default for field in self._fields[command]}
        known = next((entry for entry in self._others.tables() if entry.key == table), None)
        if known is not None and command == "enrich":
            last = {name: value for name, value in known.summary.settings.items() if name in values}
            values |= {name: _text(value) for name, value in last.items()} | {"out": str(known.folder), "budget": ""}
        return self._form(visitor, command, values)

    @for_role("POST /start/{command}", OWNER)
    def start(self, visitor: Visitor, command: Command) -> Response:
        """The estimate; or the run, once somebody has seen that and agreed."""
        fields = self._fields[command]
        values = {field.name: visitor.form.value(field.name) for field in fields}
        values["budget"] = values["budget"] or visitor.form.value("agreed")
        self._take_oracle(visitor, fields, values)
        if visitor.form.value("add") == "1":
            return self._form(visitor, command, values)
        try:
            if visitor.form.value("confirmed") == "1":
                key = key_of(self._starter.begin(command, values).resolve())
                return RedirectResponse(f"/runs/{key}/discovery" if command == "discover" else f"/started/{key}", 303)
            return self._form(visitor, command, values, plan=self._starter.plan(command, values))
        except EditRefused as refused:
            return self._form(visitor, command, values, problem=str(refused), status=422)

    @for_role("GET /look", OWNER)
    def look(self, visitor: Visitor, dataset: str = "") -> Response:
        """What a data set holds, before anything is asked about it."""
        found, problem = None, ""
        try:
            found = self._dataset(dataset) if dataset else None
        except DatasetError as error:
            problem = str(error)
        examples = found.examples[:PREVIEWED] if found else ()
        shown = [(row, example) for row, example in enumerate(examples)]
        return self.render("preview.html", visitor, name=dataset, dataset=found, shown=shown, problem=problem)

    @for_role("GET /look/{row}", OWNER)
    def look_at(self, visitor: Visitor, row: Row, dataset: str = "") -> Response:
        del visitor
        try:
            examples = self._dataset(dataset).examples
        except DatasetError:
            raise HTTPException(404) from None
        return self.picture(examples[row] if row < len(examples) else None, "small-still")

    def _dataset(self, name: str) -> Dataset:
        with self._lock:
            if name not in self._datasets:
                self._datasets[name] = load_dataset(name)
            return self._datasets[name]

    @for_staff("GET /started/{key}")
    def started(self, visitor: Visitor, key: Key) -> Response:
        """What became of an enrichment or a comparison: its page once there is one."""
        folder = self._run_catalog.folder(key, STARTED)
        if folder is None:
            raise HTTPException(404)
        runs = self._starter.goes_on(folder)
        address = None if runs else _result_of(folder)
        if address is not None:
            return RedirectResponse(f"{address}{key}", 303)
        printed = self._starter.printed(folder)
        return self.render("started.html", visitor, folder=folder.name, printed=printed, runs=runs)

    def _take_oracle(self, visitor: RequestContext, fields: list[FormField], values: Values) -> None:
        """An oracle that is put together from its kind and parameters goes before one that is written."""
        kind, form = self._oracles.get(visitor.form.value("oracle_kind")), visitor.form
        wanted = next((field for field in fields if field.name in ("oracle", "oracles")), None)
        if kind is None or wanted is None:
            return
        parameters = {parameter.name: form.value(f"{kind.kind}.{parameter.name}") for parameter in kind.parameters}
        made = self._starter.compose(kind.kind, form.value(f"{kind.kind}:"), parameters)
        written = [line for line in values[wanted.name].splitlines() if line.strip()] if wanted.many else []
        values[wanted.name] = "\n".join([*(line for line in written if line != made), made])

    def _form(
        self,
        visitor: RequestContext,
        command: Command,
        values: Values,
        *,
        plan: StartPlan | None = None,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        entries, tables = self._run_catalog.entries(), self._others.tables()
        datasets = [*self._starter.datasets(), *(str(entry.summary.settings["dataset"]) for entry in entries)]
        suggested = {
            "dataset": datasets,
            "oracle": ["contrastive", "openai:gpt-4o-mini", "human", "simulated", *(entry.oracle for entry in entries)],
            "features": [str(entry.folder) for entry in entries],
            "out": [str(table.folder) for table in tables],
        }
        return self.render(
            "start.html",
            visitor,
            status,
            command=command,
            titles=TITLES,
            tabs=[(name, f"/start/{name}", "", "") for name in TITLES],
            fields=self._fields[command],
            values=values,
            suggested={name: list(dict.fromkeys(found))[:MOST_SUGGESTED] for name, found in suggested.items()},
            oracles=list(self._oracles.values()),
            written=_parameters_of(values.get("oracle", "")),
            kind=visitor.form.value("oracle_kind"),
            plan=plan,
            problem=problem,
        )


def _result_of(folder: Path) -> str | None:
    """The first part of the address of what a run has left, if that is newer than its start."""
    began = (folder / STARTED).stat().st_mtime
    for name, address in RESULTS.items():
        if (folder / name).is_file() and (folder / name).stat().st_mtime >= began:
            return address
    return None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameters_of(oracle: str) -> dict[str, str]:
    """Of an oracle that is written, by the names that their fields have in the form."""
    head, _, query = oracle.partition("?")
    kind, _, model = head.partition(":")
    try:
        pairs = parse_qsl(query, max_num_fields=100)
    except ValueError:
        pairs = []
    return {f"{kind}.{name}": value for name, value in pairs} | {f"{kind}:": model}
