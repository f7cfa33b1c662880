"""Export a run, write its report, and make the runs that its analysis of a target is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twothirds.flows.discover.settings import OF_THE_STRATEGY, DiscoverSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.settings import read_usd
from twothirds.models import OracleError, in_usd
from twothirds.reports import Run
from twothirds.reports.analysis import read_column
from twothirds.reports.export import Marks, export_run, export_table, formats_named
from twothirds.reports.page import UNGUIDED, Page, check_tagging, dataset_of, lacks_unguided, write_page
from twothirds.reports.run import RUN_JSON
from twothirds.reports.versions import SUMMARY as TABLE_JSON
from twothirds.reports.versions import ListedTable
from twothirds.sources import DatasetError

if TYPE_CHECKING:
    from twothirds.flows.estimate import Estimate


def export(
    folder: Path,
    formats: Sequence[str],
    *,
    dataset: str | None = None,
    out: Path | None = None,
    marks: Marks = Marks(),  # noqa: B008  # it is frozen
    events: Events = SILENT,
) -> list[Path]:
    """The files and folders written, of a run or of a table that enrich wrote. Formats that do not fit are left out of
    `all`."""
    formats_named(formats)
    is_table = (folder / TABLE_JSON).exists() and not (folder / RUN_JSON).exists()
    if is_table and marks != Marks():
        raise UsageError("--only, --without and --with are for runs: a table has no marks of features; leave them out")
    run = None if is_table else Run(folder)
    with events.waiting("reading the data set"):
        read, problem = dataset_of(run.summary.settings if run else ListedTable.read(folder).settings, dataset)
    if problem:
        events.say(problem)
    with events.waiting("writing the exports"):
        if run is None:
            return export_table(folder, formats, read, out)
        return export_run(run, formats, read, out, marks=marks, say=events.say)


CONTROL = {"target_g": None, "nones": None, "retry_unusable": False, "replace": True}  # settings of every control
TAGS_PER_FEATURE = 4  # names repeat: so many questions bring about as many tags as there are features


def report(
    run: Run,
    *,
    dataset: str | None = None,
    out: Path | None = None,
    target: str | None = None,
    tagging: Run | None = None,
    budget: str | None = None,
    by: str | None = None,
    against: Run | None = None,
    plain: bool = False,
    events: Events = SILENT,
) -> Page:
    allowed = budget_of(budget)
    read, _ = dataset_of(run.summary.settings, dataset)
    if tagging is not None:
        check_tagging(run, tagging)
    if target is not None:
        read_column(read, target, run.findings.ids)  # what is wrong with it is said before anything is asked
        if lacks_unguided(run.folder, run.summary, target):
            allowed = _left(allowed, unguided_control(run, dataset, allowed, events))
        tagging = tagging or tagging_control(run, dataset, allowed, events)
    with events.waiting("writing the report"):
        return write_page(
            run,
            dataset=read or dataset,
            path=out,
            target=target,
            tagging=tagging,
            by=by,
            against=against,
            plain=plain,
        )


def tagging_control(run: Run, dataset: str | None, budget: Decimal | None, events: Events) -> Run | None:
    """A tagging run with the same oracle, votes and seed, in the run's folder: made if it is free, or as far as the
    budget goes; else None and a line that says how to get it."""
    settings = _tagging_settings(run, dataset, budget)
    return _control("tagging", settings, events, ", or give a tagging run with --tagging")


def unguided_control(run: Run, dataset: str | None, budget: Decimal | None, events: Events) -> Run | None:
    """As many questions as the run's that do not apply its target, on the same terms."""
    return _control("unguided", _unguided_settings(run, dataset, budget), events)


def _control(name: str, settings: DiscoverSettings, events: Events, instead: str = "") -> Run | None:
    from twothirds.flows.discover.forecast import forecast_discovery
    from twothirds.flows.discover.preparation import prepare
    from twothirds.flows.discover.run import run_discovery

    try:
        prepared = prepare(settings, events)
        expected = forecast_discovery(prepared)
        if settings.budget is None and expected.most_left:
            likely, most = (in_usd(amount, 2, at_most=True) for amount in (expected.left, expected.most_left))
            events.say(
                f"no {name} control: it will likely cost {likely}, at most {most}; allow it with --budget "
                f"{most.removesuffix(' USD')}{instead}"
            )
            return None
        outcome = run_discovery(prepared, run_id=str(uuid4()))
    except (OracleError, DatasetError) as error:
        events.say(f"no {name} control: {error}")
        return None
    if not outcome.progress.findings:
        events.say(f"no {name} control: {outcome.progress.message or 'no feature was found'}")
        return None
    return Run(prepared.folder)


