"""Forms made of the settings of a flow and of the kinds of oracle, what is made of them once they are filled in, and
the data sets that they offer: those that ship, and what looks like one below the folders that the studio serves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import get_origin

from pydantic_core import PydanticUndefined

from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.oracle_specs import KINDS, OracleSpec, ParameterDoc, choices_of
from twothirds.flows.settings import RunSettings
from twothirds.sources import is_image, is_table, shipped_names
from twothirds.studio.config import FormField, OracleForm

SET_BY_STUDIO = ("store", "out", "replace", "retry_unusable", "wait")
YES_NO = ("true", "false")


@dataclass(frozen=True)
class StartCommand:
    """What can be started; `first` are the settings that a form asks for before the others."""

    settings: type[RunSettings]
    first: tuple[str, ...]
    set_by_studio: tuple[str, ...] = SET_BY_STUDIO


COMMANDS = {
    "discover": StartCommand(DiscoverSettings, ("dataset", "oracle", "about", "target", "queries", "votes", "budget")),
    "enrich": StartCommand(
        EnrichSettings,
        ("dataset", "features", "oracle", "about", "votes", "agree", "expect", "out", "budget"),
        ("store", "retry_unusable"),
    ),
    "compare": StartCommand(
        CompareSettings, ("dataset", "oracles", "features", "votes", "sample", "comparisons", "budget")
    ),
}


def form_fields(command: str) -> list[FormField]:
    """One for each setting, the main ones first."""
    chosen = COMMANDS[command]
    fields, switches = chosen.settings.model_fields, (bool, bool | None)
    names = [*chosen.first, *(name for name in fields if name not in chosen.first)]
    return [
        FormField(
            name,
            fields[name].description or "",
            "" if fields[name].default in (None, PydanticUndefined, "") else str(fields[name].default),
            tuple(choices_of(fields[name].annotation)) or (YES_NO if fields[name].annotation in switches else ()),
            main=name in chosen.first,
            required=fields[name].is_required(),
            many=get_origin(fields[name].annotation) is tuple,
        )
        for name in names
        if name not in chosen.set_by_studio
    ]


def oracle_forms() -> list[OracleForm]:
    """The kinds of oracle with their parameters, as `twothirds oracles` lists them."""
    return [
        OracleForm(kind, oracle.form, oracle.about, tuple(map(_of_parameter, oracle.parameters())))
        for kind, oracle in KINDS.items()
    ]


def _of_parameter(parameter: ParameterDoc) -> FormField:
    choices = YES_NO if parameter.type == "bool" else tuple(parameter.type.split("|")) if "|" in parameter.type else ()
    return FormField(parameter.name, parameter.about, parameter.default, choices)


def composed(kind: str, model: str, parameters: Mapping[str, str]) -> str:
    """The oracle that a form describes, as it is written on the command line."""
    chosen = tuple((name, value.strip()) for name, value in parameters.items() if value.strip())
    return str(OracleSpec(kind, model.strip(), chosen))


# Results, in whose folders no data is.
OURS = {"run.json", "enrich.json", "comparison.json", "live.jsonl", "start.json"}
DEPTH, LOOKED_AT, MOST = 3, 500, 100
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
BESIDE = ("truth.", "metadata.")  # parts of a data set


def known_datasets(roots: Sequence[Path]) -> list[str]:
    """As a command would name them from here."""
    found = (path for root in roots for path in _below(root, DEPTH))
    return list(dict.fromkeys([*shipped_names(), *(_written(path) for path in islice(found, MOST))]))


def _written(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """A folder with examples in it is one data set; tables and archives are one each."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(islice(listed, LOOKED_AT), key=lambda entry: entry.name)
            folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."]
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return
    if OURS.intersection(names):
        return
    if any(is_image(name) or (name.startswith("metadata.") and is_table(name)) for name in names):
        yield folder
        return
    single = (name for name in names if is_table(name) or name.lower().endswith(ARCHIVES))
    yield from (folder / name for name in single if not name.startswith(BESIDE))
    if depth:
        for path in folders:
            yield from _below(Path(path), depth - 1)
