"""Change the features of a run: show what a change keeps and costs, ask what must be asked again, enter it in the log.

A change that needs answers is entered once they are all there; those that came before a stop are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from twothirds.flows.discover.preparation import Prepared, prepare
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.estimate import Confirm, bound_of_labels, nobody
from twothirds.flows.events import SILENT, Events
from twothirds.flows.run_context import RunEntry, run_context
from twothirds.flows.runs.report import budget_of
from twothirds.models import (
    MICRO,
    Crowd,
    Feature,
    Label,
    LabelBatch,
    Money,
    Question,
    Verdict,
    collect_votes,
    digest_of,
    in_turn,
    in_usd,
)
from twothirds.reports import Run
from twothirds.reports.curation import (
    Change,
    LabelRequest,
    Votes,
    plan_change,
    read_log,
    record_change,
    refuse_stale,
    undo,
)
from twothirds.reports.run import Findings, RunError
from twothirds.sources import Example
from twothirds.store import ActiveRun
from twothirds.studio.web import plural


@dataclass(frozen=True)
class CurationRequest:
    action: str
    names: list[str]
    into: str | None = None
    definitions: list[str] = field(default_factory=list)
    keep: bool = False
    ask: bool = True  # what must be asked again; else it stays empty
    confirmed: bool = False
    budget: str | None = None
    may_spend: bool = True  # whether whoever wants it may pay for answers
    store: str | None = None
    dataset: str | None = None
    by: str = ""  # who, where several people share a run
    seen: int | None = None  # changes in the log that the command is built on; more are refused as stale


@dataclass(frozen=True)
class CurationResult:
    data: Any
    lines: list[str]


def curate(run: Run, request: CurationRequest, events: Events = SILENT, confirm: Confirm = nobody) -> CurationResult:
    refuse_stale(read_log(run.folder), request.seen)  # before anything is planned or asked
    if request.action == "list":
        return _listed(run)
    if request.action == "log":
        log = read_log(run.folder)
        entries = [
            {"at": e.at, "action": e.action, "arguments": e.arguments} | ({"by": e.by} if e.by else {}) for e in log
        ]
        lines = [f"{e.at} {e.action} {e.arguments or ''}{f', by {e.by}' if e.by else ''}" for e in log]
        return CurationResult(entries, lines or ["nothing was changed"])
    if request.action == "undo":
        entry = undo(run, by=request.by, seen=request.seen)
        return CurationResult({"undone": entry.action}, [f"took back {entry.action} of {entry.at}"])
    try:
        change = plan_change(run, request.action, arguments_of(request))
    except RunError:  # others may have changed it since it was looked at: that is reported then
        refuse_stale(read_log(run.folder), request.seen)
        raise
    if request.action == "duplicates" and not change.gone:
        none = "no feature repeats another: `features RUN list` shows all, and merge joins any two"
        return CurationResult(_described(change, None) | {"done": False}, [none])
    asks = [ask for ask in change.asks if ask.ids] if request.ask else []
    again = Relabelling(prepare_request(run, request, events), asks, run.findings) if asks else None
    lines, data = _plan(request, change, again)
    if not request.confirmed and not confirm(lines):
        return CurationResult(data | {"done": False}, [*lines, "nothing was changed: add --yes to do it"])
    _make(run, request, change, again, events)
    done = "done: `report`, `export` and `enrich` use it from now on; `features RUN undo` takes it back"
    return CurationResult(data | {"done": True}, [*lines, done])


def _plan(request: CurationRequest, change: Change, again: Relabelling | None) -> tuple[list[str], dict[str, Any]]:
    """What the change keeps and costs, in words and as data. Nothing is sent."""
    lines = change.explained() if request.ask else [line for line in change.explained() if not line.startswith("asks")]
    if again:
        lines.append(
            f"that is {plural(again.calls, 'question')} at most and {in_usd(again.cost, at_most=True)} at most"
        )
    elif change.asks and not request.ask:
        lines += [f"leaves {plural(len(ask.ids), 'label')} of {ask.feature!r} empty" for ask in change.asks if ask.ids]
    return lines, _described(change, again)


def _make(run: Run, request: CurationRequest, change: Change, again: Relabelling | None, events: Events) -> None:
    asked, spent = dict[str, dict[str, Votes]](), 0.0
    if again:
        with asking(run, request, events, again.prepared) as (_, crowd, record):
            asked, spent = again.ask(crowd, record), crowd.ledger.cost / MICRO
    record_change(run, change, asked, spent, by=request.by, seen=request.seen)


def arguments_of(request: CurationRequest) -> dict[str, Any]:
    """What the words on the command line mean for an action."""
    names, definitions = request.names, request.definitions
    if request.action == "rename":
        _require(len(names) == 2, "rename takes two names: the old one and the new one")
        return {"name": names[0], "to": names[1]}
    if request.action == "define":
        texts = names[1:] + definitions
        _require(len(names) >= 1 and len(texts) == 1, "define takes a name and one definition")
        return {"name": names[0], "definition": texts[0], "keep": request.keep}
    if request.action == "merge":
        _require(len(names) >= 2, "merge takes two names or more")
        return {"names": names, "into": request.into, "definition": definitions[0] if definitions else None}
    if request.action == "split":
        _require(len(names) >= 3, "split takes a name and two new ones or more")
        return {"name": names[0], "into": names[1:], "definitions": definitions}
    if request.action in ("drop", "label"):
        _require(len(names) >= 1, f"{request.action} takes one name or more")
        return {"names": names}
    if request.action == "duplicates":
        _require(not names, "duplicates takes no name")
        return {}
    actions = "list, rename, merge, split, drop, define, label, duplicates, undo, log"
    raise UsageError(f"unknown action {request.action!r}: choose one of {actions}")


def prepare_request(run: Run, request: CurationRequest, events: Events) -> Prepared:
    """With the run's own settings. Nothing is sent to any server."""
    changed = {"out": str(run.folder), "budget": budget_of(request.budget), "per": None, "retry_unusable": False}
    changed |= {key: value for key, value in (("store", request.store), ("dataset", request.dataset)) if value}
    settings = DiscoverSettings.model_validate(run.summary.settings | changed)
    return prepare(settings, events, afresh=False)


