"""The estimate of what a form describes, before anything is spent; and then the command that a person would give."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from twothirds.flows.compare.forecast import forecast_comparison
from twothirds.flows.compare.preparation import prepare_comparison
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.checks import check, check_oracles
from twothirds.flows.enrich.forecast import forecast_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.estimate import Estimate
from twothirds.flows.oracle_specs import OracleSpec
from twothirds.flows.serving.forms import COMMANDS, form_fields
from twothirds.flows.serving.steer import validated
from twothirds.flows.settings import RunSettings
from twothirds.models import MICRO, OracleError, digest_of
from twothirds.reports.run import RunError
from twothirds.reports.versions import SUMMARY
from twothirds.sources import DatasetError, name_of, printable
from twothirds.store import StoreError
from twothirds.studio.config import EditRefused, StartPlan

STARTED, LOG = "start.json", "start.log"
REFUSED = (UsageError, RunError, OracleError, DatasetError, StoreError)
PLAIN_NAME = re.compile(r"\w[\w .-]{0,99}")


def forecast(command: str, read: Callable[[], RunSettings]) -> StartPlan:
    """What a command with the settings that `read` returns will cost. Nothing is sent. Raises EditRefused."""
    try:
        settings = read()
        expected = FORECASTS[command](settings)
    except REFUSED as error:
        raise EditRefused(str(error)) from None
    folder = Path(str(settings.out))  # type: ignore[attr-defined]
    with suppress(OSError):
        folder.rmdir()  # made to see whether it can be written; one that holds results stays
    budget = "" if not expected.most_left else f"{Decimal(expected.budget) / MICRO:.6f}"
    likely, most = expected.left / MICRO, expected.most_left / MICRO
    return StartPlan(list(expected.lines()), budget, folder.name, likely, most)


def launch(command: str, read: Callable[[], RunSettings]) -> Path:
    """Start it as `twothirds` does, and return its folder. It goes on when the studio ends."""
    try:
        settings = read()
        CHECKS[command](settings)
        folder = Path(str(settings.out))  # type: ignore[attr-defined]
        folder.mkdir(parents=True, exist_ok=True)
        if goes_on(folder):
            raise UsageError(f"{folder.name} is being written already: wait until that has ended")
    except (*REFUSED, OSError) as error:
        raise EditRefused(str(error)) from None
    chosen = {"command": command, "settings": settings.model_dump(mode="json", exclude_unset=True)}
    (folder / STARTED).write_text(json.dumps(chosen), encoding="utf-8")
    words = [sys.executable, "-m", "twothirds", command, settings.dataset, "--config", str(folder / STARTED)]
    with (folder / LOG).open("wb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # held by the command, which has the file open, for as long as it runs
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=os.environ
        )
    threading.Thread(target=process.wait, name="started run", daemon=True).start()  # else it stays as a zombie
    return folder


def goes_on(folder: Path) -> bool:
    """Whether what the studio has started there still runs."""
    try:
        with (folder / LOG).open("rb") as log:
            fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def printed_by(folder: Path) -> str:
    """The last lines of what the studio has started; empty where it started nothing."""
    try:
        text = (folder / LOG).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return printable(" ".join(text.splitlines()[-3:]))[-500:]


def form_settings(command: str, values: Mapping[str, str], store: str, roots: Sequence[Path]) -> RunSettings:
    """Raises UsageError that names the field. The same settings have the same folder, so that a run goes on there."""
    chosen, filled = COMMANDS[command], dict[str, Any]()
    for field in form_fields(command):
        text = values.get(field.name, "").strip()
        if text:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            filled[field.name] = lines if field.many else text
    place = filled.pop("out", "")
    settings = validated(chosen.settings, filled | ({"store": store} if store else {}))
    decides = {name: text for name, text in sorted(filled.items()) if name != "budget"}
    return settings.model_copy(update={"out": str(_folder(command, settings, decides, place, roots))})


def _folder(command: str, settings: RunSettings, decides: dict[str, Any], place: str, roots: Sequence[Path]) -> Path:
    name, root = name_of(settings.dataset), roots[0]
    if isinstance(settings, EnrichSettings):
        return _table(place or f"{name}-table", roots)
    if isinstance(settings, DiscoverSettings):
        name = f"{name}-{OracleSpec.parse(settings.oracle).kind}"
    else:
        name = f"{command}-{name}"
    return root / f"{name}-{digest_of(decides)[:8]}"


def _table(place: str, roots: Sequence[Path]) -> Path:
    """A new table below the first folder by its name, or one that is there. Raises UsageError for any other place."""
    if PLAIN_NAME.fullmatch(place):
        return roots[0] / place
    path = Path(place).resolve()
    if any(path.is_relative_to(root) for root in roots) and (path / SUMMARY).is_file():
        return path
    raise UsageError(f"out: {printable(place)[:200]} is no table here: choose one of the list, or give a plain name")


def _forecast_discovery(settings: Any) -> Estimate:
    prepared = prepare(settings)
    with closing(prepared.store):
        prepared.check_oracle()
        return forecast_discovery(prepared)


def _forecast_enrichment(settings: Any) -> Estimate:
    check_oracles(settings)
    return forecast_enrichment(settings)


def _forecast_comparison(settings: Any) -> Estimate:
    prepared = prepare_comparison(settings)
    with closing(prepared.store):
        prepared.check_oracles()
        return forecast_comparison(prepared)


FORECASTS: dict[str, Callable[[Any], Estimate]] = {
    "discover": _forecast_discovery,
    "enrich": _forecast_enrichment,
    "compare": _forecast_comparison,
}
CHECKS: dict[str, Callable[[Any], object]] = {  # say what is wrong with the settings
    "discover": lambda settings: prepare(settings).store.close(),
    "enrich": check,
    "compare": lambda settings: prepare_comparison(settings).store.close(),
}
