"""The commands discover, enrich, compare, steer, server and oracles."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from twothirds.discovery import DIFFERENCE
from twothirds.flows.cli.errors import status_of
from twothirds.flows.cli.money import ask_on_terminal
from twothirds.flows.cli.options import PLAIN, Output, Paying, action, command_group, option, takes
from twothirds.flows.cli.terminal import as_json, messages, results, terminal_events
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.oracle_specs import KINDS, OracleKind
from twothirds.flows.prefect_api.connection import starting_prefect
from twothirds.flows.settings import account_name, micro_of
from twothirds.models import in_usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twothirds.reports import Run
    from twothirds.reports.run import RunSummary


@takes(DiscoverSettings, positional="dataset", output=Paying)
def discover(settings: DiscoverSettings, output: Paying) -> int:
    with starting_prefect():
        from twothirds.flows.discover.preparation import prepare

        prepared = prepare(settings, terminal_events(output.log))
        prepared.check_oracle()
        from twothirds.flows.discover.forecast import forecast_discovery
        from twothirds.flows.estimate import agreed_budget

        budget = agreed_budget(
            lambda: forecast_discovery(prepared),
            budget=settings.budget,
            oracles=(settings.oracle, settings.labeller, settings.people, settings.cheap),
            agree=ask_on_terminal(output.yes, prepared.events),
            events=prepared.events,
        )
    from twothirds.flows.discover.flow import run_prepared

    run = run_prepared(prepared.with_budget(budget))
    if output.json:
        print(as_json(run.summary.to_json()))
    else:
        _print_features(run)
    return status_of(run.summary.stopped_because)


@takes(EnrichSettings, positional="dataset", output=Paying)
def enrich(settings: EnrichSettings, output: Paying) -> int:
    with starting_prefect():
        from twothirds.flows.enrich.checks import check, check_oracles

        folder, _ = check(settings)
        events = terminal_events(output.log)
        check_oracles(settings, events)
        from twothirds.flows.enrich.flow import run_enrichment
        from twothirds.flows.enrich.forecast import forecast_enrichment
        from twothirds.flows.estimate import agreed_budget

        budget = agreed_budget(
            lambda: forecast_enrichment(settings, events),
            budget=settings.budget,
            oracles=(settings.oracle, settings.cheap),
            agree=ask_on_terminal(output.yes, events),
            events=events,
        )
    summary = run_enrichment(settings.with_budget(budget), events)
    output.print(summary.to_json(), [*summary.lines(), f"written to {folder}"])
    return status_of(summary.stopped_because)


@takes(CompareSettings, positional="dataset", output=Paying)
def compare(settings: CompareSettings, output: Paying) -> int:
    with starting_prefect():
        from twothirds.flows.compare.preparation import prepare_comparison

        prepared = prepare_comparison(settings, terminal_events(output.log))
        prepared.check_oracles()
        from twothirds.flows.compare.forecast import forecast_comparison  # which imports Prefect
        from twothirds.flows.estimate import agreed_budget

        budget = agreed_budget(
            lambda: forecast_comparison(prepared),
            budget=settings.budget,
            oracles=settings.oracles,
            agree=ask_on_terminal(output.yes, prepared.events),
            events=prepared.events,
        )
    from twothirds.flows.compare.flow import run_prepared

    result = run_prepared(prepared.with_budget(budget))
    if output.json:
        print(as_json(json.loads((prepared.folder / "comparison.json").read_text(encoding="utf-8"))))
    else:
        _print_comparison(result)
    return status_of(result["stopped_because"])


server = command_group("server", "server --port 4200")


@action(server, "server serve --port 4200")
@server.default
def serve(
    *,
    port: Annotated[int, option("PORT", "port to listen at")] = 4200,
    output: Output = PLAIN,  # noqa: ARG001
) -> None:
    """Keep a Prefect server running until Ctrl-C (the default)."""
    from twothirds.flows.prefect_api.environment import prefect_environment, state_folder
    from twothirds.flows.prefect_api.servers import PASSWORD, keep_server

    os.environ.update(prefect_environment())
    with keep_server(state_folder(), port) as running:
        messages().print(f"Prefect answers at {running.url}; runs from this account use it. Ctrl-C ends it.")
        messages().print(
            f"In a browser {running.url.removesuffix('/api')} asks for the password in {state_folder() / PASSWORD}; "
            "workers and `prefect` need it in PREFECT_API_AUTH_STRING.",
            soft_wrap=True,
        )
        signal.pause()


@action(server, "server stop")
def stop(*, output: Output = PLAIN) -> None:
    """Stop the server that runs have left in the background; it ends by itself too (TWOTHIRDS_SERVER_MINUTES)."""
    from twothirds.flows.prefect_api.background import stop_background_servers
    from twothirds.flows.prefect_api.environment import state_folder

    stopped, used = stop_background_servers(state_folder())
    lines = [f"stopped {url}" for url in stopped] + [f"{url} goes on: a run uses it" for url in used]
    output.print({"stopped": stopped, "used": used}, lines or ["no Prefect server runs in the background"])


def worker(
    *,
    pool: Annotated[str, option("POOL", "the work pool whose runs it starts")] = "twothirds",
    output: Output = PLAIN,  # noqa: ARG001
) -> None:
    """Start a Prefect worker in this clone, with the address and password of the server that is kept here."""
    from twothirds.flows.prefect_api.environment import prefect_environment, state_folder
    from twothirds.flows.prefect_api.servers import worker_environment

    clone = Path(__file__).resolve().parents[2]
    os.environ.update(prefect_environment() | worker_environment(state_folder(), clone))
    store = "the store of TWOTHIRDS_STORE" if os.environ.get("TWOTHIRDS_STORE") else "this account's own store"
    messages().print(
        f"a worker for the pool {pool} of {os.environ['PREFECT_API_URL']}: runs start in "
        f"{os.environ['TWOTHIRDS_CLONE']}, answers go to {store}. Ctrl-C ends it.",
        soft_wrap=True,
    )
    os.execv(sys.executable, [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool])  # noqa: S606


def _print_features(run: Run) -> None:
    summary, out = run.summary, results()
    table = Table(title=f"{summary.dataset.name}: features in order of discovery", title_justify="left")
    sampled = f", {summary.of_sampled}" if summary.of_sampled else ""
    for heading in ("#", "feature", "from", "positives", f"interesting{sampled}", f"distinct{sampled}"):
        table.add_column(heading, justify="right" if heading in ("#", "positives") else "left")
    for row in run.features.itertuples():
        marks = ["yes" if bool(value) else "no" for value in (row.interesting, row.distinct)]
        table.add_row(str(row.order), str(row.name), str(row.question), f"{row.positives}/{row.labelled}", *marks)
    out.print(table)
    for row in run.features.itertuples():
        if row.look:
            out.print(f"{row.name} is not labelled in full ({row.look!s})")
        if row.twin:
            out.print(f"{row.name}: {row.twin!s}, by what it selects, by its words or by what the oracle says of both")
    for line in _result_lines(summary):
        out.print(line, soft_wrap=True)
    out.print(f"written to {run.folder}", soft_wrap=True)


def _result_lines(summary: RunSummary) -> Iterator[str]:
    from twothirds.studio.web import plural

    rare = f" (--rare {summary.rare:g})" if summary.rare != DIFFERENCE else ""
    sampled = f" (both {summary.of_sampled})" if summary.of_sampled else ""
    yield (
        f"{plural(summary.features, 'feature')}, {summary.interesting_distinct} interesting and distinct{rare}, from "
        f"{summary.queries} {'query' if summary.queries == 1 else 'queries'}"
        + (f", {summary.repeated_names} named again" if summary.repeated_names else "")
        + f"; g {summary.g:.3f}{sampled}; stopped "
        f"because of {summary.stopped_because}"
    )
    if summary.given:
        yield str(summary.given)
    yield from _lines_of_questions(summary)
    if summary.target:
        yield str(summary.target)
    if truth := summary.truth:
        accuracy = truth.mean_balanced_accuracy
        yield f"truth: {truth.matched} of {truth.of} attributes matched" + (
            f", mean balanced accuracy {accuracy:.3f} (labels shuffled: {truth.by_chance:.3f})"
            if accuracy is not None
            else ""
        )
    yield from summary.notices
    booked = [f"{purpose} {in_usd(micro_of(usd))}" for purpose, usd in summary.booked_usd.items() if usd]
    yield (
        f"{plural(summary.paid_calls, 'question')} asked, {summary.cached_calls:,} from the store, "
        f"{in_usd(micro_of(summary.cost_usd))}; this run in all {in_usd(micro_of(summary.total_usd))}"
        + (f": {', '.join(booked)}" if booked else "")
    )


def _lines_of_questions(summary: RunSummary) -> list[str]:
    """What questions for several features brought, and which of these repeat one another."""
    from twothirds.studio.web import plural

    lines = []
    if found := summary.per_question:
        lines.append(f"{found.features:.1f} features per question, up to {found.most} asked for")
    if (same := summary.same) and same.features:
        lines.append(
            f"{plural(same.features, 'feature')} repeated in other words and not counted, by "
            f"{plural(same.asked, 'question')} for {in_usd(micro_of(same.usd))}; `features RUN duplicates` merges them"
        )
    return lines


def _print_comparison(result: dict[str, Any]) -> None:
    out = results()
    table = Table()
    for heading, cell in result["summary"][0].items():
        table.add_column(heading, justify="left" if isinstance(cell, str) else "right")
    for row in result["summary"]:
        table.add_row(*map(_shown, row.values()))
    out.print(table)
    for sentence in result["verdict"]:
        out.print(sentence)
    out.print(f"written to {result['page']}")


def _shown(cell: object) -> str:
    return f"{cell:,.4f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)


RunFolder = Annotated[str, option("RUN", "the folder of a discovery that runs")]
Name = Annotated[str, option("NAME", "a feature as it is called now")]

steer = command_group(
    "steer",
    "steer runs/faces veto 'photo quality'",
    usage="Usage: twothirds steer RUN COMMAND [WORDS…] [OPTIONS]",
)


def _steering(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    name = example.partition(" ")[0]
    usage = f"Usage: twothirds steer RUN {name} [WORDS…] [OPTIONS]"
    return action(steer, f"steer runs/faces {example}", name=name, usage=usage)


@_steering("stop")
def steer_stop(run: RunFolder, /, *, output: Output = PLAIN) -> None:
    """Stop after the question that is being asked, or before the next labels of the rest; the same command goes on."""
    _enter(run, output, "stop")


@_steering("veto 'photo quality'")
def steer_veto(run: RunFolder, name: Name, /, *, output: Output = PLAIN) -> None:
    """Drop a feature, and never name it again."""
    _enter(run, output, "veto", name=name)


@_steering("add 'pointed hat' --definition 'The hat has a point.'")
def steer_add(
    run: RunFolder,
    name: Name,
    /,
    *,
    definition: Annotated[str, option("TEXT", "what it means, as labels are asked by it")] = "",
    output: Output = PLAIN,
) -> None:
    """Add a feature of your own, labelled as any other."""
    _enter(run, output, "add", name=name, definition=definition)


@_steering("ask face-01.png face-07.png face-12.png")
def steer_ask(
    run: RunFolder, /, *examples: Annotated[str, option("ID", "three examples")], output: Output = PLAIN
) -> None:
    """Ask about three examples next."""
    _enter(run, output, "ask", examples=list(examples))


@_steering("budget 2.50")
def steer_budget(
    run: RunFolder, usd: Annotated[str, option("USD", "that it may cost in all")], /, *, output: Output = PLAIN
) -> None:
    """Raise or lower what it may cost in all."""
    _enter(run, output, "budget", usd=usd)


def _enter(run: str, output: Output, command: str, **fields: Any) -> None:
    from twothirds.flows.serving.steer import enter_command
    from twothirds.reports.run import LIVE, LiveRun
    from twothirds.sources import Columns, DatasetError, load_dataset

    folder = Path(run)

    def ids() -> set[str] | None:
        settings = LiveRun(folder / LIVE).begun.get("settings", {})
        try:
            return {example.id for example in load_dataset(str(settings.get("dataset")), Columns.of(settings)).examples}
        except DatasetError:
            return None

    answer = enter_command(folder, {"action": command, **fields}, account_name(), ids)
    output.print({"command": command, **fields, "said": answer}, [answer])


def oracles(kind: Annotated[str | None, option("KIND", "only this kind")] = None, /, *, output: Output = PLAIN) -> None:
    if kind is not None and kind not in KINDS:
        raise UsageError(f"unknown oracle {kind!r}: choose one of {', '.join(KINDS)}")
    chosen = {name: found for name, found in KINDS.items() if kind in (None, name)}
    if output.json:
        data = {
            name: {"form": found.form, "about": found.about, "parameters": list(map(asdict, found.parameters()))}
            for name, found in chosen.items()
        }
        print(as_json(data))
    else:
        _print_kinds(list(chosen.values()))


def _print_kinds(kinds: list[OracleKind]) -> None:
    out = results()
    for kind in kinds:
        out.print(f"{kind.form}: {kind.about}")
        table = Table(box=None, padding=(0, 2), header_style="")
        for heading in ("  parameter", "type", "default", "meaning"):
            table.add_column(heading)
        for parameter in kind.parameters():
            table.add_row(f"  {parameter.name}", parameter.type, parameter.default, parameter.about)
        out.print(table)
        out.print()
    out.print("parameters follow a ?, e.g. --oracle 'openai:gpt-4.1-nano?image_size=256&temperature=1'")
