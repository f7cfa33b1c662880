"""The command `store`: check it, settle what is in doubt, back it up, restore it, remove what nobody needs."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from twothirds.flows.cli.options import STORE, StoreOutput, action, command_group, flag, option
from twothirds.flows.cli.terminal import terminal_events
from twothirds.flows.errors import UsageError

if TYPE_CHECKING:
    from twothirds.store import Store

DONE, WRONG = 0, 1
DAY_SECONDS = 86_400
store = command_group("store", "store check")


@action(store, "store check --store sqlite:///answers.sqlite")
def check(*, output: StoreOutput = STORE) -> int:
    """Recompute every key, checksum and sum, and list what is wrong (status 1)."""
    from twothirds.flows.cli.store_check import check as check_store
    from twothirds.store import DamagedStore

    try:
        with _existing(output.store) as opened:
            found, name = check_store(opened, terminal_events()), opened.name
            if opened.is_incomplete:  # the mark is left for the next one who looks
                opened.close_as_found()
    except DamagedStore as damaged:
        output.print({"answers": None, "problems": [str(damaged)], "notes": []}, [str(damaged)])
        return WRONG
    lines = [*found.problems, *found.notes, found.size_line]
    if found.problems:
        lines.append(f"store {name}: something is wrong; keep it as it is and restore a backup (docs/store.md)")
    else:
        lines.append(f"store {name}: {found.answers:,} answers; every key, checksum and sum is right")
    data = {"answers": found.answers, "problems": found.problems, "notes": found.notes}
    data |= {"bytes": found.sizes, "replies": found.replies}
    output.print(data, lines)
    return WRONG if found.problems else DONE


@action(store, "store prune --older 90 --archive replies-2026-11.jsonl.gz --yes")
def prune(
    *,
    older: Annotated[float, option("DAYS", "what is older than so many days")] = 90,
    only: Annotated[Literal["replies", "runs"] | None, option("replies|runs", "one of the two (default: both)")] = None,
    archive: Annotated[str | None, option("FILE", "write what is removed to this new file first")] = None,
    yes: Annotated[bool, flag("do it; without, it only says what would be removed")] = False,
    output: StoreOutput = STORE,
) -> None:
    """Remove raw replies, and entries of runs that asked nothing. Answers, charges and sums stay."""
    from twothirds.studio.web import plural

    if not older > 0:
        raise UsageError(f"--older {older:g}: give a number of days above 0")
    before, events = time.time() - older * DAY_SECONDS, terminal_events()
    with _existing(output.store) as opened, _archive(archive if yes else None) as keep:
        texts, size = 0, 0
        with events.counting(None, "replies") as show:
            for page in opened.housekeeping.replies(before) if only != "runs" else ():
                texts += len(page)
                # Labels that came in one reply are stored together, with its text once.
                size += sum(len(raw.encode()) for _, raw in {(reply.request, reply.raw) for reply in page})
                if yes and page:
                    keep([{"reply": reply._asdict()} for reply in page])
                    opened.housekeeping.remove_replies(page)
                show(texts, f"{size / 1e6:,.1f} MB")
        runs = opened.housekeeping.idle_runs(before) if only != "replies" else []
        lines = [
            f"{texts:,} raw replies older than {older:g} days, {size / 1e6:,.1f} MB",
            f"{plural(len(runs), 'run')} ended more than {older:g} days ago that asked and used nothing",
        ]
        if yes:
            keep([{"run": run} for run in runs])
            opened.housekeeping.remove_runs([run["id"] for run in runs])
            with events.waiting("giving the space back"):
                smaller = opened.housekeeping.give_back_space()
            lines.append("removed" if smaller else "removed; the file gets smaller by a prune while no run is writing")
        else:
            lines.append("nothing was changed: add --yes to remove them, and --archive FILE to keep a copy")
    output.print({"replies": texts, "bytes": size, "runs": len(runs), "removed": yes}, lines)


@contextmanager
def _archive(name: str | None) -> Iterator[Callable[[Sequence[dict[str, Any]]], None]]:
    """Writes lines to a new file, each batch safely before the next; without a name nowhere."""
    if name is None:
        yield lambda _lines: None
        return
    path = Path(name)
    try:
        file = path.open("xb")
    except FileExistsError:
        raise UsageError(f"--archive {name} exists already and is not overwritten: give another name") from None

    def keep(lines: Sequence[dict[str, Any]]) -> None:
        # Each batch is a gzip member of its own: what is removed next is in the file even if this process is killed.
        file.write(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
        file.flush()
        os.fsync(file.fileno())

    with file:
        yield keep


@action(store, "store settle --all --at 0.02 --because 'invoice 4711 of November'")
def settle(
    run: Annotated[str | None, option("RUN", "a run folder, its name, its id or the end of it")] = None,
    /,
    *,
    all: Annotated[bool, flag("every run instead of one")] = False,
    at: Annotated[str | None, option("USD", "what the provider's bill shows for them in all")] = None,
    nothing: Annotated[bool, flag("the bill shows that they were not charged")] = False,
    because: Annotated[str | None, option("TEXT", "how you know; kept with each settlement")] = None,
    output: StoreOutput = STORE,
) -> None:
    """List requests whose cost is not known, or book what the provider's bill shows for them."""
    from twothirds.flows.settings import micro, read_usd
    from twothirds.models import in_usd
    from twothirds.store import StoreError, short_id
    from twothirds.studio.web import plural

    if (run is None) is not all or (at is not None and nothing):
        raise UsageError("store settle: give a RUN or --all, and at most one of --at and --nothing")
    settles = at is not None or nothing
    if settles and not (because or "").strip():
        raise UsageError("store settle: say how you know with --because, as in --because 'invoice 4711'")
    cost = micro(read_usd(at, "--at")) if at is not None else 0
    if cost < 0:
        raise UsageError(f"--at {at} is below 0: give what the bill shows")
    which = None if run is None else Path(run).name
    with _existing(output.store) as opened:
        if which is not None and not opened.runs.knows(which):
            raise StoreError(f"no run {run!r} in this store: `twothirds costs` lists those that are")
        found = opened.settlements.unsettled(which)
        lines = [
            f"{entry.name} {short_id(entry.run_id)}, {entry.oracle}, {entry.kind}: "
            f"{plural(entry.requests, 'request')}, at most {in_usd(entry.micro, 6)}"
            for entry in found
        ]
        data: dict[str, Any] = {"unknown": [cost._asdict() for cost in found]}
        if settles:
            done = opened.settlements.settle(which, cost, because or "")
            lines.append(f"{plural(done.requests, 'request')} settled at {in_usd(cost, 6)}, kept with the reason")
            data["settled"] = done._asdict()
        elif found:
            lines.append("settle them by the provider's bill: store settle … --at USD or --nothing, --because TEXT")
        else:
            lines.append("the cost of every request is known")
    output.print(data, lines)


