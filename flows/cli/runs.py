"""The commands about a run that is there already: report, export, tree and features."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from flows.cli.terminal import print_result
from flows.errors import UsageError

REPORT_EXAMPLE = "example: python -m flows report runs/faces"
EXPORT_EXAMPLE = "example: python -m flows export runs/faces --to wide-parquet,imagefolder --out exported"
TREE_EXAMPLE = "example: python -m flows tree runs/faces --dot | dot -Tsvg > tree.svg"
FEATURES_EXAMPLE = "example: python -m flows features runs/faces merge beard 'facial hair' --into beard"
DONE = 0


class Command(Protocol):
    def __call__(
        self, name: str, about: str, example: str, run: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser: ...


def add_run_commands(command: Command) -> None:
    report = command("report", "write the report page of a run, with analyses if wanted", REPORT_EXAMPLE, _report)
    _add_run(report)
    report.add_argument("--out", metavar="FILE", help="the page to write (default: report.html in the run folder)")
    report.add_argument("--target", metavar="COLUMN", help="predict this column of the data set from the features")
    report.add_argument("--tagging", metavar="RUN", help="with --target: a tagging run for the control")
    report.add_argument("--budget", metavar="USD", help="with --target: what a tagging run made for it may cost")
    groups = report.add_mutually_exclusive_group()
    groups.add_argument("--by", metavar="COLUMN", help="compare the groups that this column of the data set makes")
    groups.add_argument("--against", metavar="RUN", help="compare with another run that has features of the same names")

    export = command("export", "write a run's labels in forms that other programs load", EXPORT_EXAMPLE, _export)
    _add_run(export)
    export.add_argument(
        "--to",
        metavar="FORMAT,…",
        action="append",
        help="wide-parquet, wide-csv, tidy-parquet, tidy-csv, jsonl, imagefolder, imagefolder-parquet, huggingface, "
        "card, tree-json, tree-dot, doubtful or all (the default)",
    )
    export.add_argument("--out", metavar="FOLDER", help="where to (default: export in the run folder)")

    tree = command("tree", "print which features of a run lie below which", TREE_EXAMPLE, _tree)
    tree.add_argument("folder", metavar="RUN", help="a run folder")
    tree.add_argument("--tolerance", type=float, metavar="SHARE", help="exceptions that are allowed (default: 0.1)")
    tree.add_argument("--support", type=int, metavar="N", help="examples that must show it at least (default: 4)")
    tree.add_argument("--dot", action="store_true", help="print it for Graphviz")

    features = command("features", "list, rename, merge, split, drop or define features", FEATURES_EXAMPLE, _features)
    _add_run(features)
    features.add_argument("action", metavar="list|rename|merge|split|drop|define|undo|log", help="what to do")
    features.add_argument(
        "names", nargs="*", metavar="NAME", help="features; with rename OLD NEW, with split OLD NEW NEW"
    )
    features.add_argument("--into", metavar="NAME", help="with merge: the name afterwards (default: the first one's)")
    features.add_argument(
        "--definition", metavar="TEXT", action="append", help="with define, merge, split: in that order"
    )
    features.add_argument("--keep", action="store_true", help="with define: the labels stay, only the words change")
    features.add_argument("--no-ask", action="store_true", help="leave labels empty that would have to be asked again")
    features.add_argument("--yes", action="store_true", help="do it; without, it is only shown or asked about")
    features.add_argument("--budget", metavar="USD", help="what asking again may cost")
    features.add_argument("--store", metavar="STORE", help="URL or path of the store (default: the run's)")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", help="a run folder")
    parser.add_argument("--dataset", metavar="DATASET", help="where the data set is now, if not where the run found it")


def _report(arguments: argparse.Namespace) -> int:
    from flows.runs.report import describe, page_lines, report

    page = report(
        _run_of(arguments.folder, told=True),
        dataset=arguments.dataset,
        out=Path(arguments.out) if arguments.out else None,
        target=arguments.target,
        tagging=_run_of(arguments.tagging) if arguments.tagging else None,
        budget=arguments.budget,
        by=arguments.by,
        against=_run_of(arguments.against) if arguments.against else None,
        display=_display(),
    )
    print_result(describe(page), page_lines(page), json=arguments.json)
    return DONE


def _export(arguments: argparse.Namespace) -> int:
    from flows.runs.report import export

    out = Path(arguments.out) if arguments.out else None
    run = _run_of(arguments.folder, told=True)
    written = export(run, arguments.to or ["all"], dataset=arguments.dataset, out=out, display=_display())
    print_result([str(path) for path in written], [str(path) for path in written], json=arguments.json)
    return DONE


def _tree(arguments: argparse.Namespace) -> int:
    from discovery.tree import as_dot, as_json, as_text
    from reports.page.problems import tree_of

    chosen = {name: getattr(arguments, name) for name in ("tolerance", "support")}
    findings = _run_of(arguments.folder).findings
    tree = tree_of(findings, **{name: value for name, value in chosen.items() if value is not None})
    print_result(as_json(tree), (as_dot(tree) if arguments.dot else as_text(tree)).split("\n"), json=arguments.json)
    return DONE


def _features(arguments: argparse.Namespace) -> int:
    from flows.runs.curate import CurationRequest, curate

    request = CurationRequest(
        arguments.action,
        arguments.names,
        into=arguments.into,
        definitions=arguments.definition or [],
        keep=arguments.keep,
        ask=not arguments.no_ask,
        confirmed=arguments.yes,
        budget=arguments.budget,
        store=arguments.store,
        dataset=arguments.dataset,
    )
    result = curate(_run_of(arguments.folder), request, _display())
    print_result(result.data, result.lines, json=arguments.json)
    return DONE


def _display() -> Any:
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages

    return TerminalDisplay(messages())


def _run_of(folder: str, *, told: bool = False) -> Any:
    """`told`: what run.json says is needed, not only the features and labels."""
    from reports.run.folder import Run, check_shape

    if not folder.strip():
        raise UsageError("RUN is empty: give a run folder that discover wrote")
    run = Run(Path(folder))
    _ = run.summary  # says at once what is wrong with it
    if told:
        check_shape(run)
    return run
