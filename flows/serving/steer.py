"""What people want of a discovery that runs, entered in its log; and the same discovery again, with another budget."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from twothirds.discovery import same_name
from twothirds.flows.discover.commands import AddFeature, AskAbout, CommandProblem, Veto, read_command
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.oracle_specs import may_cost
from twothirds.flows.settings import RunSettings
from twothirds.models.prompting import sounds_like_an_instruction
from twothirds.reports.curation import append_events, now
from twothirds.reports.run import LIVE, STEER, LiveRun, RunError, RunSummary

Settings = TypeVar("Settings", bound=RunSettings)
ONLY_RUNNING = ("stop", "budget")
ASK_MORE = ("add", "ask")
ENTERED = "entered: it is applied after this question"
BUDGET_ENTERED = "entered: it holds within a second"
LATER = "entered: it is applied when the discovery goes on"


class RunOver(CommandProblem):
    """Nothing applies a command any more."""


def enter_command(
    folder: Path,
    fields: Mapping[str, Any],
    by: str,
    ids: Callable[[], Collection[str] | None] = lambda: None,
    *,
    may_spend: bool = True,
) -> str:
    """Enter a command in the log of a run, and say when it is applied. `ids` are those of the data set, None where it
    cannot be read. Who may not spend asks only within a budget that another person has set. Raises CommandProblem,
    RunOver."""
    command = read_command({**fields, "by": by, "at": now()})
    live = LiveRun(folder / LIVE)
    if not live.path.is_file():
        raise RunOver("action", f"{folder} is no discovery that runs: give the folder of one")
    goes_on = live.goes_on
    if not goes_on and (command.action in ONLY_RUNNING or _is_finished(folder, live)):
        raise RunOver("action", "the discovery is not running any more: change its features in the run, or go on")
    match command:
        case Veto():
            _check_known(command, live)
        case AddFeature():
            _check_new(command, live)
        case AskAbout():
            _check_examples(command.examples, live, ids)
    if not may_spend:
        _check_money(command.action, live)
    append_events(folder / STEER, lambda _: [command.model_dump(mode="json")])
    return BUDGET_ENTERED if command.action == "budget" else ENTERED if goes_on else LATER


def _is_finished(folder: Path, live: LiveRun) -> bool:
    try:
        return RunSummary.read(folder).run_id == live.begun.get("run_id")
    except RunError:
        return False


def _check_money(action: str, live: LiveRun) -> None:
    if action == "budget":
        raise CommandProblem("usd", "only the owner of the studio changes what may be spent")
    settings = live.begun.get("settings", {})
    asked = (settings.get(name) for name in ("oracle", "labeller", "people", "cheap"))
    if action in ASK_MORE and not live.budget() and any(text and may_cost(str(text)) for text in asked):
        problem = "its answers cost money, and it has no budget: ask the owner of the studio to set one first"
        raise CommandProblem("action", problem)


def _check_known(command: Veto, live: LiveRun) -> None:
    known = {" ".join(name.split()) for name in live.names()}
    if command.name not in known:
        near = difflib.get_close_matches(command.name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "the page shows those there are"
        raise CommandProblem("name", f"there is no feature {command.name}: {hint}")


def _check_new(command: AddFeature, live: LiveRun) -> None:
    for field, text in (("name", command.name), ("definition", command.definition)):
        if sounds_like_an_instruction(text):
            raise CommandProblem(field, "it reads like an instruction to whoever answers: say what can be seen or read")
    for name in live.names():
        if same_name(name, command.name):
            raise CommandProblem("name", f"there is a feature {name} already: choose another name")
    if any(same_name(name, command.name) for name in live.vetoed()):
        raise CommandProblem("name", f"{command.name} was vetoed: choose another name")


def _check_examples(wanted: Sequence[str], live: LiveRun, ids: Callable[[], Collection[str] | None]) -> None:
    compared = live.begun.get("compared_ids")
    known = compared if compared is not None else ids()
    missing = next((id_ for id_ in wanted if known is not None and id_ not in known), None)
    if missing is not None:
        where = f"the {len(compared):,} examples that it compares" if compared is not None else "the data set"
        raise CommandProblem("examples", f"{missing} is not among {where}: choose another one")


def settings_again(folder: Path, values: Mapping[str, str], store: str) -> DiscoverSettings:
    """The same discovery with another budget or number of questions. Raises UsageError."""
    begun = LiveRun(folder / LIVE).begun if (folder / LIVE).is_file() else {}
    before = begun.get("settings")
    if not isinstance(before, dict):
        raise UsageError(f"{folder.name} does not say how it was started: give its command again")
    changed = {name: text.strip() for name in ("budget", "queries") if (text := values.get(name, "")).strip()}
    dropped = {"out", "replace", "retry_unusable", "budget", *(() if "budget" in changed else ("per",))}
    same = {name: value for name, value in before.items() if name not in dropped}
    if store and same.get("store") is None:
        same["store"] = store
    return validated(DiscoverSettings, same | changed).model_copy(update={"out": str(folder)})


def validated(model: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Raises UsageError that names the field."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name, wrong = str(problem["loc"][0]) if problem["loc"] else "", problem["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {wrong}" if name else wrong) from None
