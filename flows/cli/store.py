"""The command `store`: check it, settle what is in doubt, back it up, restore it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from flows.cli.options import STORE, StoreOutput, action, command_group, flag, option
from flows.cli.terminal import terminal_display
from flows.errors import UsageError

if TYPE_CHECKING:
    from store import Store

DONE, WRONG = 0, 1
store = command_group("store", "store check")


@action(store, "store check --store sqlite:///answers.sqlite")
def check(*, output: StoreOutput = STORE) -> int:
    """Recompute every key, checksum and sum, and list what is wrong (status 1)."""
    from flows.cli.store_check import check as check_store
    from store import DamagedStore

    try:
        with _existing(output.store) as opened:
            found, name = check_store(opened, terminal_display()), opened.name
            if opened.is_torn:  # the mark is left for the next one who looks
                opened.close_as_found()
    except DamagedStore as damaged:
        output.print({"answers": None, "problems": [str(damaged)], "notes": []}, [str(damaged)])
        return WRONG
    lines = [*found.problems, *found.notes]
    if found.problems:
        lines.append(f"store {name}: something is wrong; keep it as it is and restore a backup (docs/store.md)")
    else:
        lines.append(f"store {name}: {found.answers:,} answers; every key, checksum and sum is right")
    data = {"answers": found.answers, "problems": found.problems, "notes": found.notes}
    output.print(data, lines)
    return WRONG if found.problems else DONE


@action(store, "store settle --all --at 0.02 --because 'invoice 4711 of November'")
def settle(
    run: Annotated[str | None, option("RUN", "a run folder, its name or its id")] = None,
    /,
    *,
    all: Annotated[bool, flag("every run instead of one")] = False,
    at: Annotated[str | None, option("USD", "what the provider's bill shows for them in all")] = None,
    nothing: Annotated[bool, flag("the bill shows that they were not charged")] = False,
    because: Annotated[str | None, option("TEXT", "how you know; kept with each settlement")] = None,
    output: StoreOutput = STORE,
) -> None:
    """List questions whose cost is not known, or book what the provider's bill shows for them."""
    from flows.settings import micro, read_usd
    from models import in_usd
    from reports.drawing import plural

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
        found = opened.settlements.unsettled(which)
        lines = [
            f"{one.name} {one.run_id[:8]}, {one.oracle}, {one.kind}: {plural(one.calls, 'question')}, "
            f"at most {in_usd(one.micro, 6)}"
            for one in found
        ]
        data: dict[str, Any] = {"unknown": [one._asdict() for one in found]}
        if settles:
            done = opened.settlements.settle(which, cost, because or "")
            lines.append(f"{plural(done.calls, 'question')} settled at {in_usd(cost, 6)}, kept with the reason")
            data["settled"] = done._asdict()
        elif found:
            lines.append("settle them by the provider's bill: store settle … --at USD or --nothing, --because TEXT")
        else:
            lines.append("the cost of every question is known")
    output.print(data, lines)


@action(store, "store backup answers-2026-11-16.sqlite")
def backup(file: Annotated[str, option("FILE", "the new file to write")], /, *, output: StoreOutput = STORE) -> None:
    """Copy the store to a new file while runs go on."""
    from store import back_up

    with _existing(output.store) as opened, _percent("copied") as progress:
        back_up(opened, Path(file), progress)
    output.print(str(Path(file)), [str(Path(file))])


@action(store, "store restore answers-2026-11-16.sqlite --store new.sqlite")
def restore(file: Annotated[str, option("FILE", "the backup to read")], /, *, output: StoreOutput = STORE) -> None:
    """Make a new store from a backup."""
    from flows.settings import default_store
    from store import restore as copy
    from store import store_name

    url = output.store or default_store()
    with _percent("restored") as progress:
        copy(Path(file), url, progress)
    output.print(store_name(url), [store_name(url)])


def _existing(url: str | None) -> Store:
    """The store, which must exist: a typo in --store must not create a new one."""
    from flows.settings import default_store
    from store import DamagedStore, Store, StoreError, sqlite_file, store_name

    url = url or default_store()
    path = sqlite_file(url)
    if path is not None and not path.exists():
        raise StoreError(f"store {store_name(url)} is not there: give its URL or path with --store")
    if path is not None and path.is_file() and path.stat().st_size <= 1:  # bytes: SQLite takes that for a new database
        raise DamagedStore(f"store {store_name(url)} is an empty file, as a copy that failed is: restore a backup")
    return Store.open(url, waiting=terminal_display().waiting)


@contextmanager
def _percent(detail: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how far a copy is, in percent of what is counted."""

    display = terminal_display()
    with display.counting(100, "%"):
        yield lambda done, total: display.update(100 * done // max(total, 1), detail)
