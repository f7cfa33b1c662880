"""The commands about a run that exists: report, export, tree and features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flows.cli.options import PLAIN, Output, action, command_group, flag, option
from flows.cli.terminal import print_result, terminal_display
from flows.errors import UsageError

if TYPE_CHECKING:
    from reports.finished_run import Run

DONE = 0
RunFolder = Annotated[str, option("RUN", "a run folder")]
DatasetOption = Annotated[str | None, option("DATASET", "where the data set is now (default: where the run found it)")]


def report(
    run: RunFolder,
    /,
    *,
    out: Annotated[str | None, option("PATH", "the page to write (default: report.html in the run folder)")] = None,
    target: Annotated[str | None, option("COLUMN", "predict this column of the data set from the features")] = None,
    tagging: Annotated[str | None, option("RUN", "with --target: a tagging run for the control")] = None,
    budget: Annotated[str | None, option("USD", "with --target: USD that a tagging run made for it may cost")] = None,
    by: Annotated[str | None, option("COLUMN", "compare the groups that this column of the data set makes")] = None,
    against: Annotated[str | None, option("RUN", "compare with another run, by features of the same names")] = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> int:
    if by is not None and against is not None:
        raise UsageError("--by and --against do not go together: leave one out")
    from flows.runs.report import describe, page_lines
    from flows.runs.report import report as write_report

    page = write_report(
        _run_of(run),
        dataset=dataset,
        out=Path(out) if out else None,
        target=target,
        tagging=_run_of(tagging) if tagging else None,
        budget=budget,
        by=by,
        against=_run_of(against) if against else None,
        display=terminal_display(),
    )
    print_result(describe(page), page_lines(page), json=output.json)
    return DONE


def export(
    run: RunFolder,
    /,
    *,
    to: Annotated[
        list[str] | None,
        Parameter(
            metavar="FORMAT,…",
            help="wide-parquet, wide-csv, tidy-parquet, tidy-csv, jsonl, imagefolder, imagefolder-parquet, "
            "huggingface, card, tree-json, tree-dot, doubtful or all (the default)",
        ),
    ] = None,
    out: Annotated[str | None, option("PATH", "the folder to write (default: export in the run folder)")] = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> int:
    from flows.runs.report import export as write_export

    files = write_export(
        _run_of(run), to or ["all"], dataset=dataset, out=Path(out) if out else None, display=terminal_display()
    )
    written = [str(path) for path in files]
    print_result(written, written, json=output.json)
    return DONE


def tree(
    run: RunFolder,
    /,
    *,
    tolerance: Annotated[float | None, option("SHARE", "share of exceptions that is allowed (default: 0.1)")] = None,
    support: Annotated[int | None, option("N", "examples that must show it at least (default: 4)")] = None,
    dot: Annotated[bool, flag("print it for Graphviz")] = False,
    output: Output = PLAIN,
) -> int:
    from discovery.tree import as_dot, as_json, as_text

    chosen: dict[str, Any] = {"tolerance": tolerance, "support": support}
    found = _run_of(run).findings.tree(**{name: value for name, value in chosen.items() if value is not None})
    print_result(as_json(found), (as_dot(found) if dot else as_text(found)).split("\n"), json=output.json)
    return DONE


features = command_group(
    "features",
    "features runs/faces merge beard 'facial hair' --into beard",
    usage="Usage: python -m flows features RUN COMMAND [NAME…] [OPTIONS]",
)
Names = Annotated[str, option("NAME", "names of features")]
Definitions = Annotated[list[str] | None, option("TEXT", "definition of a new feature; repeat it in order")]


@Parameter(name="*")
@dataclass(frozen=True)
class Changing:
    """The options of every action that changes features."""

    no_ask: Annotated[bool, flag("leave labels empty that would have to be asked again")] = False
    yes: Annotated[bool, flag("do it; without, the change is only shown or asked about")] = False
    budget: Annotated[str | None, option("USD", "USD that asking again may cost")] = None
    store: Annotated[str | None, option("STORE", "URL or path of the store (default: the run's)")] = None
    dataset: DatasetOption = None


DEFAULT = Changing()


def _action(example: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    name = example.partition(" ")[0]
    usage = f"Usage: python -m flows features RUN {name} [NAME…] [OPTIONS]"
    return action(features, f"features runs/faces {example}", name=name, usage=usage)


@_action("list")
def list_features(run: RunFolder, /, *, output: Output = PLAIN) -> int:
    """List the features: how many examples have them, and their definitions."""
    return _curate(run, "list", (), DEFAULT, output)


@_action("rename backbone vertebrate --yes")
def rename(run: RunFolder, /, *names: Names, changing: Changing = DEFAULT, output: Output = PLAIN) -> int:
    """Give a feature another name: RUN rename OLD NEW."""
    return _curate(run, "rename", names, changing, output)


@_action("merge beard 'facial hair' --into beard")
def merge(
    run: RunFolder,
    /,
    *names: Names,
    into: Annotated[str | None, option("NAME", "the name afterwards (default: the first one's)")] = None,
    definition: Definitions = None,
    changing: Changing = DEFAULT,
    output: Output = PLAIN,
) -> int:
    """Make one feature of several."""
    return _curate(run, "merge", names, changing, output, into=into, definitions=definition or [])


@_action("split airborne 'flying bird' 'flying insect' --no-ask")
def split(
    run: RunFolder,
    /,
    *names: Names,
    definition: Definitions = None,
    changing: Changing = DEFAULT,
    output: Output = PLAIN,
) -> int:
    """Make several features of one: RUN split OLD NEW NEW."""
    return _curate(run, "split", names, changing, output, definitions=definition or [])


@_action("drop predator --yes")
def drop(run: RunFolder, /, *names: Names, changing: Changing = DEFAULT, output: Output = PLAIN) -> int:
    """Remove features."""
    return _curate(run, "drop", names, changing, output)


@_action("define aquatic 'lives in water most of the time'")
def define(
    run: RunFolder,
    /,
    *names: Names,
    definition: Definitions = None,
    keep: Annotated[bool, flag("keep the labels and change only the words")] = False,
    changing: Changing = DEFAULT,
    output: Output = PLAIN,
) -> int:
    """Give a feature another definition: RUN define NAME DEFINITION."""
    return _curate(run, "define", names, changing, output, keep=keep, definitions=definition or [])


@_action("undo")
def undo(run: RunFolder, /, *, changing: Changing = DEFAULT, output: Output = PLAIN) -> int:
    """Take back the last change."""
    return _curate(run, "undo", (), changing, output)


@_action("log")
def log(run: RunFolder, /, *, output: Output = PLAIN) -> int:
    """List the changes that were made."""
    return _curate(run, "log", (), DEFAULT, output)


def _curate(run: str, action: str, names: tuple[str, ...], changing: Changing, output: Output, **more: Any) -> int:
    from flows.runs.curate import CurationRequest, curate

    shared = {name: getattr(changing, name) for name in ("budget", "store", "dataset")}
    request = CurationRequest(action, [*names], ask=not changing.no_ask, confirmed=changing.yes, **shared, **more)
    result = curate(_run_of(run), request, terminal_display())
    print_result(result.data, result.lines, json=output.json)
    return DONE


def _run_of(folder: str) -> Run:
    from reports.finished_run import Run

    if not folder.strip():
        raise UsageError("RUN is empty: give a run folder that discover wrote")
    run = Run(Path(folder))
    _ = run.summary  # says at once what is wrong with it
    return run
