"""What runs: a folder per Prefect flow, and the command line (`python -m flows`).

From Python and notebooks: `from flows.api import discover`, then
`run = discover("datasets/faces", oracle="contrastive")`."""

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

VERSION = "0.1.0"
APP = "twothirds"
_ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = ("discovery", "models", "reports", "sources", "store", "studio", "tasks")


def _assert_no_clash() -> None:
    """Packages of the same names that come first on sys.path, such as your own models/, would be taken for ours."""
    for name in _FOLDERS:
        found = find_spec(name)
        path = Path((found.origin or next(iter(found.submodule_search_locations or ()), "")) if found else _ROOT / name)
        if _ROOT not in path.resolve().parents:
            line = f"{path} hides twothirds' own `{name}`: rename it, run from another folder, or put {_ROOT} first on "
            line += "sys.path before you import flows"
            if sys.argv[:1] != ["-m"]:
                raise ImportError(line)
            print(f"error: {line}", file=sys.stderr)
            raise SystemExit(2)


_assert_no_clash()

if sys.argv[:1] == ["-m"]:  # `python -m flows` is being imported: nothing has begun, so a signal just ends it
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(_number, lambda number, _frame: os._exit(128 + number))  # until flows.cli.signals listens
