"""What people want of a discovery that runs, entered in its log; and the same discovery again, with another budget."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from discovery import same_name
from flows.discover import AnyWish, DiscoverSettings, WishProblem, read_wish
from flows.errors import UsageError
from flows.serving.process import validated
from models.prompting import sounds_like_an_instruction
from reports.curation import append_events, now
from reports.run import LIVE, STEER, LiveRun, RunError, RunSummary

ONLY_RUNNING = ("stop", "budget")
ENTERED = "entered: it is heeded after this question"
LATER = "entered: it is heeded when the discovery goes on"


class RunOver(WishProblem):
    """Nothing heeds a wish any more."""


def enter_wish(
    folder: Path, fields: Mapping[str, Any], by: str, ids: Callable[[], Collection[str] | None] = lambda: None
) -> str:
    """Enter a wish in the log of a run, and say when it is heeded. `ids` are those of the data set, None where it
    cannot be read. Raises WishProblem, RunOver."""
    wish = read_wish({**fields, "by": by, "at": now()})
    live = LiveRun(folder / LIVE)
    if not live.path.is_file():
        raise RunOver("action", f"{folder} is no discovery that runs: give the folder of one")
    goes_on = live.goes_on
    if not goes_on and (wish.action in ONLY_RUNNING or _is_finished(folder, live)):
        raise RunOver("action", "the discovery is not running any more: change its features in the run, or go on")
    for check in (_check_names, _check_new_names, _check_about):
        check(wish, live)
    if wish.action == "ask":
        _check_examples(wish.examples, live, ids)
    append_events(folder / STEER, lambda _: [wish.model_dump(mode="json")])
    return ENTERED if goes_on else LATER


def _is_finished(folder: Path, live: LiveRun) -> bool:
    try:
        return RunSummary.read(folder).run_id == live.begun.get("run_id")
    except RunError:
        return False


def _check_names(wish: AnyWish, live: LiveRun) -> None:
    """Those of features that must be there."""
    wanted = {"veto": "name", "rename": "name", "merge": "names"}.get(wish.action)
    if wanted is None:
        return
    names, known = getattr(wish, wanted), {" ".join(name.split()) for name in live.names()}
    for name in names if isinstance(names, tuple) else (names,):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "the page shows those there are"
            raise WishProblem(wanted, f"there is no feature {name}: {hint}")


def _check_new_names(wish: AnyWish, live: LiveRun) -> None:
    field = {"rename": "to", "add": "name", "merge": "into"}.get(wish.action)
    if field is None:
        return
    new = getattr(wish, field)
    before = (wish.name,) if wish.action == "rename" else wish.names if wish.action == "merge" else ()
    for text, of in ((new, field), (getattr(wish, "definition", ""), "definition")):
        if sounds_like_an_instruction(text):
            raise WishProblem(of, "it reads like an instruction to whoever answers: say what can be seen or read")
    for name in live.names():
        if name not in before and same_name(name, new):
            raise WishProblem(field, f"there is a feature {name} already: choose another name, or merge the two")
    if any(same_name(name, new) for name in live.vetoed()):
        raise WishProblem(field, f"{new} was vetoed: choose another name")


def _check_about(wish: AnyWish, live: LiveRun) -> None:
    if wish.action == "about" and not live.begun.get("reads_about", True):
        who = live.begun.get("oracle")
        raise WishProblem("text", f"{who} is not told what the data is about: nothing would change")


def _check_examples(wanted: Sequence[str], live: LiveRun, ids: Callable[[], Collection[str] | None]) -> None:
    compared = live.begun.get("compared_ids")
    known = compared if compared is not None else ids()
    missing = next((one for one in wanted if known is not None and one not in known), None)
    if missing is not None:
        where = f"the {len(compared):,} examples that it compares" if compared is not None else "the data set"
        raise WishProblem("examples", f"{missing} is not among {where}: choose another one")


def settings_again(folder: Path, values: Mapping[str, str], store: str) -> DiscoverSettings:
    """The same discovery with another budget or number of questions. Raises UsageError."""
    begun = LiveRun(folder / LIVE).begun if (folder / LIVE).is_file() else {}
    before = begun.get("settings")
    if not isinstance(before, dict):
        raise UsageError(f"{folder.name} does not say how it was started: give its command again")
    changed = {name: text.strip() for name in ("budget", "queries") if (text := values.get(name, "")).strip()}
    kept = {name: value for name, value in before.items() if name not in ("out", "replace", "retry_unusable", "budget")}
    if store and kept.get("store") is None:
        kept["store"] = store
    return validated(DiscoverSettings, kept | changed).model_copy(update={"out": str(folder)})
