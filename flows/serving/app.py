"""The studio: serve run folders, the queue and all that is done with them as one application."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from twothirds.flows.discover.commands import CommandProblem
from twothirds.flows.errors import UsageError
from twothirds.flows.reviewing.page import ADDRESS, DAY, PageSettings, link_of, serve_app
from twothirds.flows.runs import CurationRequest, curate, export
from twothirds.flows.serving.forms import composed, form_fields, known_datasets, oracle_forms
from twothirds.flows.serving.process import forecast, form_settings, goes_on, launch, printed_by
from twothirds.flows.serving.steer import RunOver, enter_command, settings_again
from twothirds.flows.settings import Environment, account_name
from twothirds.models import MICRO, OracleError, in_usd
from twothirds.models.contrastive import find_stored
from twothirds.models.prompting import clean
from twothirds.reports import Run
from twothirds.reports.curation import StaleEdit
from twothirds.reports.run import RunError
from twothirds.sources import DatasetError
from twothirds.store import Store, StoreError, render
from twothirds.store.review import ADMIN, REVIEWER
from twothirds.studio.app import create_studio
from twothirds.studio.config import METRICS_PASSWORD, CurationCommand, CurationStep, EditRefused, Starter, StudioConfig

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_NAME = 80
DEFAULT = ("runs", "enriched")  # where commands write if nothing else is said


@dataclass(frozen=True)
class StudioSettings:
    roots: tuple[str, ...] = DEFAULT
    page: PageSettings = field(default_factory=PageSettings)
    days: float = 14.0  # that invitations last

    @property
    def folders(self) -> tuple[Path, ...]:
        """Raises UsageError for one that is not there, unless it is a default one, which the first run makes."""
        found = tuple(Path(root) for root in self.roots)
        missing = next((file for file in found if not file.is_dir() and self.roots != DEFAULT), None)
        if missing is not None:
            raise UsageError(f"{missing} is not a folder: give folders in which runs are")
        return found


def make_studio(store: Store, settings: StudioSettings, store_url: str = "") -> FastAPI:
    """`store_url` is where runs that are started here keep their answers."""
    review = settings.page.config()

    def invite(name: str, role: str) -> str:
        try:
            return studio_link(store, name, role, settings)
        except (UsageError, StoreError) as error:
            raise EditRefused(str(error)) from None

    embeddings = Environment.read().cache / "embeddings"
    config = StudioConfig(
        starter=make_starter(store_url, settings.folders),
        vectors=lambda digests: find_stored(embeddings, digests),
        roots=settings.folders,
        curate=planned_or_made,
        steer=steered,
        export=exported,
        invite=invite,
        states=store.runs.overview,
        costs=store.costs.lines,
        nights=store.costs.nights,
        metrics=lambda: render(store.metrics.samples()),
        metrics_password=SecretStr(os.environ.get(METRICS_PASSWORD, "")),
    )
    return create_studio(store.queue, review, config)


def make_starter(store: str, roots: Sequence[Path]) -> Starter:
    """`store` is where answers are kept; results go below the first of the folders."""
    here = [root.resolve() for root in roots]
    return Starter(
        fields=form_fields,
        oracles=oracle_forms,
        compose=composed,
        datasets=lambda: known_datasets(here),
        plan=lambda command, values: forecast(command, lambda: form_settings(command, values, store, here)),
        begin=lambda command, values: launch(command, lambda: form_settings(command, values, store, here)),
        printed=printed_by,
        goes_on=goes_on,
        plan_again=lambda folder, values: forecast("discover", lambda: settings_again(folder, values, store)),
        begin_again=lambda folder, values: launch("discover", lambda: settings_again(folder, values, store)),
    )


def steered(
    folder: Path, fields: Mapping[str, Any], by: str, ids: Callable[[], Collection[str] | None], may_spend: bool
) -> str:
    """Enters a command. Raises EditRefused with the field that is wrong."""
    try:
        return enter_command(folder, fields, by, ids, may_spend=may_spend)
    except CommandProblem as problem:
        raise EditRefused(str(problem), stale=isinstance(problem, RunOver), field=problem.field) from None


def exported(run: Run, name: str) -> Path:
    """One file in the run's folder of exports, as `twothirds export` writes it. Raises EditRefused."""
    try:
        return export(run.folder, [name])[0]
    except (RunError, DatasetError, OSError) as error:
        raise EditRefused(str(error)) from None


def studio_link(store: Store, name: str, role: str, settings: StudioSettings) -> str:
    """The personal link of a new invitation: to the studio, or for a reviewer to the questions."""
    called = clean(name)
    if not called or len(called) > MAX_NAME:
        raise UsageError(f"{name!r} is empty or longer than {MAX_NAME} characters: give the name of a person")
    invitation = store.queue.people.invite(called, role, settings.days * DAY)
    link = link_of(store.queue, invitation, settings.page.address)
    return link if role == REVIEWER else link.replace("/i/", "/s/", 1)


def owner_link(store: Store, settings: StudioSettings) -> str:
    return studio_link(store, account_name() or "owner", ADMIN, settings)


def serve_studio(store: Store, settings: StudioSettings, store_url: str) -> None:
    """Until it is interrupted."""
    store.queue.people.remember(ADDRESS, settings.page.address)
    serve_app(store, settings.page, make_studio(store, settings, store_url))


def planned_or_made(run: Run, command: CurationCommand) -> CurationStep:
    """What a change keeps and costs, or its being made. Raises EditRefused with the message for the person."""
    fresh = Run(run.folder)
    request, unasked = CurationRequest(**asdict(command)), ""
    try:
        try:
            if command.confirmed and command.action != "undo":
                refuse_spending(curate(fresh, replace(request, confirmed=False)).data["usd"], command)
            made = curate(fresh, request)
        except (RunError, OracleError, DatasetError, StoreError) as error:
            if command.confirmed or not command.ask or isinstance(error, StaleEdit):
                raise
            made, unasked = curate(fresh, replace(request, ask=False)), str(error)
    except StaleEdit as stale:
        raise EditRefused(str(stale), stale=True) from None
    except (RunError, UsageError, OracleError, DatasetError, StoreError) as error:
        raise EditRefused(str(error)) from None
    done = command.action == "undo" or bool(made.data["done"])
    lines = [line for line in made.lines if not line.startswith(("nothing was changed", "done:"))]
    planned = made.data if command.action != "undo" else {}
    return CurationStep(lines, planned.get("usd", 0.0), planned.get("calls", 0), done, unasked)


def refuse_spending(usd: float, command: CurationCommand) -> None:
    """Raises EditRefused for a change that costs money, where whoever wants it may not spend, or gives no budget."""
    if not usd:
        return
    price = f"this change asks labels again, for {in_usd(round(usd * MICRO), at_most=True)} at most"
    if not command.may_spend:
        raise EditRefused(f"{price}, and only the owner spends: ask the owner to make it, or leave those labels empty")
    if command.budget is None:
        raise EditRefused(f"{price}: say what it may cost, or leave those labels empty")
