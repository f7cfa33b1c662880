"""Writes flows/api.pyi, by which editors and type checkers know every setting: `python -m tests.support.api_stub`."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import twothirds.flows.api

PLACE = Path(__file__).parents[2] / "flows" / "api.pyi"
DATA = "Data"
WIDER = {  # what settings take from Python besides the text of the command line
    ("features", "known"): "str | Path | Run",
    ("out", "table", "about", "exclude"): "str | Path",
    ("budget",): "Decimal | float | str",
}
HEAD = """# Written by `python -m tests.support.api_stub` from the settings.

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from twothirds.flows.estimate import Estimate
from twothirds.reports import Run as Run
from twothirds.reports.page import Page

Data = str | Path | pd.DataFrame | Any  # an Arrow table or a HuggingFace Dataset too
"""


def stub() -> str:
    functions = [name for name in sorted(vars(twothirds.flows.api)["__all__"]) if name != "Run"]
    text = "\n".join([HEAD, *(f"def {name}{_signature(name)}: ..." for name in functions), ""])
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PLACE), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _signature(name: str) -> str:
    function = getattr(twothirds.flows.api, name)
    given = inspect.signature(function)
    parameters = [_parameter(one) for one in given.parameters.values()]
    shown = re.sub(r"'([^']+)'", r"\1", str(given.return_annotation)) if given.return_annotation else "Any"
    text = str(inspect.Signature(parameters))
    return f"{text} -> {shown}"


def _parameter(one: inspect.Parameter) -> inspect.Parameter:
    """As written, with names that the head imports, and any default as dots."""
    hint = DATA if one.name == "dataset" and one.kind is one.POSITIONAL_OR_KEYWORD else _named(one.annotation)
    for names, added in WIDER.items():
        if one.name in names:
            hint = re.sub(r"^(str|Decimal)\b", added, hint)
    default = one.default if one.default is one.empty else _Dots()
    return one.replace(annotation=_Verbatim(hint), default=default)


def _named(annotation: object) -> str:
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    shown = re.sub(r"(?:typing\.)?Optional\[(.+)\]$", r"\1 | None", shown)
    return re.sub(r"\b(?:typing|pathlib|decimal|collections\.abc|reports\.run\.\w+)\.", "", shown)


class _Verbatim(str):
    """Shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Dots:
    def __repr__(self) -> str:
        return "..."


if __name__ == "__main__":
    PLACE.write_text(stub(), encoding="utf-8")
