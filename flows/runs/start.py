"""Discoveries that the studio starts: a form made of the settings, the estimate before anything is spent, and then the
same command that a person would give, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from flows.discover import DiscoverSettings, forecast_discovery, plans_of, prepare
from flows.errors import UsageError
from flows.oracle_specs import OracleSpec
from models import MICRO, OracleError, digest_of
from reports.run import RunError
from sources import DatasetError, name_of, printable
from store import StoreError

if TYPE_CHECKING:
    from studio import FormField, StartPlan

FIRST = ("dataset", "oracle", "about", "target", "queries", "votes", "budget")
SET_BY_STUDIO = ("store", "out", "replace", "retry_unusable", "wait")
LOG = "start.log"
REFUSED = (UsageError, RunError, OracleError, DatasetError, StoreError)


def form_fields() -> list[FormField]:
    """One for each setting, the main ones first."""
    from studio import FormField

    names = [*FIRST, *(name for name in DiscoverSettings.model_fields if name not in FIRST)]
    fields = DiscoverSettings.model_fields
    return [
        FormField(
            name,
            fields[name].description or "",
            "" if fields[name].default in (None, PydanticUndefined, "") else str(fields[name].default),
            tuple(_choices(fields[name])),
            main=name in FIRST,
            required=fields[name].is_required(),
        )
        for name in names
        if name not in SET_BY_STUDIO
    ]


def plan_start(values: Mapping[str, str], store: str, root: Path) -> StartPlan:
    """What it will cost, and other plans. Nothing is sent. Raises EditRefused."""
    from studio import EditRefused, StartPlan

    try:
        settings = _settings(values, store, root)
        prepared = prepare(settings)
        prepared.check_oracle()
        expected = forecast_discovery(prepared, plans_of)
    except REFUSED as error:
        raise EditRefused(str(error)) from None
    with suppress(OSError):
        Path(str(settings.out)).rmdir()  # made to see whether it can be written; one that holds a run stays
    budget = "" if not expected.most_left else f"{Decimal(expected.budget) / MICRO:.6f}"
    plans = [(one.name, one.options, str(one)) for one in expected.plans] if expected.price.most else []
    return StartPlan(list(expected.lines()), plans, budget, Path(str(settings.out)).name)


def begin(values: Mapping[str, str], store: str, root: Path) -> Path:
    """Start it as `python -m flows discover` does, and return its run folder. It goes on when the studio ends."""
    from studio import EditRefused

    try:
        settings = _settings(values, store, root)
        prepare(settings)  # says what is wrong with them
        folder = Path(str(settings.out))
        folder.mkdir(parents=True, exist_ok=True)
    except (*REFUSED, OSError) as error:
        raise EditRefused(str(error)) from None
    chosen = settings.model_dump(mode="json", exclude_unset=True)
    (folder / "start.json").write_text(json.dumps({"settings": chosen}), encoding="utf-8")
    command = [sys.executable, "-m", "flows", "discover", settings.dataset]
    command += ["--config", str(folder / "start.json")]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=os.environ
        )
    threading.Thread(target=process.wait, name="started run", daemon=True).start()  # else it stays as a zombie
    return folder


def what_was_said(folder: Path) -> str:
    """The last lines of a discovery that the studio started; empty where it started none."""
    try:
        text = (folder / LOG).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return printable(" ".join(text.splitlines()[-3:]))[-500:]


def _settings(values: Mapping[str, str], store: str, root: Path) -> DiscoverSettings:
    """Raises UsageError that names the field. The same settings have the same folder, so that a run goes on there."""
    known = {name: text.strip() for name, text in values.items() if text.strip() and name not in SET_BY_STUDIO}
    try:
        settings = DiscoverSettings.model_validate(known | ({"store": store} if store else {}))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name, wrong = str(problem["loc"][0]) if problem["loc"] else "", problem["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: {wrong}" if name else wrong) from None

    kept = {name: text for name, text in sorted(known.items()) if name != "budget"}
    kind = OracleSpec.parse(settings.oracle).kind
    out = root / f"{name_of(settings.dataset)}-{kind}-{digest_of(kept)[:8]}"
    return settings.model_copy(update={"out": str(out)})


def _choices(field: FieldInfo) -> list[str]:
    """Of a field that takes one of a few words, or yes and no."""
    kinds: tuple[Any, ...] = (field.annotation, *get_args(field.annotation))
    words = [str(word) for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    return words or (["true", "false"] if bool in kinds else [])
