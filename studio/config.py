"""Settings of the studio, and the functions it gets from layers above."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from twothirds.reports import Run
from twothirds.store import Cost, Night

# A unit vector per digest of a content, zeros where none is stored; None where there are none at all.
VectorsOf = Callable[[Sequence[str]], NDArray[np.float32] | None]
METRICS_PASSWORD = "TWOTHIRDS_METRICS_PASSWORD"  # noqa: S105 the name of the variable


class EditRefused(Exception):
    """What a person wanted cannot be done; the message says why and what to do. `stale`: others were quicker. `field`
    is the one that is wrong."""

    def __init__(self, message: str, *, stale: bool = False, field: str = "") -> None:
        super().__init__(message)
        self.stale, self.field = stale, field


@dataclass(frozen=True)
class CurationCommand:
    """A change of features as a form states it; `seen` is how many changes the log had when it was shown."""

    action: str
    names: list[str]
    by: str
    seen: int
    into: str | None = None
    definitions: list[str] = field(default_factory=list)
    keep: bool = False
    ask: bool = True
    budget: str | None = None
    may_spend: bool = False  # whether this person may pay for answers
    confirmed: bool = False


@dataclass(frozen=True)
class CurationStep:
    """What a change keeps, asks again and costs at most; `done` once it is made. Where the oracle cannot be asked,
    `unasked` says why, and the change can be made with labels left empty."""

    lines: list[str]
    usd: float
    calls: int
    done: bool
    unasked: str = ""


@dataclass(frozen=True)
class FormField:
    """A setting as a form asks for it."""

    name: str
    help: str
    default: str = ""
    choices: tuple[str, ...] = ()
    main: bool = False
    required: bool = False
    many: bool = False  # one value a line


@dataclass(frozen=True)
class OracleForm:
    """A kind of oracle as a form asks for it: how it is written, what it is, and its parameters."""

    kind: str
    form: str
    description: str
    parameters: tuple[FormField, ...]

    @property
    def named(self) -> bool:
        """Whether a model, a crowd or the like comes with its kind."""
        return ":" in self.form


@dataclass(frozen=True)
class StartPlan:
    """What a run will cost in USD; `budget` is what must be agreed to, empty where it costs nothing."""

    lines: list[str]
    budget: str
    folder: str
    likely: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class Starter:
    """Starts discover, enrich or compare, the first argument; `plan` and `begin` raise EditRefused. `compose` writes
    an oracle of its kind, model and parameters. `printed` is what a run that was started in a folder has printed,
    `goes_on` whether it still runs. `plan_again` and `begin_again` are for a discovery that goes on in its folder
    with another budget or number of questions."""

    fields: Callable[[str], list[FormField]]
    oracles: Callable[[], list[OracleForm]]
    compose: Callable[[str, str, Mapping[str, str]], str]
    datasets: Callable[[], list[str]]
    plan: Callable[[str, Mapping[str, str]], StartPlan]
    begin: Callable[[str, Mapping[str, str]], Path]
    printed: Callable[[Path], str]
    goes_on: Callable[[Path], bool]
    plan_again: Callable[[Path, Mapping[str, str]], StartPlan]
    begin_again: Callable[[Path, Mapping[str, str]], Path]


@dataclass(frozen=True)
class StudioConfig:
    """`curate` plans a change or makes it, `steer` enters what a person wants of a run that goes on (its last argument:
    whether they may spend), `export` writes a run in one format: all raise EditRefused. `invite` makes a person's link;
    `states` are the runs in the store, the latest first, `costs` its books, `nights` both, with what is to be done;
    `metrics` are figures for Prometheus, for who has the password."""

    roots: tuple[Path, ...]
    curate: Callable[[Run, CurationCommand], CurationStep]
    steer: Callable[[Path, Mapping[str, Any], str, Callable[[], Collection[str] | None], bool], str]
    export: Callable[[Run, str], Path]
    invite: Callable[[str, str], str]
    states: Callable[[], list[dict[str, Any]]]
    costs: Callable[[], list[Cost]]
    nights: Callable[[], list[Night]]
    metrics: Callable[[], str]
    metrics_password: SecretStr  # empty: nobody has it
    starter: Starter
    vectors: VectorsOf
