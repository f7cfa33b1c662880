"""Change the features of a run: show what a change keeps and costs, ask what must be asked again, enter it in the log.

A change that needs answers is entered once they are all there; those that came before a stop are kept."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from flows.cli.options import UsageError
from flows.cli.progress import display
from flows.discover.preparation import Prepared, prepare
from flows.discover.settings import DiscoverSettings
from flows.runs.report import money
from models.oracle import MICRO, Feature, Label, Question, Verdict, digest_of
from models.recorded import Recorded
from models.voting import Ballot, Panel
from reports.curation.changes import Ask, Change
from reports.curation.log import Votes, plan_change, read_log, record_change, undo
from reports.run.folder import Run, RunError
from sources.location import printable


@dataclass(frozen=True)
class Wishes:
    action: str
    names: list[str]
    into: str | None = None
    definitions: list[str] = field(default_factory=list)
    keep: bool = False
    ask: bool = True  # what must be asked again; else it stays empty
    sure: bool = False
    budget: str | None = None
    store: str | None = None
    dataset: str | None = None


@dataclass(frozen=True)
class Result:
    data: Any
    lines: list[str]


def curate(run: Run, wishes: Wishes) -> Result:
    if wishes.action == "list":
        return _listed(run)
    if wishes.action == "log":
        entries = [{"at": e.at, "action": e.action, "arguments": e.arguments} for e in read_log(run.folder)]
        lines = [f"{entry['at']} {entry['action']} {entry['arguments'] or ''}" for entry in entries]
        return Result(entries, lines or ["nothing was changed"])
    if wishes.action == "undo":
        entry = undo(run)
        return Result({"undone": entry.action}, [f"took back {entry.action} of {entry.at}"])
    change = plan_change(run, wishes.action, arguments_of(wishes))
    asks = [ask for ask in change.asks if ask.ids] if wishes.ask else []
    errand = Errand.prepare(run, wishes, asks) if asks else None
    lines = change.explained() if wishes.ask else [line for line in change.explained() if not line.startswith("asks")]
    if errand:
        lines.append(f"that is {errand.calls:,} calls at most and {errand.cost / MICRO:.4f} USD at most")
    elif change.asks and not wishes.ask:
        lines += [f"leaves {len(ask.ids):,} labels of {ask.feature!r} empty" for ask in change.asks if ask.ids]
    data = _described(change, errand)
    if not wishes.sure and not _confirmed(lines):
        return Result(data | {"done": False}, [*lines, "nothing was changed: add --yes to do it"])
    asked = errand.ask() if errand else {}
    record_change(run, change, asked, errand.spent / MICRO if errand else 0.0)
    done = "done: `report`, `export` and `enrich` use it from now on; `features RUN undo` takes it back"
    return Result(data | {"done": True}, [*lines, done])


def arguments_of(wishes: Wishes) -> dict[str, Any]:
    """What the words on the command line mean for an action."""
    names, definitions = wishes.names, wishes.definitions
    if wishes.action == "rename":
        _require(len(names) == 2, "rename takes two names: the old one and the new one")
        return {"name": names[0], "to": names[1]}
    if wishes.action == "define":
        texts = names[1:] + definitions
        _require(len(names) >= 1 and len(texts) == 1, "define takes a name and one definition")
        return {"name": names[0], "definition": texts[0], "keep": wishes.keep}
    if wishes.action == "merge":
        _require(len(names) >= 2, "merge takes two names or more")
        return {"names": names, "into": wishes.into, "definition": definitions[0] if definitions else None}
    if wishes.action == "split":
        _require(len(names) >= 3, "split takes a name and two new ones or more")
        return {"name": names[0], "into": names[1:], "definitions": definitions}
    if wishes.action == "drop":
        _require(len(names) >= 1, "drop takes one name or more")
        return {"names": names}
    actions = "list, rename, merge, split, drop, define, undo, log"
    raise UsageError(f"unknown action {wishes.action!r}: choose one of {actions}")


@dataclass
class Errand:
    """Labels to be asked again, of the run's oracle, through its store."""

    prepared: Prepared
    recorded: Recorded
    asks: list[Ask]
    run_id: str

    @classmethod
    def prepare(cls, run: Run, wishes: Wishes, asks: list[Ask]) -> Errand:
        changed = {"out": str(run.folder), "budget": money(wishes.budget)}
        changed |= {key: value for key, value in (("store", wishes.store), ("dataset", wishes.dataset)) if value}
        prepared = prepare(DiscoverSettings.model_validate(run.summary["settings"] | changed))
        run_id = str(uuid4())
        scope = digest_of(["features", run.summary["scope"], wishes.action, wishes.names])
        budget = prepared.settings.budget_micro
        recorded = Recorded(prepared.oracle, prepared.store, run_id=run_id, scope=scope, budget=budget)
        return cls(prepared, recorded, asks, run_id)

    @property
    def calls(self) -> int:
        return sum(len(ask.ids) for ask in self.asks) * self.prepared.settings.votes

    @property
    def cost(self) -> int:
        """An upper bound, in micro-dollars: nothing for what is kept."""
        return sum(self.recorded.estimate([question for ask in self.asks for question in self._questions(ask)]))

    @property
    def spent(self) -> int:
        return self.recorded.cost

    def ask(self) -> dict[str, dict[str, Votes]]:
        """Votes by feature and example. Raises where the budget or the oracle stops it; what came is kept."""
        store, settings = self.prepared.store, self.prepared.settings
        run = store.runs.begin(
            self.run_id,
            self.recorded.scope,
            name=self.prepared.folder.name,
            flow="features",
            dataset=self.prepared.dataset.name,
            oracle=str(self.recorded.identity),
            settings=settings.model_dump(mode="json"),
        )
        run.spending = self.recorded
        with run, display().waiting(f"asking {self.calls:,} labels"):
            return {ask.feature: self._votes(ask) for ask in self.asks}

    def _votes(self, ask: Ask) -> dict[str, Votes]:
        panel = Panel(self.recorded, self._examples(ask), self.prepared.settings.votes)
        labelled = panel.label([Feature(ask.feature, ask.definition)])
        if labelled.stopped is not None:
            raise labelled.stopped
        return _cast(ask.ids, labelled.ballots[0])

    def _examples(self, ask: Ask) -> list[Any]:
        by_id = {example.id: example for example in self.prepared.dataset.examples}
        missing = next((name for name in ask.ids if name not in by_id), None)
        if missing is not None:
            raise RunError(f"example {missing!r} is not in the data set any more: say where it is with --dataset")
        return [by_id[name] for name in ask.ids]

    def _questions(self, ask: Ask) -> list[Question]:
        feature, votes = Feature(ask.feature, ask.definition), self.prepared.settings.votes
        return [Label(feature, example, voter) for example in self._examples(ask) for voter in range(votes)]


