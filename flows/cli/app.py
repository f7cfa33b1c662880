"""The command line: parse, call a command, print. Results go to stdout, everything else to stderr.

Only the module of the command that runs is imported, so that help and errors come at once."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError, Group, Parameter

from twothirds.flows import VERSION
from twothirds.flows.cli.errors import explain, usage_error
from twothirds.flows.cli.signals import Interruption
from twothirds.flows.cli.terminal import PlainConsole, PlainHelp, print_traceback
from twothirds.flows.errors import UsageError
from twothirds.flows.subscribers.json_log import log_line

if TYPE_CHECKING:
    from twothirds.flows.prefect_api.background import BackgroundServer

DONE, WAITING = 0, 75
WITH_PREFECT = ("discover", "enrich", "compare")
WITH_ACTIONS = ("features", "labels", "review", "server", "steer", "store")
interruption = Interruption()

# command: (its module in twothirds.flows.cli, what it does, an example unless the module has one)
COMMANDS = {
    "discover": (
        "discover",
        "Discover features and label every example.",
        "datasets/faces --oracle simulated --votes 3",
    ),
    "estimate": ("money", "Say what a run will cost, before anything is spent.", ""),
    "enrich": (
        "discover",
        "Label new examples of a data set with features found before, and propose others.",
        "datasets/faces --features runs/faces --oracle contrastive --out enriched/faces",
    ),
    "compare": (
        "discover",
        "Ask several oracles the same questions: where they differ, which is right, what each costs.",
        "datasets/faces --oracles contrastive 'simulated?flip=0.1' --queries 10",
    ),
    "steer": ("discover", "Stop a discovery that runs, or change what it looks for and what it may cost.", ""),
    "report": ("runs", "Write the report page of a run, with analyses on request.", "runs/faces --target weight"),
    "export": ("runs", "Write the labels of a run for other programs.", "runs/faces --to wide-parquet --out exported"),
    "tree": ("runs", "Print which features of a run lie below which.", "runs/faces --dot | dot -Tsvg > tree.svg"),
    "features": ("runs", "List, rename, merge, split, drop or define the features of a run.", ""),
    "labels": ("runs", "Correct labels of a run by hand.", ""),
    "attributes": (
        "runs",
        "Find features that are values of one attribute, and give every example its value.",
        "runs/faces --yes",
    ),
    "rationale": ("runs", "Ask why: reasons for labels that are doubtful or disputed.", "runs/faces --limit 20 --yes"),
    "review": ("review", "Serve the page on which people answer, and manage who may.", ""),
    "studio": ("review", "Look at runs, curate them and correct labels in the browser.", "runs"),
    "costs": ("money", "Show what runs have cost, by oracle and kind of question.", "runs/faces"),
    "store": ("store", "Check the store of all answers, back it up, restore a backup, prune it.", ""),
    "oracles": ("discover", "List the kinds of oracle and their parameters.", "openai"),
    "server": ("discover", "Keep a Prefect server running, or stop the one that runs leave in the background.", ""),
    "worker": ("discover", "Start a worker for the deployments of the server that is kept.", "--pool twothirds"),
}


def build_app() -> App:
    app = App(
        name="twothirds",
        help="Discover named, labelled features in a data set.",
        help_epilogue="example: twothirds discover datasets/faces --oracle simulated; "
        "twothirds COMMAND --help describes a command",
        console=PlainConsole(),
        help_format="plaintext",
        help_formatter="default" if sys.stdout.isatty() else PlainHelp(),
        help_flags=["--help", "-h"],
        version=VERSION,
        version_flags=["--version"],
        group_arguments=Group("Arguments", sort_key=0),
        group_parameters=Group("Options", sort_key=5),
        default_parameter=Parameter(allow_repeating=True),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for place, (name, (module, description, example)) in enumerate(COMMANDS.items()):
        extra = {"help_epilogue": f"example: twothirds {name} {example}"} if example else {}
        app.command(f"twothirds.flows.cli.{module}:{name}", name=name, help=description, sort_key=place, **extra)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(argv)
    except KeyboardInterrupt:
        interruption.end()
        return interruption.status
    except BrokenPipeError:  # the reader has gone: nothing is left to say, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except Exception as error:
        if "--debug" in argv:
            raise
        status, message = explain(error)
        if "--log=json" in argv or "--log json" in " ".join(argv):
            log_line("info" if status == WAITING else "error", message, status=status)
        else:
            print(message if status == WAITING else f"error: {message}", file=sys.stderr)
        return status


def _run(argv: list[str]) -> int:
    ahead = _server_ahead(argv)
    try:
        return _called(argv)
    except BaseException:
        if ahead:
            ahead.abandon()
        raise


def _server_ahead(argv: list[str]) -> BackgroundServer | None:
    """Before anything else is imported, for nothing takes as long as Prefect's server."""
    if not argv or argv[0] not in WITH_PREFECT or {"--help", "-h"} & set(argv):
        return None
    from twothirds.flows.prefect_api.background import start_in_background

    return start_in_background()


def _called(argv: list[str]) -> int:
    try:
        app = build_app()
        if not argv:
            raise UsageError(f"COMMAND is missing: choose one of {', '.join(COMMANDS)}")
        status: int = app(_action_first(app, argv)) or DONE
        sys.stdout.flush()
        return status
    except CycloptsError as error:
        raise usage_error(error) from None


def _action_first(app: App, argv: list[str]) -> list[str]:
    """Put the action where the parser expects it: `features RUN merge …`, `review --store STORE invite …`."""
    if not argv or argv[0] not in WITH_ACTIONS:
        return argv
    actions = {name: sub for name, sub in app[argv[0]].resolved_commands().items() if not name.startswith("-")}
    flags = {
        name
        for sub in actions.values()
        for argument in sub.assemble_argument_collection()
        if argument.hint is bool
        for name in argument.names
    }
    words = [
        place
        for place in range(1, len(argv))
        if not argv[place].startswith("-")
        and (not argv[place - 1].startswith("--") or "=" in argv[place - 1] or argv[place - 1] in flags)
    ]
    expected = 1 if argv[0] in ("features", "labels", "steer") else 0  # the run comes first
    for place in words[expected : expected + 1] + words[:1]:
        if argv[place] in actions:
            return [argv[0], argv[place], *argv[1:place], *argv[place + 1 :]]
    if {"--help", "-h"} & set(argv) or (argv[0] in ("review", "server") and not words):
        return argv
    choose = f"choose one of {', '.join(actions)}"
    if len(words) <= expected:
        raise UsageError(f"the action of {argv[0]} is missing: {choose}")
    raise UsageError(f"unknown action {argv[words[expected]]!r}: {choose}")


def run() -> None:
    """The command `twothirds`: `main`, and an end of the process that takes no longer than it must."""
    gc.set_threshold(200_000, 20, 50)  # imports make many objects that stay: some tenths of a second sooner
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal may know fewer letters
    sys.excepthook = print_traceback
    interruption.listen()
    status = main()
    gc.freeze()  # else Python looks through all objects once more before it ends
    interruption.leave_at_once(status)
    sys.exit(status)
