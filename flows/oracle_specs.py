"""How an oracle is named on the command line: KIND[:MODEL][?name=value&…], parsed and printed; and which kinds and
parameters there are, read from the classes that configure them."""

from __future__ import annotations

import importlib
import types
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, quote, unquote

from twothirds.models import OracleError
from twothirds.sources import is_secret_name, secret_of

MAX_SPEC_CHARS = 10_000
NOT_DECIDING = {
    *("timeout", "concurrency", "requests_per_minute", "tokens_per_minute", "attempts", "retry_delay", "asks"),
    *("longest_wait", "batch_questions", "batch_wait", "batch_poll", "price", "prices"),
}
MAX_QUOTED_CHARS = 300  # of a spec, in an error line


@dataclass(frozen=True, slots=True)
class OracleSpec:
    kind: str
    model: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> OracleSpec:
        """Raises OracleError, which never repeats a secret."""
        head, _, query = text.partition("?")
        kind, _, model = head.partition(":")
        if problem := secret_in(text) or _unusable(text):
            raise OracleError(f"oracle {shown(head)}: {problem}")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        except ValueError:
            raise OracleError(f"oracle {shown(text)}: write parameters as ?name=value&name=value") from None
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise OracleError(f"oracle {shown(text)}: parameter {twice!r} is given twice: keep one")
        return cls(kind, model, tuple(pairs))

    def __str__(self) -> str:
        query = "&".join(f"{quote(name, safe='')}={quote(value, safe=':/,.')}" for name, value in self.parameters)
        return f"{self.kind}{':' if self.model else ''}{self.model}{'?' if query else ''}{query}"


def _unusable(text: str) -> str:
    plain = unquote(text)
    if len(plain) > MAX_SPEC_CHARS:
        return f"it is longer than {MAX_SPEC_CHARS} characters: shorten it"
    pairs = parse_qsl(text.partition("?")[2], keep_blank_values=True)
    lines = sum(value.count("\n") for name, value in pairs if name == "about")  # of which it may have several
    if plain.count("\n") > lines or not (text.isprintable() and plain.replace("\n", " ").isprintable()):
        return "it holds a character that cannot be printed: remove it"
    return ""


def shown(text: str) -> str:
    return repr(text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…")


def secret_in(text: str) -> str:
    """What is secret in an oracle's parameters, in words that do not repeat it; empty if nothing is."""
    for name, value in parse_qsl(text.partition("?")[2], keep_blank_values=True):
        if is_secret_name(name):
            return "parameters are kept and logged, so a key must not be one: set OPENAI_API_KEY instead"
        if held := secret_of(value):
            return f"its address holds {held}, and parameters are kept and logged: set OPENAI_BASE_URL instead"
    return ""


def deciding(text: str) -> str:
    """The oracle without what only says how its server is asked, and cannot change an answer."""
    spec = OracleSpec.parse(text)
    return str(replace(spec, parameters=tuple(pair for pair in spec.parameters if pair[0] not in NOT_DECIDING)))


def may_cost(text: str) -> bool:
    """Whether this oracle may have a price, by its words alone: most have none, and need not be built to know it."""
    spec = OracleSpec.parse(text)
    return spec.kind == "openai" or any("price" in name or name == "hourly" for name, _ in spec.parameters)


def is_local(text: str) -> bool:
    """Whether its model is loaded by this process."""
    return OracleSpec.parse(text).kind in ("contrastive", "vlm")


READS_BRIEF = ("openai", "vlm", "human")


def with_brief(text: str, about: str | None, avoid: str | None) -> str:
    """The same oracle, told what the data is about and what is not wanted; other kinds take no such text."""
    spec = OracleSpec.parse(text)
    brief = {name: value for name, value in (("about", about), ("avoid", avoid)) if value}
    if spec.kind not in READS_BRIEF or not brief:
        return text
    return str(replace(spec, parameters=tuple((dict(spec.parameters) | brief).items())))


def check_exemplars(wanted: int, *labellers: str) -> None:
    """Raises OracleError where models are to be shown exemplars and cannot be."""
    blind = next((text for text in labellers if OracleSpec.parse(text).kind not in READS_BRIEF), None)
    if wanted and blind is not None:
        kind = shown(blind.partition("?")[0])
        raise OracleError(f"--exemplars {wanted} is for {', '.join(READS_BRIEF)}, and {kind} labels: leave it out")


def by_provider_batch(text: str) -> str:
    """The same oracle, with its labels sent through the provider's Batch API."""
    if not text.startswith("openai:"):
        oracle = shown(text.partition("?")[0])
        raise OracleError(f"--provider-batch is for openai:MODEL, not for {oracle}: leave it out")
    return f"{text}{'&' if '?' in text else '?'}provider_batch=true"


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
            found = [_described(field, hints[field.name]) for field in fields(made) if _help_of(hints[field.name])]
        return [*found, *self.more]


_PRICE = ParameterDoc("price", "USD", "0", "USD per answer")
KINDS = {
    "contrastive": OracleKind(
        "contrastive[:MODEL]",
        "a CLIP or SigLIP model, or the image tower of a CLIP as an ONNX file; without a name the one that ships, "
        "which knows drawn faces only",
        "twothirds.flows.oracles:_ContrastiveParameters",
    ),
    "vlm": OracleKind(
        "vlm:MODEL", "a vision-language model on this machine", "twothirds.models.local.oracle:LocalVlmConfig"
    ),
    "openai": OracleKind(
        "openai:MODEL", "a server that speaks OpenAI's API", "twothirds.models.openai.config:OpenAIConfig"
    ),
    "human": OracleKind(
        "human[:QUEUE]",
        "people, on the page of `twothirds review`",
        "twothirds.models.people.human:HumanTerms",
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
        "twothirds.models.people.simulated:Behaviour",
        (_PRICE, ParameterDoc("seed", "int", "--seed", "seed of the crowd")),
    ),
}


def _help_of(hint: Any) -> str:
    """The text of `Annotated[type, text]`; fields without one are not for users."""
    return next((text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)), "")


def _described(field: Any, hint: Any) -> ParameterDoc:
    default = "" if field.default in (MISSING, None) else str(field.default)
    return ParameterDoc(field.name, _type_of(get_args(hint)[0]), default, _help_of(hint))


def _type_of(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return _type_of(get_args(hint)[0])
    name = getattr(hint, "__name__", str(hint))
    return "|".join(choices_of(hint)) or {"str": "text", "Price": "USD,USD", "Mapping": "file"}.get(name, name)


def choices_of(annotation: Any) -> list[str]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [choice for part in get_args(annotation) for choice in choices_of(part)]
    return [str(choice) for choice in get_args(annotation)] if get_origin(annotation) is Literal else []
