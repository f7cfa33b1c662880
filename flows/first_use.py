"""Faces of packages whose flows import Prefect: settings and help are read without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that imports the names of each module when the first of them is asked for."""
    module_of = {name: module for module, listed in names.items() for name in listed.split()}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get
