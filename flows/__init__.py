"""What runs: a folder per Prefect flow, and the command line (`python -m flows`).

From Python and notebooks: `from flows.discover import discover`, then
`run = discover("datasets/faces", oracle="contrastive")`."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

VERSION = "0.1.0"

if sys.argv[:1] == ["-m"]:  # `python -m flows` is being imported: nothing has begun, so a signal just ends it
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(_number, lambda number, _frame: os._exit(128 + number))  # until flows.cli.signals listens


def on_first_use(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A face's `__getattr__` that imports a module when one of its names is asked for: flows import Prefect, and
    settings and help are read without it."""
    module_of = {name: module for module, listed in names.items() for name in listed.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get
