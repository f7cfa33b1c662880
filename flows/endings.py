"""How a run ends: the state that Prefect shows, the exit status of the command, and the event for automations.

docs/operations.md has the same table."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from twothirds.flows.errors import ServerError, UsageError

MAX_PATH_CHARS = 200  # of a path that an error line repeats
# Of the machine, not of what was given: no space, no quota, a broken disk, too many open files, no memory.
_OF_THE_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
EXTRAS = {  # packages that not everybody needs, and with which extra of twothirds they are installed
    "torch": "local",
    "transformers": "local",
    "psycopg": "postgres",
    "boto3": "s3",
    "botocore": "mturk",
    "prefect_dask": "dask",
    "distributed": "dask",
    "prefect_ray": "ray",
    "ray": "ray",
}


@dataclass(frozen=True)
class Ending:
    type: str  # of the state in Prefect
    name: str  # of the state; Prefect's own event is prefect.flow-run.NAME
    status: int
    event: str
    again: bool = False  # a scheduled run is tried again, for it may get better by itself


DONE = Ending("COMPLETED", "Completed", 0, "twothirds.run.completed")
BUDGET = Ending("COMPLETED", "BudgetUsedUp", 3, "twothirds.budget.exhausted")
WAITING = Ending("PAUSED", "Paused", 75, "twothirds.run.waiting")  # of a deployment: Suspended, until it is resumed
PARTIAL = Ending("FAILED", "Partial", 6, "twothirds.run.partial", again=True)
SERVER_DOWN = Ending("FAILED", "ServerDown", 4, "twothirds.server.down", again=True)
STORE_DOWN = Ending("FAILED", "StoreUnavailable", 1, "twothirds.store.unavailable", again=True)
DATASET_MISSING = Ending("FAILED", "DatasetMissing", 5, "twothirds.dataset.missing", again=True)
TABLE_BUSY = Ending("FAILED", "TableBusy", 8, "twothirds.table.busy", again=True)
CONTRACT = Ending("FAILED", "ContractViolated", 7, "twothirds.contract.violated")
UNUSABLE = Ending("FAILED", "AnswersUnusable", 1, "twothirds.answers.unusable")
BAD_INPUT = Ending("FAILED", "BadInput", 2, "twothirds.input.refused")
MACHINE = Ending("FAILED", "MachineFull", 1, "twothirds.machine.full")
FAILED = Ending("FAILED", "Failed", 1, "twothirds.run.failed", again=True)  # a defect: only this has a traceback
_NO_PREFECT = Ending("FAILED", "Failed", 1, "")  # there is no flow run that could show it
ENDINGS = (
    *(DONE, BUDGET, WAITING, PARTIAL, SERVER_DOWN, STORE_DOWN, DATASET_MISSING, CONTRACT, TABLE_BUSY, UNUSABLE),
    *(BAD_INPUT, MACHINE, FAILED),
)


def ending_of(error: BaseException) -> Ending:
    """Of a run, or a command, that ends by this error."""
    if any(isinstance(cause, OSError) and cause.errno in _OF_THE_MACHINE for cause in _causes(error)):
        return MACHINE
    if isinstance(error, UsageError) or extra_for(error):
        return BAD_INPUT
    from twothirds.discovery import StrategyError
    from twothirds.models import AnswersPending, AnswersUnusable, OracleError, OracleLost, ServerAway
    from twothirds.reports.run import RunError, TableBusy
    from twothirds.reports.versions import ContractViolated
    from twothirds.sources import DatasetError, DatasetMissing
    from twothirds.store import StoreError, StoreFull, StoreUnavailable

    endings: dict[type[BaseException], Ending] = {  # the first that fits: what is special comes before what is general
        AnswersPending: WAITING,
        AnswersUnusable: UNUSABLE,
        OracleLost: PARTIAL,
        ServerAway: SERVER_DOWN,
        ServerError: _NO_PREFECT,
        StoreFull: MACHINE,
        StoreUnavailable: STORE_DOWN,
        DatasetMissing: DATASET_MISSING,
        TableBusy: TABLE_BUSY,
        ContractViolated: CONTRACT,
        **dict.fromkeys((StrategyError, OracleError, RunError, DatasetError, StoreError), BAD_INPUT),
    }
    for kind, ending in endings.items():
        if isinstance(error, kind):
            return ending
    return BAD_INPUT if isinstance(error, OSError) and error.filename is not None and error.strerror else FAILED


def extra_for(error: BaseException) -> str:
    """The extra that brings the package which is missing; empty for any other error."""
    return EXTRAS.get((error.name or "").partition(".")[0], "") if isinstance(error, ModuleNotFoundError) else ""


def line_of(error: Exception) -> str:
    """What is said of it: one line, without secrets and without what a terminal would obey."""
    line, ending = clean(str(error)) or type(error).__name__, ending_of(error)
    if ending is MACHINE and isinstance(error, OSError):
        fault = f"cannot use {_path(error)!r}" if error.filename is not None else "cannot read or write a file"
        return f"{fault} ({(error.strerror or line).lower()}): free some of it and run again; what was answered is kept"
    if ending is BAD_INPUT and isinstance(error, OSError):
        return f"cannot use {_path(error)!r} ({str(error.strerror).lower()}): give another path"
    if isinstance(error, ModuleNotFoundError) and (extra := extra_for(error)):
        return f"the package {error.name} is not installed: pip install 'twothirds[{extra}]'"
    return f"{type(error).__name__}: {line} (add --debug for the traceback)" if ending is FAILED else line


def clean(text: str) -> str:
    """As one line that shows no secret."""
    from twothirds.flows.settings import Environment
    from twothirds.sources import printable, redacted, without_secrets

    return printable(without_secrets(redacted(" ".join(text.split()), Environment.read().secrets)))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _path(error: OSError) -> str:
    from twothirds.sources import printable

    path = printable(str(error.filename))
    return path if len(path) <= MAX_PATH_CHARS else f"{path[:MAX_PATH_CHARS]}…"
