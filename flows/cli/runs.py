"""The commands about a run that exists: report, export, tree, attributes, features and labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from twothirds.flows.cli.options import (
    CHANGING,
    PAYING,
    PLAIN,
    Changing,
    DatasetOption,
    MostLabels,
    Output,
    Paying,
    WhichLabels,
    action,
    command_group,
    flag,
    option,
)
from twothirds.flows.cli.terminal import confirm, terminal_events
from twothirds.flows.errors import UsageError

if TYPE_CHECKING:
    from twothirds.reports import Run

RunFolder = Annotated[str, option("RUN", "a run folder")]


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
    plain: Annotated[bool, flag("leave out what earlier reports of the run were asked for")] = False,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    if by is not None and against is not None:
        raise UsageError("--by and --against do not go together: leave one out")
    from twothirds.flows import runs

    page = runs.report(
        _run_of(run),
        dataset=dataset,
        out=Path(out) if out else None,
        target=target,
        tagging=_run_of(tagging) if tagging else None,
        budget=budget,
        by=by,
        against=_run_of(against) if against else None,
        plain=plain,
        events=terminal_events(),
    )
    output.print(runs.describe(page), runs.page_lines(page))


def export(
    run: Annotated[str, option("RUN", "a run folder, or the folder of a table that enrich wrote")],
    /,
    *,
    to: Annotated[
        list[str] | None,
        option(
            "FORMAT,…",
            "wide-parquet, wide-csv, tidy-parquet, tidy-csv, jsonl, imagefolder, imagefolder-parquet, "
            "huggingface, label-studio, fiftyone, features, card, tree-json, tree-dot, doubtful or all (the default)",
        ),
    ] = None,
    only: Annotated[list[str] | None, option("MARK,…", "only features that are interesting, distinct")] = None,
    without: Annotated[list[str] | None, option("MARK,…", "no features that are divided, duplicates")] = None,
    with_: Annotated[
        list[str] | None, option("MARK,…", "also features that are doubtful, which are left out otherwise", "--with")
    ] = None,
    out: Annotated[str | None, option("PATH", "the folder to write (default: export in the run folder)")] = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    from twothirds.flows.runs import export as write_export
    from twothirds.reports.export import Marks

    files = write_export(
        _folder(run),
        to or ["all"],
        dataset=dataset,
        out=Path(out) if out else None,
        marks=Marks(only=only or (), without=without or (), with_=with_ or ()),
        events=terminal_events(),
    )
    written = [str(path) for path in files]
    output.print(written, written)


def tree(
    run: RunFolder,
    /,
    *,
    tolerance: Annotated[float | None, option("SHARE", "share of exceptions that is allowed (default: 0.1)")] = None,
    support: Annotated[int | None, option("N", "examples that must show it at least (default: 4)")] = None,
    dot: Annotated[bool, flag("print it for Graphviz")] = False,
    output: Output = PLAIN,
) -> None:
    from twothirds.discovery import as_dot, as_json, as_text

    chosen: dict[str, Any] = {"tolerance": tolerance, "support": support}
    found = _run_of(run).findings.tree(**{name: value for name, value in chosen.items() if value is not None})
    output.print(as_json(found), (as_dot(found) if dot else as_text(found)).split("\n"))


def attributes(
    run: RunFolder,
    /,
    *,
    yes: Annotated[bool, flag("do it; without, it is only proposed or asked about")] = False,
    budget: Annotated[str | None, option("USD", "do it, for so many USD at most")] = None,
    store: Annotated[str | None, option("STORE", "URL or path of the store (default: the run's)")] = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    from twothirds.flows.runs import attributes as make_attributes

    shared: dict[str, Any] = {"budget": budget, "store": store, "dataset": dataset}
    shared |= {"confirm": (lambda _: True) if yes else confirm}
    result = make_attributes(_run_of(run), events=terminal_events(), **shared)
    output.print(result.data, result.lines)


features = command_group(
    "features",
    "features runs/faces merge beard 'facial hair' --into beard",
    usage="Usage: twothirds features RUN COMMAND [NAME…] [OPTIONS]",
)
Names = Annotated[str, option("NAME", "names of features")]
Definitions = Annotated[list[str] | None, option("TEXT", "definition of a new feature; repeat it for the next")]


def rationale(
    run: RunFolder,
    /,
    *,
    labels: WhichLabels = "doubtful",
    limit: MostLabels = 20,
    budget: Annotated[str | None, option("USD", "USD that it may cost")] = None,
    store: Annotated[str | None, option("STORE", "URL or path of the store (default: the run's)")] = None,
    dataset: DatasetOption = None,
    output: Paying = PAYING,
) -> None:
    """One question each about labels that are in doubt: what speaks for them, with a quote where the example is a text.
    Without --yes or --budget it only says what that costs, unless it is free."""
    from twothirds.flows.runs import RationaleRequest, ask_why

    request = RationaleRequest(labels, limit, output.yes, budget, store, dataset)
    result = ask_why(_run_of(run), request, terminal_events(), confirm)
    output.print(result.data, result.lines)


def _action(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    name = example.partition(" ")[0]
    usage = f"Usage: twothirds features RUN {name} [NAME…] [OPTIONS]"
    return action(features, f"features runs/faces {example}", name=name, usage=usage)


@_action("list")
def list_features(run: RunFolder, /, *, output: Changing = CHANGING) -> None:
    """List the features: how many examples have them, and their definitions."""
    _change(run, "list", (), output)


@_action("rename backbone vertebrate --yes")
def rename(run: RunFolder, /, *names: Names, output: Changing = CHANGING) -> None:
    """Give a feature another name: RUN rename OLD NEW."""
    _change(run, "rename", names, output)


@_action("merge beard 'facial hair' --into beard")
def merge(
    run: RunFolder,
    /,
    *names: Names,
    into: Annotated[str | None, option("NAME", "the name afterwards (default: the first one's)")] = None,
    definition: Definitions = None,
    output: Changing = CHANGING,
) -> None:
    """Make one feature of several."""
    _change(run, "merge", names, output, into=into, definitions=definition or [])


@_action("split airborne 'flying bird' 'flying insect' --no-ask")
def split(run: RunFolder, /, *names: Names, definition: Definitions = None, output: Changing = CHANGING) -> None:
    """Make several features of one: RUN split OLD NEW NEW."""
    _change(run, "split", names, output, definitions=definition or [])


@_action("drop predator --yes")
def drop(run: RunFolder, /, *names: Names, output: Changing = CHANGING) -> None:
    """Remove features."""
    _change(run, "drop", names, output)


@_action("define aquatic 'lives in water most of the time'")
def define(
    run: RunFolder,
    /,
    *names: Names,
    definition: Definitions = None,
    keep: Annotated[bool, flag("keep the labels and change only the words")] = False,
    output: Changing = CHANGING,
) -> None:
    """Give a feature another definition: RUN define NAME DEFINITION."""
    _change(run, "define", names, output, keep=keep, definitions=definition or [])


@_action("label 'pointed hat' --yes")
def label(run: RunFolder, /, *names: Names, output: Changing = CHANGING) -> None:
    """Label features in full that discover only looked at."""
    _change(run, "label", names, output)


@_action("duplicates --yes")
def duplicates(run: RunFolder, /, *, output: Changing = CHANGING) -> None:
    """Merge features that repeat earlier ones into these."""
    _change(run, "duplicates", (), output)


@_action("undo")
def undo(run: RunFolder, /, *, output: Changing = CHANGING) -> None:
    """Take back the last change."""
    _change(run, "undo", (), output)


@_action("log")
def log(run: RunFolder, /, *, output: Changing = CHANGING) -> None:
    """List the changes that were made."""
    _change(run, "log", (), output)


labels = command_group(
    "labels",
    "labels runs/faces import doubtful.csv --by Ann",
    usage="Usage: twothirds labels RUN COMMAND [ARGUMENT…] [OPTIONS]",
)
ByOption = Annotated[str | None, option("NAME", "who corrects (default: the name of your account)")]


@action(labels, "labels runs/faces import doubtful.csv --by Ann", name="import")
def import_labels(
    run: RunFolder,
    table: Annotated[str, option("CSV", "a table with the columns id, feature and corrected")],
    /,
    *,
    by: ByOption = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    """Take over the column `corrected` of doubtful.csv: yes, no or clear."""
    _correct(run, "import", table, output=output, by=by, dataset=dataset)


@action(labels, "labels runs/faces set 0007.png 'pointed hat' no --by Ann", name="set")
def set_labels(
    run: RunFolder,
    example: Annotated[str, option("EXAMPLE", "the id of an example")],
    feature: Annotated[str, option("FEATURE", "the name of a feature")],
    label: Annotated[str, option("LABEL", "yes, no, or clear to take a correction back")],
    /,
    *,
    by: ByOption = None,
    dataset: DatasetOption = None,
    output: Output = PLAIN,
) -> None:
    """Correct one label: RUN set EXAMPLE FEATURE yes|no|clear."""
    _correct(run, "set", example, feature, label, output=output, by=by, dataset=dataset)


@action(labels, "labels runs/faces list", name="list")
def list_labels(run: RunFolder, /, *, output: Output = PLAIN) -> None:
    """List the labels that people have corrected, and how often they left them as they were."""
    _correct(run, "list", output=output)


def _correct(run: str, *words: str, output: Output, **more: Any) -> None:
    from twothirds.flows.runs import correct_labels

    result = correct_labels(_run_of(run), *words, events=terminal_events(), **more)
    output.print(result.data, result.lines)


def _change(run: str, name: str, names: tuple[str, ...], output: Changing, **more: Any) -> None:
    from twothirds.flows.runs import CurationRequest, curate

    shared: dict[str, Any] = {key: getattr(output, key) for key in ("budget", "store", "dataset")}
    request = CurationRequest(name, [*names], ask=not output.no_ask, confirmed=output.yes, **shared, **more)
    result = curate(_run_of(run), request, terminal_events(), confirm)
    output.print(result.data, result.lines)


def _run_of(folder: str) -> Run:
    from twothirds.reports import Run

    run = Run(_folder(folder))
    _ = run.summary  # says at once what is wrong with it
    return run


def _folder(folder: str) -> Path:
    if not folder.strip():
        raise UsageError("RUN is empty: give a run folder that discover wrote")
    return Path(folder)
