"""The command line: parse, call a flow, print. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from flows.cli.compare import add_compare_command
from flows.cli.enrich import add_enrich_commands
from flows.cli.options import Parser, add_options, read_options
from flows.cli.review import add_review_commands
from flows.cli.runs import add_run_commands
from flows.cli.signals import Interruption
from flows.cli.store import add_store_command
from flows.cli.terminal import print_traceback
from flows.errors import UsageError

DONE, FAILED, BAD_INPUT, WAITING = 0, 1, 2, 75
SHOWN = 200  # characters of a path that an error line repeats
interruption = Interruption()

DISCOVER_EXAMPLE = "example: python -m flows discover datasets/faces --oracle simulated --queries 35 --votes 3"
ESTIMATE_EXAMPLE = "example: python -m flows estimate datasets/faces --oracle simulated?price=0.0001 --votes 5"
COSTS_EXAMPLE = "example: python -m flows costs --store sqlite:///answers.sqlite"
REPLICATE_EXAMPLE = "example: python -m flows replicate --quick --out replication"
SERVER_EXAMPLE = "example: python -m flows server --port 4200"


def build_parser() -> argparse.ArgumentParser:
    from flows.discover.settings import DiscoverSettings
    from flows.replicate import ReplicateSettings

    parser = Parser(prog="python -m flows", description="Discover named, labelled features in a data set.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(
        name: str, about: str, example: str, run: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about, epilog=example)
        made.add_argument("--json", action="store_true", help="print the result as JSON")
        made.add_argument("--debug", action="store_true", help="show the traceback of an error")
        made.set_defaults(run=run)
        return made

    add_options(
        command("discover", "discover features and label every example", DISCOVER_EXAMPLE, _discover),
        DiscoverSettings,
        positional="dataset",
    )
    add_options(
        command("estimate", "calls and USD of a discovery, before anything is spent", ESTIMATE_EXAMPLE, _estimate),
        DiscoverSettings,
        positional="dataset",
    )
    costs = command("costs", "what runs have cost, by oracle and kind of question", COSTS_EXAMPLE, _costs)
    costs.add_argument("which", nargs="?", metavar="RUN", help="a run folder, its name or its id (default: all)")
    costs.add_argument("--store", metavar="STORE", help="URL or path of the store")
    add_options(
        command("replicate", "test the paper's claims on simulated crowds", REPLICATE_EXAMPLE, _replicate),
        ReplicateSettings,
        positional="",
    )
    add_enrich_commands(command)
    add_compare_command(command)
    add_run_commands(command)
    add_review_commands(command)
    add_store_command(command)
    server = command("server", "keep a Prefect server running, so that runs start at once", SERVER_EXAMPLE, _server)
    server.add_argument("--port", type=int, default=4200, metavar="PORT", help="(default: 4200)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        arguments = build_parser().parse_args(argv)
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        interruption.end()
        return interruption.status
    except BrokenPipeError:
        return DONE
    except Exception as error:
        if "--debug" in argv:
            raise
        status, message = _explain(error)
        print(message if status == WAITING else f"error: {message}", file=sys.stderr)
        return status


def _explain(error: Exception) -> tuple[int, str]:
    from discovery.questions import StrategyError
    from flows.prefect_api import ServerError
    from flows.settings import Environment
    from models.oracle import AnswersPending, OracleError, OracleLost
    from reports.run.folder import RunError
    from sources.errors import DatasetError
    from sources.location import printable
    from sources.secrets import redacted, without_secrets
    from store import StoreError

    said = without_secrets(redacted(" ".join(str(error).split()), Environment.read().secrets))
    line = printable(said) or type(error).__name__
    if isinstance(error, AnswersPending):
        return WAITING, line
    if isinstance(error, OracleLost):
        return FAILED, line
    if isinstance(error, UsageError | StrategyError | OracleError | RunError | DatasetError | StoreError):
        return BAD_INPUT, line
    if isinstance(error, ServerError):
        return FAILED, line
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        path = printable(str(error.filename))
        shown = path if len(path) <= SHOWN else f"{path[:SHOWN]}…"
        return BAD_INPUT, f"cannot use {shown!r} ({error.strerror.lower()}): give another path"
    return FAILED, f"{type(error).__name__}: {line} (add --debug for the traceback)"


def _discover(arguments: argparse.Namespace) -> int:
    from flows.discover.settings import DiscoverSettings

    settings = read_options(arguments, DiscoverSettings)
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages, print_features, say_what_is_kept
    from flows.discover.preparation import prepare

    prepared = prepare(settings, TerminalDisplay(messages()))
    say_what_is_kept(prepared)
    from flows.discover.flow import run_flow

    run = run_flow(prepared)
    if arguments.json:
        _print_json(run.summary)
    else:
        print_features(run)
    return DONE


def _estimate(arguments: argparse.Namespace) -> int:
    from flows.discover.settings import DiscoverSettings

    settings = read_options(arguments, DiscoverSettings)
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages, print_estimate
    from flows.discover.preparation import forecast

    estimate = forecast(settings, TerminalDisplay(messages()))
    if arguments.json:
        _print_json(estimate.to_json())
    else:
        print_estimate(estimate)
    return DONE


def _costs(arguments: argparse.Namespace) -> int:
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import cost_rows, messages, print_costs
    from flows.settings import open_store

    rows = cost_rows(open_store(arguments.store, TerminalDisplay(messages())), arguments.which)
    if arguments.json:
        _print_json([asdict(row) for row in rows])
    else:
        print_costs(rows)
    return DONE


def _replicate(arguments: argparse.Namespace) -> int:
    from flows.replicate import ReplicateSettings

    settings = read_options(arguments, ReplicateSettings)
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages, results
    from flows.replicate import run_flow

    summary = run_flow(settings, TerminalDisplay(messages()))
    if arguments.json:
        _print_json(summary)
    else:
        for row in summary:
            results().print(f"{row['verdict']}: {row['claim']} ({row['runs']:,} runs)")
        results().print(f"written to {settings.out}")
    return DONE


def _server(arguments: argparse.Namespace) -> int:
    from flows.cli.terminal import messages
    from flows.prefect_api import keep_server
    from flows.settings import prefect_environment, state_folder

    with keep_server(state_folder(), prefect_environment(), arguments.port) as url:
        messages().print(f"Prefect answers at {url}; runs from this account use it. Ctrl-C ends it.")
        signal.pause()
    return DONE


def _print_json(value: Any) -> None:
    from flows.cli.terminal import as_json

    print(as_json(value))


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal may know fewer letters
    sys.excepthook = print_traceback
    interruption.listen()
    sys.exit(main())