@action(store, "store backup answers-2026-11-16.sqlite")
def backup(file: Annotated[str, option("FILE", "the new file to write")], /, *, output: StoreOutput = STORE) -> None:
    """Copy the store to a new file while runs go on."""
    from twothirds.store import back_up

    with _existing(output.store) as opened, _percent("copied") as progress:
        back_up(opened, Path(file), progress)
    output.print(str(Path(file)), [str(Path(file))])


@action(store, "store restore answers-2026-11-16.sqlite --store new.sqlite")
def restore(file: Annotated[str, option("FILE", "the backup to read")], /, *, output: StoreOutput = STORE) -> None:
    """Make a new store from a backup."""
    from twothirds.flows.settings import default_store
    from twothirds.store import restore as copy
    from twothirds.store import store_name

    url = output.store or default_store()
    with _percent("restored") as progress:
        copy(Path(file), url, progress)
    output.print(store_name(url), [store_name(url)])


def _existing(url: str | None) -> Store:
    """The store, which must exist: a typo in --store must not create a new one."""
    from twothirds.flows.settings import default_store
    from twothirds.store import DamagedStore, Store, StoreError, sqlite_file, store_name

    url = url or default_store()
    path = sqlite_file(url)
    if path is not None and not path.exists():
        raise StoreError(f"store {store_name(url)} is not there: give its URL or path with --store")
    if path is not None and path.is_file() and path.stat().st_size <= 1:  # bytes: SQLite takes that for a new database
        raise DamagedStore(f"store {store_name(url)} is an empty file, as a copy that failed is: restore a backup")
    return Store.open(url)


@contextmanager
def _percent(detail: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how far a copy is, in percent of what is counted."""

    with terminal_events().counting(100, "%") as show:
        yield lambda done, total: show(100 * done // max(total, 1), detail)