def forecast_control(run: Run, target: str, dataset: str | None, events: Events = SILENT) -> Estimate:
    """What the controls of a report will cost together. Nothing is sent."""
    from twothirds.flows.discover.forecast import forecast_discovery
    from twothirds.flows.discover.preparation import prepare

    read_column(dataset_of(run.summary.settings, dataset)[0], target, run.findings.ids)
    wanted = [_tagging_settings(run, dataset, None)]
    if lacks_unguided(run.folder, run.summary, target):
        wanted.append(_unguided_settings(run, dataset, None))
    prepared = [prepare(settings, events) for settings in wanted]
    with events.waiting("working out the price"):
        return reduce(add, [forecast_discovery(control) for control in prepared])


def _left(budget: Decimal | None, made: Run | None) -> Decimal | None:
    """Of the budget, for the control after the one made; None if nothing is."""
    left = budget - Decimal(str(made.summary.total_usd or 0)) if budget is not None and made is not None else budget
    return left if left is not None and left > 0 else None


def _unguided_settings(run: Run, dataset: str | None, budget: Decimal | None) -> DiscoverSettings:
    out = str(run.folder / UNGUIDED)
    return _changed(run, dataset, {"unguided": True, "queries": run.summary.queries, "out": out, "budget": budget})


def _changed(run: Run, dataset: str | None, wanted: dict[str, Any]) -> DiscoverSettings:
    place = {"dataset": dataset} if dataset else {}
    return DiscoverSettings.model_validate(run.summary.settings | CONTROL | {"per": None} | wanted | place)


def _tagging_settings(run: Run, dataset: str | None, budget: Decimal | None) -> DiscoverSettings:
    asked = run.summary.settings
    wanted = {
        "strategy": "tagging",
        "queries": max(1, min(TAGS_PER_FEATURE * len(run.findings.found), run.summary.dataset.compared)),
        "out": str(run.folder / "tagging"),
        "budget": budget,
        **dict.fromkeys(OF_THE_STRATEGY),
        "voters": 1,
        "label_rest": bool(asked.get("label_rest")),
    }
    return _changed(run, dataset, wanted)


def budget_of(text: str | None) -> Decimal | None:
    """What --budget allows; raises UsageError."""
    if text is None:
        return None
    amount = read_usd(text, "--budget")
    if amount <= 0:
        raise UsageError(f"--budget {text!r} must be more than 0: leave it out to spend nothing")
    return amount.quantize(Decimal("0.000001"))


def describe(page: Page) -> dict[str, Any]:
    """For --json: where the page is, and the figures of its analyses."""
    return {
        "report": str(page.path),
        "target": asdict(page.target) if page.target else None,
        "groups": asdict(page.groups) if page.groups else None,
    }


def page_lines(page: Page) -> list[str]:
    """The same in words, for people."""
    lines: list[str] = []
    if page.target:
        lines.append(f"{page.target.column}: {page.target.measure} on {page.target.examples} examples")
        lines += [
            f"  {estimate.value:5.2f} ({estimate.low:.2f} to {estimate.high:.2f}) {rater.name}"
            for rater in page.target.raters
            for estimate in [rater.estimate]
        ]
        lines.append("  carried by " + ", ".join(carrier.name for carrier in page.target.carriers[:5]))
    if page.groups:
        different = [difference for difference in page.groups.differences if difference.differs]
        lines.append(f"{page.groups.by}: {len(different)} of {page.groups.tests} comparisons differ at 5 %, corrected")
        lines += [
            f"  {difference.name}: {difference.share:.0%} of {difference.group}, {difference.share_other:.0%} of "
            f"{difference.other} ({difference.low:+.0%} to {difference.high:+.0%})"
            for difference in different[:10]
        ]
    return [*lines, f"written to {page.path}"]
