"""The command `store`: check it, back it up, restore it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from flows.cli.runs import Command
from flows.cli.terminal import print_result
from flows.errors import UsageError
from flows.progress import Display

EXAMPLE = "example: python -m flows store check; python -m flows store backup answers-2026-11-16.sqlite"
DONE, WRONG = 0, 1


def add_store_command(command: Command) -> None:
    store = command("store", "check the store of all answers, back it up, restore a backup", EXAMPLE, _store)
    store.add_argument(
        "action",
        metavar="check|backup|restore",
        help="check: compute every key anew, add up the books, say what is wrong (status 1); "
        "backup: copy it to a new FILE while runs go on; restore: make a new store from FILE",
    )
    store.add_argument("file", nargs="?", metavar="FILE", help="backup: to write; restore: to read")
    store.add_argument("--store", metavar="STORE", help="URL or path of the store")


def _store(arguments: argparse.Namespace) -> int:
    doing = {"check": _check, "backup": _backup, "restore": _restore}
    if arguments.action not in doing:
        raise UsageError(f"unknown action {arguments.action!r}: choose one of {', '.join(doing)}")
    if (arguments.file is None) != (arguments.action == "check"):
        wants = "takes no FILE" if arguments.action == "check" else "takes the FILE of the backup"
        raise UsageError(f"store {arguments.action} {wants}: see python -m flows store --help")
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages
    from flows.settings import default_store

    return doing[arguments.action](arguments, arguments.store or default_store(), TerminalDisplay(messages()))


def _check(arguments: argparse.Namespace, url: str, display: Display) -> int:
    from flows.store_check import check
    from store.errors import DamagedStore

    try:
        with _present(url, display) as store:
            found, name = check(store, display), store.name
    except DamagedStore as damaged:
        print_result({"answers": None, "problems": [str(damaged)], "notes": []}, [str(damaged)], json=arguments.json)
        return WRONG
    lines = [*found.problems, *found.notes]
    if found.problems:
        lines.append(f"store {name}: something is wrong; keep it as it is and restore a backup (docs/store.md)")
    else:
        lines.append(f"store {name}: {found.answers:,} answers; every key, checksum and sum is right")
    print_result(
        {"answers": found.answers, "problems": found.problems, "notes": found.notes}, lines, json=arguments.json
    )
    return WRONG if found.problems else DONE


def _backup(arguments: argparse.Namespace, url: str, display: Display) -> int:
    from store.backup import backup

    path = Path(arguments.file)
    with _present(url, display) as store, _Progress(display, "copied") as tell:
        backup(store, path, tell)
    print_result(str(path), [str(path)], json=arguments.json)
    return DONE


def _restore(arguments: argparse.Namespace, url: str, display: Display) -> int:
    from store.backup import restore
    from store.connection import store_name

    with _Progress(display, "restored") as tell:
        restore(Path(arguments.file), url, tell)
    print_result(store_name(url), [store_name(url)], json=arguments.json)
    return DONE


def _present(url: str, display: Display) -> Any:
    """The store, which must exist: a typo in --store must not create a new one."""
    from store import Store, StoreError
    from store.connection import sqlite_file, store_name

    path = sqlite_file(url)
    if path is not None and not path.exists():
        raise StoreError(f"store {store_name(url)} is not there: give its URL or path with --store")
    return Store.open(url, waiting=display.waiting)


class _Progress:
    """Tells how far a copy is, in percent, for pages and rows are nobody's measure."""

    def __init__(self, display: Display, detail: str) -> None:
        self._shown, self._detail = display, detail
        self._counting = self._shown.counting(100, "%")

    def __enter__(self) -> _Progress:
        self._counting.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._counting.__exit__(*error)

    def __call__(self, done: int, total: int) -> None:
        self._shown.update(100 * done // max(total, 1), self._detail)
