"""Everything that the command line does with data sets and runs, for Python and notebooks.

    from twothirds.flows.api import Run, discover, estimate, export

    print(estimate(discover, "datasets/faces", oracle="openai:gpt-4o-mini"))
    run = discover("datasets/faces", oracle="contrastive")
    run.features, run.labels  # DataFrames
    export(run, ["huggingface"])

A data set is a path, an address, a DataFrame, an Arrow table or a HuggingFace Dataset; a run is a Run or its folder.
Nobody is asked before money is spent: what costs money is refused without a `budget`, or `yes=True`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from twothirds.discovery import as_text
from twothirds.flows import runs
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.flow import discover
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.prefect_api.connection import starting_prefect
from twothirds.flows.settings import open_store, shows_settings
from twothirds.flows.subscribers.notebook import events_for_python
from twothirds.reports import Run
from twothirds.reports.export import Marks
from twothirds.reports.page import Page

if TYPE_CHECKING:
    import pandas as pd

    from twothirds.flows.estimate import Estimate

__all__ = [
    "Run",
    "attributes",
    "compare",
    "costs",
    "discover",
    "enrich",
    "estimate",
    "export",
    "features",
    "labels",
    "rationale",
    "report",
    "tree",
]


@shows_settings(CompareSettings)
def compare(dataset: Any, *, yes: bool = False, **settings: Any) -> dict[str, Any]:
    """Ask several oracles the same questions: `compare("datasets/faces", oracles=["contrastive", "simulated"])` returns
    what comparison.json holds. What costs money needs a `budget`, or `yes`."""
    from twothirds.flows.compare.flow import run_prepared
    from twothirds.flows.compare.forecast import forecast_comparison
    from twothirds.flows.compare.preparation import prepare_comparison
    from twothirds.flows.estimate import agreed_in_python

    chosen, events = CompareSettings(dataset=dataset, **settings), events_for_python()
    prepared = prepare_comparison(chosen, events)
    prepared.check_oracles()
    budget = agreed_in_python(
        lambda: forecast_comparison(prepared), budget=chosen.budget, oracles=chosen.oracles, yes=yes, events=events
    )
    run_prepared(prepared.with_budget(budget))
    comparison: dict[str, Any] = json.loads((prepared.folder / "comparison.json").read_text(encoding="utf-8"))
    return comparison


@shows_settings(EnrichSettings)
def enrich(dataset: Any, *, yes: bool = False, **settings: Any) -> dict[str, Any]:
    """Enrich from Python: `enrich("faces", features="runs/faces", oracle="contrastive")` returns the summary. What
    costs money needs a `budget`, or `yes`."""
    from twothirds.flows.enrich.checks import check, check_oracles
    from twothirds.flows.enrich.flow import run_enrichment
    from twothirds.flows.enrich.forecast import forecast_enrichment
    from twothirds.flows.estimate import agreed_in_python

    chosen, events = EnrichSettings(dataset=dataset, **settings), events_for_python()
    with starting_prefect():
        check(chosen)
        check_oracles(chosen, events)
        budget = agreed_in_python(
            lambda: forecast_enrichment(chosen, events),
            budget=chosen.budget,
            oracles=(chosen.oracle, chosen.cheap),
            yes=yes,
            events=events,
        )
    return run_enrichment(chosen.with_budget(budget), events).to_json()


def estimate(command: Callable[..., Any], subject: Any, **settings: Any) -> Estimate:
    """What a command will cost, before anything is spent: `print(estimate(enrich, "datasets/faces", features=run,
    oracle="openai:gpt-4o-mini"))`. The command is discover, enrich, compare, report or rationale, and
    `subject` is its data set, or the run of a report or of a rationale. Amounts are in micro-dollars; `to_json` gives
    them in USD."""
    from twothirds.flows.compare.forecast import forecast_comparison
    from twothirds.flows.compare.preparation import prepare_comparison
    from twothirds.flows.discover.forecast import forecast_discovery
    from twothirds.flows.discover.preparation import prepare
    from twothirds.flows.enrich.forecast import forecast_enrichment

    events = events_for_python()
    if command is report:
        return runs.forecast_control(_run(subject), settings["target"], settings.get("dataset"), events)
    if command is rationale:
        return runs.forecast_reasons(_run(subject), runs.RationaleRequest(**settings), events)
    if command is discover:
        return forecast_discovery(prepare(DiscoverSettings(dataset=subject, **settings), events))
    if command is enrich:
        return forecast_enrichment(EnrichSettings(dataset=subject, **settings), events)
    if command is compare:
        return forecast_comparison(prepare_comparison(CompareSettings(dataset=subject, **settings), events))
    name = getattr(command, "__name__", command)
    raise UsageError(f"{name!r} costs nothing by itself: estimate discover, enrich, compare, report or rationale")


def report(
    run: Run | Path | str,
    *,
    target: str | None = None,
    by: str | None = None,
    against: Run | Path | str | None = None,
    tagging: Run | Path | str | None = None,
    budget: Decimal | float | str | None = None,
    dataset: str | None = None,
    out: Path | str | None = None,
    plain: bool = False,
) -> Page:
    """Write the report page of a run, with analyses on request: how well a `target` column is predicted (beside a
    `tagging` run, which is made within the `budget` where it costs money), what differs `by` a column, what differs
    `against` another run. A notebook shows the page."""
    return runs.report(
        _run(run),
        dataset=dataset,
        out=Path(out) if out else None,
        target=target,
        tagging=_run(tagging) if tagging else None,
        budget=_text(budget),
        by=by,
        against=_run(against) if against else None,
        plain=plain,
        events=events_for_python(),
    )


def export(
    run: Run | Path | str,
    formats: Sequence[str] = ("all",),
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    with_: Sequence[str] = (),
    out: Path | str | None = None,
    dataset: str | None = None,
) -> list[Path]:
    """Write the labels of a run, or of a table that enrich wrote, for other programs; returns the files and folders
    written. `only` and `without` choose features of a run by marks: interesting, distinct; doubtful, divided,
    duplicates. Doubtful features, which their own question contradicts, are left out unless `with_` names them."""
    return runs.export(
        run.folder if isinstance(run, Run) else Path(run),
        formats,
        marks=Marks(only=only, without=without, with_=with_),
        dataset=dataset,
        out=Path(out) if out else None,
        events=events_for_python(),
    )


def features(
    run: Run | Path | str,
    action: str = "list",
    *names: str,
    into: str | None = None,
    definitions: Sequence[str] = (),
    keep: bool = False,
    ask: bool = True,
    yes: bool = False,
    budget: Decimal | float | str | None = None,
    dataset: str | None = None,
    store: str | None = None,
) -> Any:
    """List or change the features of a run: `features(run, "merge", "beard", "facial hair", into="beard", yes=True)`.
    Without `yes` it only says what a change keeps, asks again and costs. The actions are those of the command line:
    list, rename, merge, split, drop, define, label, duplicates, undo, log. `Run(path)` reads it again."""
    request = runs.CurationRequest(
        action,
        [*names],
        into=into,
        definitions=[*definitions],
        keep=keep,
        ask=ask,
        confirmed=yes,
        budget=_text(budget),
        store=store,
        dataset=dataset,
    )
    return runs.curate(_run(run), request, events_for_python()).data


def labels(
    run: Run | Path | str, action: str = "list", *words: str, by: str | None = None, dataset: str | None = None
) -> Any:
    """List or correct labels of a run, as the command line does: `labels(run, "set", "0007.png", "pointed hat", "no")`,
    `labels(run, "import", "doubtful.csv", by="Ann")`. `Run(path)` reads it again."""
    return runs.correct_labels(_run(run), action, *words, by=by, dataset=dataset, events=events_for_python()).data


def attributes(
    run: Run | Path | str,
    *,
    yes: bool = False,
    budget: Decimal | float | str | None = None,
    dataset: str | None = None,
    store: str | None = None,
) -> Any:
    """Find features of a run that are values of one attribute, such as hair colours, and give each example one of them.
    Without `yes` or a `budget` it only says what would be asked and what that costs."""
    events = events_for_python()
    made = runs.attributes(
        _run(run), confirm=lambda _: yes, budget=_text(budget), dataset=dataset, store=store, events=events
    )
    return made.data


def rationale(
    run: Run | Path | str,
    *,
    labels: Literal["doubtful", "disputed"] = "doubtful",
    limit: int = 20,
    yes: bool = False,
    budget: Decimal | float | str | None = None,
    dataset: str | None = None,
    store: str | None = None,
) -> Any:
    """Ask the oracle why it labels as it does where that is in doubt, once for each label, with a quote for texts.
    Without `yes` or a `budget` it only says what that costs, unless it is free."""
    request = runs.RationaleRequest(labels, limit, yes, _text(budget), store, dataset)
    return runs.ask_why(_run(run), request, events_for_python()).data


def tree(run: Run | Path | str, *, tolerance: float = 0.1, support: int = 4) -> str:
    """Which features of a run lie below which, in lines."""
    return as_text(_run(run).findings.tree(tolerance=tolerance, support=support))


def costs(run: Path | str | None = None, *, store: str | None = None) -> pd.DataFrame:
    """What runs have cost, by oracle and kind of question: of the run with that folder, name or id, or of all. Money is
    in micro-dollars."""
    import pandas as pd

    with open_store(store) as opened:
        return pd.DataFrame([asdict(line) for line in opened.costs.lines(Path(run).name if run else None)])


def _run(run: Run | Path | str) -> Run:
    return run if isinstance(run, Run) else Run(Path(run))


def _text(amount: Decimal | float | str | None) -> str | None:
    return None if amount is None else str(amount)
