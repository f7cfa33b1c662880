"""What an error prints, and the exit status that it gives: one line that names the value and the remedy."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from twothirds.flows.endings import BUDGET, ending_of, line_of
from twothirds.flows.errors import UsageError

if TYPE_CHECKING:
    from cyclopts import CycloptsError

_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false"}


def explain(error: Exception) -> tuple[int, str]:
    """The exit status and the line."""
    return ending_of(error).status, line_of(error)


def status_of(stopped_because: str) -> int:
    """Of a run that has come to its end, by the reason that its summary names."""
    return BUDGET.status if stopped_because == "budget" else 0


def usage_error(error: CycloptsError) -> UsageError:
    """What the parser found wrong, in our words."""
    import cyclopts

    chain = " ".join(("twothirds", *(error.command_chain or ())))
    see, argument = f"see {chain} --help", error.argument
    name = ""
    if argument is not None:
        name = argument.name if argument.name.startswith("--") else argument.name.upper()
    if isinstance(error, cyclopts.UnknownOptionError):
        word = error.token.keyword or error.token.value
        near = difflib.get_close_matches(
            word, [name for argument in error.argument_collection for name in argument.names], n=1
        )
        return UsageError(f"unknown option {word}: {f'did you mean {near[0]}? ' if near else ''}{see}")
    if isinstance(error, cyclopts.UnknownCommandError | cyclopts.UnusedCliTokensError) and error.unused_tokens:
        if commands := [name for name in error.app or () if not name.startswith("-")]:
            return UsageError(f"unknown command {error.unused_tokens[0]!r}: choose one of {', '.join(commands)}")
        return UsageError(f"{error.unused_tokens[0]!r} is one word too many: {see}")
    if isinstance(error, cyclopts.MissingArgumentError) and argument is not None:
        if argument.tokens or error.keyword:
            return UsageError(f"{error.keyword or name} needs a value: {see}")
        return UsageError(f"{name} is missing: give {argument.parameter.help}")
    if isinstance(error, cyclopts.CoercionError) and argument is not None and error.token is not None:
        expected = _EXPECTED.get(error.target_type, "another value") if error.target_type else "another value"
        return UsageError(f"{error.token.keyword or name} {error.token.value!r}: give {expected}")
    return UsageError(f"{error} ({see})")
