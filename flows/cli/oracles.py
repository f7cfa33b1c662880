"""The command `oracles`: the kinds of oracle and their parameters, read from the classes that configure them."""

from __future__ import annotations

import importlib
import types
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from flows.cli.options import PLAIN, Output, choices_of, option
from flows.cli.terminal import as_json, results
from flows.errors import UsageError


@dataclass(frozen=True)
class ParameterDoc:
    name: str
    type: str
    default: str
    about: str


@dataclass(frozen=True)
class OracleKind:
    form: str
    about: str
    config: str = ""  # the class whose annotated fields are the parameters
    more: tuple[ParameterDoc, ...] = ()  # what the builder reads itself

    def parameters(self) -> list[ParameterDoc]:
        found = []
        if self.config:
            module, _, name = self.config.partition(":")
            made = getattr(importlib.import_module(module), name)
            hints = get_type_hints(made, include_extras=True)
            found = [_described(field, hints[field.name]) for field in fields(made) if _about(hints[field.name])]
        return [*found, *self.more]


_PRICE = ParameterDoc("price", "USD", "0", "USD per answer")
KINDS = {
    "contrastive": OracleKind(
        "contrastive[:MODEL]",
        "a CLIP or SigLIP model; without a name the one that ships, which knows drawn faces only",
        "flows.oracles:_ContrastiveParameters",
    ),
    "vlm": OracleKind("vlm:MODEL", "a vision-language model on this machine", "models.local.oracle:LocalVlmConfig"),
    "openai": OracleKind("openai:MODEL", "a server that speaks OpenAI's API", "models.openai.config:OpenAIConfig"),
    "human": OracleKind(
        "human[:QUEUE]",
        "people, on the page of `python -m flows review`",
        "models.people.human:HumanTerms",
        (_PRICE, ParameterDoc("hourly", "USD", "0", "USD per hour of work")),
    ),
    "recorded": OracleKind(
        "recorded:FILE",
        "votes and answers to comparisons that CSV files hold",
        more=(_PRICE, ParameterDoc("comparisons", "file", "", "a table of question, left, right and answer")),
    ),
    "simulated": OracleKind(
        "simulated[:CROWD]",
        "a simulated crowd that knows truth.csv",
        "models.people.simulated:Behaviour",
        (_PRICE, ParameterDoc("seed", "int", "--seed", "seed of the crowd")),
    ),
}


def oracles(kind: Annotated[str | None, option("KIND", "only this kind")] = None, /, *, output: Output = PLAIN) -> None:
    if kind is not None and kind not in KINDS:
        raise UsageError(f"unknown oracle {kind!r}: choose one of {', '.join(KINDS)}")
    chosen = {name: one for name, one in KINDS.items() if kind in (None, name)}
    if output.json:
        data = {
            name: {"form": one.form, "about": one.about, "parameters": [asdict(each) for each in one.parameters()]}
            for name, one in chosen.items()
        }
        print(as_json(data))
    else:
        _print(list(chosen.values()))


def _print(kinds: list[OracleKind]) -> None:
    from rich.table import Table

    out = results()
    for kind in kinds:
        out.print(f"{kind.form}: {kind.about}")
        table = Table(box=None, padding=(0, 2), header_style="")
        for heading in ("  parameter", "type", "default", "meaning"):
            table.add_column(heading)
        for one in kind.parameters():
            table.add_row(f"  {one.name}", one.type, one.default, one.about)
        out.print(table)
        out.print()
    out.print("parameters follow a ?, e.g. --oracle 'openai:gpt-4.1-nano?image_size=256&temperature=1'")


def _about(hint: Any) -> str:
    """The text of `Annotated[type, text]`; fields without one are not for users."""
    return next((text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)), "")


def _described(field: Any, hint: Any) -> ParameterDoc:
    default = "" if field.default in (MISSING, None) else str(field.default)
    return ParameterDoc(field.name, _type_of(get_args(hint)[0]), default, _about(hint))


def _type_of(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return _type_of(get_args(hint)[0])
    name = getattr(hint, "__name__", str(hint))
    return "|".join(choices_of(hint)) or {"str": "text", "Price": "USD,USD", "Mapping": "file"}.get(name, name)