def _cast(ids: list[str], ballot: Ballot) -> dict[str, Votes]:
    refused = Counter(
        answer.question.example.id
        for answer in ballot.answers
        if answer.verdict is Verdict.REFUSED and isinstance(answer.question, Label)
    )
    return {
        name: (int(yes), int(no), refused[name], int(abstained) - refused[name])
        for name, yes, no, abstained in zip(ids, ballot.yes, ballot.no, ballot.abstained, strict=True)
    }


def _listed(run: Run) -> Result:
    table = run.features
    rows = [
        {"order": order, "name": str(row.name), "definition": str(row.definition), "positives": int(str(row.positives))}
        for order, row in enumerate(table.itertuples(index=False), start=1)
    ]
    return Result(rows, [f"{row['order']:3d} {row['name']} ({row['positives']})" for row in rows] or ["no features"])


def _described(change: Change, errand: Errand | None) -> dict[str, Any]:
    return {
        "action": change.action,
        "arguments": change.arguments,
        "kept": change.kept,
        "asked": {ask.feature: len(ask.ids) for ask in change.asks if ask.ids},
        "gone": change.gone,
        "calls": errand.calls if errand else 0,
        "usd": errand.cost / MICRO if errand else 0.0,
    }


def _confirmed(lines: list[str]) -> bool:
    """Asked only where somebody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print("\n".join(map(printable, lines)), file=sys.stderr)
    return input("go on? [y/N] ").strip().casefold() in ("y", "yes")


def _require(right: bool, what: str) -> None:
    if not right:
        raise UsageError(f"{what} (see python -m flows features --help)")
