"""How anything gets on a terminal. Ids, names and paths may hold whatever somebody wrote: what would move the cursor,
change colours or turn a line around is shown as an escape, in tables, lines and JSON alike."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from sources.location import printable


def printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def as_json(value: Any) -> str:
    """For people and programs: the same value, with what a terminal would obey as JSON's own escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(
        letter if letter == "\n" or printable(letter) == letter else json.dumps(letter)[1:-1] for letter in text
    )


def print_result(data: Any, lines: Iterable[str], *, json: bool) -> None:
    """Results go to stdout: as JSON, or as lines."""
    print(as_json(data) if json else "\n".join(map(printable, lines)))


class PrintableFormatter(logging.Formatter):
    """What servers and libraries log may quote a visitor or a file, in tracebacks above all."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"printable": {"()": PrintableFormatter, "format": "%(levelname)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "printable"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}


def print_traceback(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """In place of Python's own, as `sys.excepthook`."""
    print(printable_lines("".join(traceback.format_exception(kind, error, where))), file=sys.stderr, end="")
