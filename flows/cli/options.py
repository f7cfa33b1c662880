"""Command-line options made from a settings model: one description serves the command line, the form and run.json."""

from __future__ import annotations

import argparse
import json
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from flows.errors import UsageError
from flows.settings import NOT_REPEATED

Settings = TypeVar("Settings", bound=BaseModel)


class Parser(argparse.ArgumentParser):
    """argparse, but an error is one line."""

    def error(self, message: str) -> Any:
        raise UsageError(f"{message} (see {self.prog} --help)")


def add_options(parser: argparse.ArgumentParser, model: type[BaseModel], *, positional: str) -> None:
    for name, field in model.model_fields.items():
        about = (field.description or "").replace("%", "%%")
        if name == positional:
            parser.add_argument(name, nargs="?", metavar=name.upper(), help=about)
            continue
        flag = "--" + name.replace("_", "-")
        if field.annotation in (bool, bool | None):
            parser.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=about)
            continue
        if field.default not in (None, PydanticUndefined):
            about += f" (default: {field.default})"
        if get_origin(field.annotation) is tuple:
            parser.add_argument(flag, dest=name, nargs="+", metavar=name.upper().removesuffix("S"), help=about)
            continue
        choices = _choices(field.annotation)
        metavar = "|".join(choices) if choices else name.upper()
        parser.add_argument(flag, dest=name, metavar=metavar, help=about)
    parser.set_defaults(positional=positional)
    parser.add_argument("--config", metavar="FILE", help="repeat the settings of a run.json; other options override it")


def read_options(arguments: argparse.Namespace, model: type[Settings]) -> Settings:
    """The model from --config, overridden by what was given on the command line."""
    values = _from_config(arguments.config) if arguments.config else {}
    for name in model.model_fields:
        given = getattr(arguments, name, None)
        if given is not None:
            values[name] = given
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UsageError(_first_problem(error, model, arguments.positional)) from None


def _from_config(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path} ({error.strerror}): give the run.json of a run with --config") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON: give the run.json of a run with --config") from None
    settings = content.get("settings", content) if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise UsageError(f"{path} holds no settings: give the run.json of a run with --config")
    return dict(settings)


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [choice for part in get_args(annotation) for choice in _choices(part)]
    return [str(choice) for choice in get_args(annotation)] if get_origin(annotation) is Literal else []


def _first_problem(error: ValidationError, model: type[BaseModel], positional: str) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    name = str(problem["loc"][0]) if problem["loc"] else ""
    flag = "--" + name.replace("_", "-") if name in model.model_fields else name
    if problem["type"] == "missing":
        missing = name.upper() if positional == name else flag
        return f"{missing} is missing: give {model.model_fields[name].description}"
    if problem["type"] == "extra_forbidden":
        return f"unknown setting {name!r}: remove it from the file given with --config"
    if problem["type"] == NOT_REPEATED:
        return f"{flag}: {problem['msg']}"
    message = (problem["msg"][0].lower() + problem["msg"][1:]).removeprefix("value error, ")
    return f"{flag} {problem['input']!r}: {message}" if problem["loc"] else message
