"""What an error prints, and the exit status that it gives: one line that names the value and the remedy."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flows.errors import UsageError

if TYPE_CHECKING:
    from cyclopts import CycloptsError

DONE, FAILED, BAD_INPUT, WAITING = 0, 1, 2, 75
MAX_PATH_CHARS = 200  # of a path that an error line repeats
# Of the machine, not of what was given: no space, no quota, a broken disk, too many open files, no memory.
_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false"}


def explain(error: Exception) -> tuple[int, str]:
    """The exit status and the line, without secrets and without what a terminal would obey."""
    from flows.settings import Environment
    from sources import printable, redacted, without_secrets

    text = without_secrets(redacted(" ".join(str(error).split()), Environment.read().secrets))
    line = printable(text) or type(error).__name__
    if any(isinstance(one, OSError) and one.errno in _OF_THE_MACHINE for one in _causes(error)):
        return FAILED, _of_the_machine(error, line)
    if isinstance(error, UsageError):
        return BAD_INPUT, line
    from discovery import StrategyError
    from flows.prefect_api import ServerError
    from models import AnswersPending, AnswersUnusable, OracleError, OracleLost, ServerAway
    from reports.run import RunError
    from sources import DatasetError
    from store import StoreError, StoreUnavailable

    if isinstance(error, AnswersPending):
        return WAITING, line
    if isinstance(error, AnswersUnusable | OracleLost | ServerAway | ServerError | StoreUnavailable):
        return FAILED, line
    if isinstance(error, StrategyError | OracleError | RunError | DatasetError | StoreError):
        return BAD_INPUT, line
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return BAD_INPUT, f"cannot use {_path(error)!r} ({error.strerror.lower()}): give another path"
    return FAILED, f"{type(error).__name__}: {line} (add --debug for the traceback)"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _of_the_machine(error: Exception, line: str) -> str:
    if not isinstance(error, OSError):
        return line
    what = f"cannot use {_path(error)!r}" if error.filename is not None else "cannot read or write a file"
    return f"{what} ({(error.strerror or line).lower()}): free some of it and run again; what was answered is kept"


def _path(error: OSError) -> str:
    from sources import printable

    path = printable(str(error.filename))
    return path if len(path) <= MAX_PATH_CHARS else f"{path[:MAX_PATH_CHARS]}…"


def usage_error(error: CycloptsError) -> UsageError:
    """What the parser found wrong, in our words."""
    import cyclopts

    chain = " ".join(("python -m flows", *(error.command_chain or ())))
    see, argument = f"see {chain} --help", error.argument
    name = ""
    if argument is not None:
        name = argument.name if argument.name.startswith("--") else argument.name.upper()
    if isinstance(error, cyclopts.UnknownOptionError):
        given = error.token.keyword or error.token.value
        near = difflib.get_close_matches(given, [name for one in error.argument_collection for name in one.names], n=1)
        return UsageError(f"unknown option {given}: {f'did you mean {near[0]}? ' if near else ''}{see}")
    if isinstance(error, cyclopts.UnknownCommandError | cyclopts.UnusedCliTokensError) and error.unused_tokens:
        commands = _commands_of(error)
        if commands:
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


def _commands_of(error: CycloptsError) -> list[str]:
    app = error.app
    return [name for name in app if not name.startswith("-")] if app is not None else []