def examples_of(prepared: Prepared, ids: Iterable[str]) -> list[Example]:
    """Raises RunError where one is gone."""
    by_id = {example.id: example for example in prepared.dataset.examples}
    wanted = list(ids)
    missing = next((name for name in wanted if name not in by_id), None)
    if missing is not None:
        raise RunError(f"example {missing!r} is not in the data set any more: say where it is with --dataset")
    return [by_id[name] for name in wanted]


def scope_of(run: Run, request: CurationRequest) -> str:
    return digest_of(["features", run.summary.scope, request.action, request.names])


@contextmanager
def asking(
    run: Run, request: CurationRequest, events: Events, prepared: Prepared | None = None
) -> Iterator[tuple[Prepared, Crowd, ActiveRun]]:
    """The run's oracle, asked as a run in the store that shares no budget with the discovery."""
    prepared = prepared or prepare_request(run, request, events)
    entry = RunEntry(
        flow="features",
        name=prepared.folder.name,
        scope=scope_of(run, request),
        dataset=prepared.dataset.name,
        members=prepared.members,
        settings=prepared.settings,
        budget=prepared.settings.budget_micro if request.may_spend else 0,
    )
    with run_context(prepared.store, str(uuid4()), entry, events) as context:
        context.record.status = "not confirmed"
        yield prepared, context.crowd, context.record


@dataclass
class Relabelling:
    """Labels to be asked again, of the run's oracle, through its store."""

    prepared: Prepared
    asks: list[LabelRequest]
    before: Findings

    @property
    def calls(self) -> int:
        return sum(len(ask.ids) for ask in self.asks) * self.prepared.settings.votes

    @cached_property
    def cost(self) -> Money:
        """An upper bound, in micro-dollars: nothing for what is kept. Nothing is sent."""
        questions = [question for ask in self.asks for question in self._questions(ask)]
        return bound_of_labels(self.prepared.members, questions, self.prepared.store)

    def ask(self, crowd: Crowd, record: ActiveRun) -> dict[str, dict[str, Votes]]:
        """Votes by feature and example. Raises where the budget or the oracle stops it; what came is kept."""
        record.status = "failed"
        with self.prepared.events.waiting(f"asking {self.calls:,} labels"):
            votes = {ask.feature: self._votes(crowd, ask) for ask in self.asks}
        record.status = "done"
        return votes

    def _votes(self, crowd: Crowd, ask: LabelRequest) -> dict[str, Votes]:
        examples, count = examples_of(self.prepared, ask.ids), self.prepared.settings.votes
        votes = collect_votes(crowd, LabelBatch(examples, [self._feature(ask)], count))
        if votes.stopped is not None:
            raise votes.stopped
        refused = Counter(
            answer.question.example.id
            for answer in votes.answers
            if answer.verdict is Verdict.REFUSED and isinstance(answer.question, Label)
        )
        return {
            name: (int(yes), int(no), refused[name], int(abstained) - refused[name])
            for name, yes, no, abstained in zip(ask.ids, votes.yes[0], votes.no[0], votes.abstained[0], strict=True)
        }

    def _feature(self, ask: LabelRequest) -> Feature:
        """With the examples that show what is meant, unless it means something else from now on."""
        meant = (ask.feature, ask.definition)
        found = next((found for found in self.before.found if (found.name, found.definition) == meant), None)
        if found is None:
            return Feature(ask.feature, ask.definition)
        by_id = {example.id: example for example in self.prepared.dataset.examples}
        sides = ([by_id[name] for name in side if name in by_id] for side in self.before.exemplars(found))
        return Feature(ask.feature, ask.definition, in_turn(*sides), self.prepared.settings.exemplars)

    def _questions(self, ask: LabelRequest) -> list[Question]:
        feature, voters = self._feature(ask), range(self.prepared.settings.votes)
        return [Label(feature, example, voter) for example in examples_of(self.prepared, ask.ids) for voter in voters]


def _listed(run: Run) -> CurationResult:
    table = run.features
    rows = [
        {
            "order": order,
            "name": str(row.name),
            "definition": str(row.definition),
            "positives": int(str(row.positives)),
            "look": str(row.look),
        }
        for order, row in enumerate(table.itertuples(index=False), start=1)
    ]
    return CurationResult(rows, [_line(row) for row in rows] or ["no features"])


def _line(row: dict[str, Any]) -> str:
    look = f", not labelled in full: {row['look']}" if row["look"] else ""
    return f"{row['order']:3d} {row['name']} ({row['positives']}{look})"


def _described(change: Change, again: Relabelling | None) -> dict[str, Any]:
    return {
        "action": change.action,
        "arguments": change.arguments,
        "kept": change.kept,
        "asked": {ask.feature: len(ask.ids) for ask in change.asks if ask.ids},
        "gone": change.gone,
        "calls": again.calls if again else 0,
        "usd": again.cost / MICRO if again else 0.0,
    }


def _require(right: bool, rule: str) -> None:
    if not right:
        raise UsageError(f"{rule} (see twothirds features --help)")
