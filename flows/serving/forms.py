"""Forms made of the settings of a flow and of the kinds of oracle, and what is made of them once they are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_origin

from pydantic_core import PydanticUndefined

from flows.compare import CompareSettings
from flows.discover import DiscoverSettings
from flows.enrich import EnrichSettings
from flows.oracle_specs import KINDS, OracleSpec, ParameterDoc, choices_of
from flows.settings import RunSettings

if TYPE_CHECKING:
    from studio import FormField, OracleForm

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
    from studio import FormField

    chosen = COMMANDS[command]
    fields = chosen.settings.model_fields
    names = [*chosen.first, *(name for name in fields if name not in chosen.first)]
    return [
        FormField(
            name,
            fields[name].description or "",
            "" if fields[name].default in (None, PydanticUndefined, "") else str(fields[name].default),
            tuple(choices_of(fields[name].annotation)) or (YES_NO if _is_switch(fields[name].annotation) else ()),
            main=name in chosen.first,
            required=fields[name].is_required(),
            many=get_origin(fields[name].annotation) is tuple,
        )
        for name in names
        if name not in chosen.set_by_studio
    ]


def _is_switch(annotation: object) -> bool:
    return annotation in (bool, bool | None)


def oracle_forms() -> list[OracleForm]:
    """The kinds of oracle with their parameters, as `python -m flows oracles` lists them."""
    from studio import OracleForm

    return [
        OracleForm(kind, one.form, one.about, tuple(map(_of_parameter, one.parameters())))
        for kind, one in KINDS.items()
    ]


def _of_parameter(one: ParameterDoc) -> FormField:
    from studio import FormField

    choices = YES_NO if one.type == "bool" else tuple(one.type.split("|")) if "|" in one.type else ()
    return FormField(one.name, one.about, one.default, choices)


def composed(kind: str, model: str, parameters: Mapping[str, str]) -> str:
    """The oracle that a form describes, as it is written on the command line."""
    given = tuple((name, value.strip()) for name, value in parameters.items() if value.strip())
    return str(OracleSpec(kind, model.strip(), given))
