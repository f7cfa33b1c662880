"""How anything gets on a terminal: results on stdout, messages on stderr.

Ids, names and paths may hold any character: what would move the cursor, change colours or turn a line around is printed
as an escape, in tables, lines and JSON alike."""

from __future__ import annotations

import json
import sys
import textwrap
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cyclopts.help import PlainFormatter
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts.help import HelpPanel
    from rich.console import ConsoleOptions

    from twothirds.flows.events import Events


def as_json(value: Any) -> str:
    """The same value for people and programs: control characters are written as JSON's own escapes."""
    from twothirds.sources import printable

    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(
        letter if letter == "\n" or printable(letter) == letter else json.dumps(letter)[1:-1] for letter in text
    )


PIPED_WIDTH = 160  # columns of a table
HELP_INDENT = 28  # columns before what an option means


def print_traceback(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """In place of Python's own, as `sys.excepthook`."""
    from twothirds.sources import printable_lines

    print(printable_lines("".join(traceback.format_exception(kind, error, where))), file=sys.stderr, end="")


class PlainConsole(Console):
    """Prints strings as they are: no markup, no colours for numbers, nothing that a terminal would obey."""

    def __init__(self, **named: Any) -> None:
        super().__init__(emoji=False, markup=False, highlight=False, **named)

    def render_str(self, text: str, **named: Any) -> Text:
        from twothirds.sources import printable_lines

        return super().render_str(printable_lines(text), **named)

    def on_broken_pipe(self) -> None:
        """Left to `main`, in place of an exit with status 1."""
        raise BrokenPipeError


def messages() -> Console:
    return PlainConsole(stderr=True)


def results() -> Console:
    return PlainConsole(width=None if sys.stdout.isatty() else PIPED_WIDTH)


def terminal_events(log: str = "text") -> Events:
    """What shows on stderr how far a command is: the one place where a command gets its events."""
    from twothirds.flows.events import Events
    from twothirds.flows.subscribers.json_log import JsonLog
    from twothirds.flows.subscribers.terminal import TerminalProgress

    return Events(JsonLog() if log == "json" else TerminalProgress(messages()))


def confirm(lines: Sequence[str]) -> bool:
    """Ask a person whether to go on; where nobody can be asked, the answer is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    console = messages()
    for line in lines:
        console.print(line, soft_wrap=True)
    console.print("go on? [y/N] ", end="")
    return input().strip().casefold() in ("y", "yes")


class PlainHelp(PlainFormatter):
    """Help in two columns, without colours and boxes: what a pipe gets."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:  # noqa: ARG002
        if panel.entries and panel.title:
            console.print(f"{panel.title}:", highlight=False, markup=False)
        for entry in panel.entries:
            with console.capture() as description:
                console.print(entry.description or "", soft_wrap=True)
            default = f" (default: {entry.default})" if entry.default is not None else ""
            is_parameter = panel.format == "parameter"
            names = (
                entry.display_labels_with_metavar if is_parameter else (*entry.positive_names, *entry.positive_shorts)
            )
            self._print_entry(", ".join(names), description.get() + default, console)
        if panel.entries:
            console.print()

    def _print_entry(self, name: str, meaning: str, console: Console) -> None:
        column, width = " " * HELP_INDENT, max(console.width, 2 * HELP_INDENT)
        lines = textwrap.wrap(" ".join(meaning.split()), width, initial_indent=column, subsequent_indent=column)
        if len(name) + 4 <= HELP_INDENT and lines:
            lines[0] = f"  {name}".ljust(HELP_INDENT) + lines[0][HELP_INDENT:]
        else:
            lines.insert(0, f"  {name}")
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
