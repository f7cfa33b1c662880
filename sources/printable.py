"""Text from outside as messages may show it: on one line, without control characters and without secrets."""

from __future__ import annotations

from twothirds.sources.secrets import without_secrets

HARMLESS = (
    "\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # several scripts need them
)


def quoted(location: str) -> str:
    """For messages: in quotes, on one line, without what is secret."""
    return repr(without_secrets(location))


def printable(text: str) -> str:
    """For messages: what would move the cursor, or turn the line around, is written as an escape."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in HARMLESS else repr(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """As `printable`, line by line."""
    return "\n".join(map(printable, text.split("\n")))
