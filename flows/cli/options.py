"""Command-line options made from a settings model: one description serves the command line, the form and run.json."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_origin

from cyclopts import App, Group, Parameter
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from twothirds.flows.errors import UsageError
from twothirds.flows.oracle_specs import choices_of
from twothirds.flows.settings import NOT_REPEATED

Settings = TypeVar("Settings", bound=BaseModel)
Function = TypeVar("Function", bound=Callable[..., int | None])

# The groups of the help in their order; a setting that is not listed is advanced.
GROUPS = {
    "Main options": ("dataset", "oracle", "oracles", "features", "queries", "budget", "per", "out", "expect"),
    "What is asked": (
        *("strategy", "votes", "voters", "comparisons", "own_discovery", "sample", "people_sample"),
        *("propose", "elicit_on", "label_rest", "backfill", "drop_gone", "retry_unusable"),
    ),
    "The data set": ("id_column", "text_column", "image_column"),
    "What for": ("about", "avoid", "known", "exclude", "exemplars", "target", "between", "hold_out_by", "unguided"),
    "Who answers": ("labeller", "escalate", "spot_check", "people", "annotators"),
    "When to stop": ("target_g", "nones", "beyond", "wait"),
    "Money": ("provider_batch", "accuracy"),
    "Output": ("store", "replace", "config", "json", "debug"),
    "Advanced": (),
}
_GROUPS = {title: Group(title, sort_key=place) for place, title in enumerate(GROUPS)}
OUTPUT, MONEY = _GROUPS["Output"], _GROUPS["Money"]
STORE_HELP = "URL or path of the store (default: TWOTHIRDS_STORE, or your own)"


def option(metavar: str, meaning: str, name: str | None = None) -> Parameter:
    """`name` is for a word of Python's own, which no parameter can have."""
    return Parameter(name=name, help=meaning, metavar=metavar, negative="")


def flag(meaning: str) -> Parameter:
    return Parameter(help=meaning, negative="", show_default=False)


def command_group(name: str, example: str, usage: str | None = None) -> App:
    """A command with actions, each of which is a command of its own."""
    return App(
        name=name,
        usage=usage,
        help_epilogue=f"example: twothirds {example}",
        group_arguments=Group("Arguments", sort_key=0),
        group_parameters=Group("Options", sort_key=5),
    )


def action(app: App, example: str, **more: Any) -> Callable[[Function], Function]:
    """Adds an action, which the help lists below those added before."""
    epilogue, place = f"example: twothirds {example}", sum(1 for _ in app)
    return lambda run: app.command(run, help_epilogue=epilogue, sort_key=place, **more)


WhichLabels = Annotated[Literal["doubtful", "disputed"], option("WHICH", "doubtful, or only disputed ones")]
MostLabels = Annotated[int, option("N", "labels that are asked about at most")]
DatasetOption = Annotated[str | None, option("DATASET", "where the data set is now (default: where the run found it)")]


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How a command reports: the options that every command has."""

    json: Annotated[bool, flag("print the result as JSON"), Parameter(group=OUTPUT)] = False
    debug: Annotated[bool, flag("show the traceback of an error"), Parameter(group=OUTPUT)] = False

    def run(self, command: Callable[[Any, Any], int | None], settings: Any) -> int | None:
        return command(settings, self)

    def print(self, data: Any, lines: Iterable[str]) -> None:
        """Results go to stdout: as JSON, or as lines."""
        from twothirds.flows.cli.terminal import as_json
        from twothirds.sources import printable

        print(as_json(data) if self.json else "\n".join(map(printable, lines)))


@Parameter(name="*")
@dataclass(frozen=True)
class StoreOutput(Output):
    """The options of a command that reads or writes the store."""

    store: Annotated[str | None, option("STORE", STORE_HELP)] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Paying(Output):
    """The options of a command that may cost money."""

    yes: Annotated[bool, flag("spend what it is likely to cost without being asked"), Parameter(group=MONEY)] = False
    metrics: Annotated[
        str | None,
        option("FILE", "write figures of the latest runs there, for Prometheus' node_exporter (.prom)"),
        Parameter(group=OUTPUT),
    ] = None
    log: Annotated[
        Literal["text", "json"], option("text|json", "how to say on stderr what happens"), Parameter(group=OUTPUT)
    ] = "text"

    def run(self, command: Callable[[Any, Any], int | None], settings: Any) -> int | None:
        """With the figures written at its end, however it ends."""
        if self.metrics is None:
            return command(settings, self)
        from twothirds.flows.prefect_api.metrics_file import writing_metrics

        with writing_metrics(self.metrics, settings, command.__name__) as ended:
            ended.status = command(settings, self) or 0
        return ended.status


@Parameter(name="*")
@dataclass(frozen=True)
class Changing(Output):
    """The options of every action that changes features."""

    no_ask: Annotated[bool, flag("leave labels empty that would have to be asked again")] = False
    yes: Annotated[bool, flag("do it; without, the change is only shown or asked about")] = False
    budget: Annotated[str | None, option("USD", "USD that asking again may cost")] = None
    store: Annotated[str | None, option("STORE", "URL or path of the store (default: the run's)")] = None
    dataset: DatasetOption = None


PLAIN, STORE, CHANGING, PAYING = Output(), StoreOutput(), Changing(), Paying()


def takes(
    model: type[Settings], positional: str = "", output: type[Output] = Output
) -> Callable[[Callable[[Settings, Any], int | None]], Callable[..., int | None]]:
    """A command whose options are the fields of a settings model, and --config."""
    order = [positional, *(name for names in GROUPS.values() for name in names), *model.model_fields]
    named = sorted(model.model_fields.items(), key=lambda item: order.index(item[0]))
    parameters = [_parameter(name, field, first=name == positional) for name, field in named]
    meaning = "repeat the settings of a run.json; other options override them"
    config = Annotated[str | None, option("FILE", meaning), Parameter(group=OUTPUT)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters.append(inspect.Parameter("config", keyword, annotation=config, default=None))
    parameters.append(inspect.Parameter("output", keyword, annotation=output, default=output()))
    signature = inspect.Signature(parameters)

    def decorate(run: Callable[[Settings, Any], int | None]) -> Callable[..., int | None]:
        def command(*words: Any, **options: Any) -> int | None:
            arguments = signature.bind(*words, **options).arguments
            chosen: Output = arguments.get("output", output())
            return chosen.run(run, read_options(arguments, model, positional))

        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__doc__, command.__name__ = run.__doc__, run.__name__
        return command

    return decorate


def _parameter(name: str, field: FieldInfo, *, first: bool) -> inspect.Parameter:
    """Values stay text: the model reads them, so that its messages are the same everywhere."""
    title = next((title for title, names in GROUPS.items() if name in names), "Advanced")
    meaning, made = field.description or "", Parameter(group=_GROUPS[title])
    metavar = "|".join(choices_of(field.annotation)) or name.upper().replace("_", "-")
    kind: Any = inspect.Parameter.POSITIONAL_ONLY if first else inspect.Parameter.KEYWORD_ONLY
    annotation: Any
    if field.annotation in (bool, bool | None):
        annotation = Annotated[bool | None, made, Parameter(help=meaning)]
    elif get_origin(field.annotation) is tuple:
        annotation = Annotated[
            list[str] | None, made, option(f"{metavar[:-1]}…", meaning), Parameter(consume_multiple=True)
        ]
    else:
        meaning += "" if field.default in (None, PydanticUndefined) else f" (default: {field.default})"
        annotation = Annotated[str | None, made, option(metavar, meaning)]
    return inspect.Parameter(name, kind, annotation=annotation, default=None)


def read_options(arguments: Mapping[str, Any], model: type[Settings], positional: str = "") -> Settings:
    """The model from --config, overridden by what was given on the command line."""
    values = _from_config(arguments["config"]) if arguments.get("config") is not None else {}
    values |= {name: arguments[name] for name in model.model_fields if arguments.get(name) is not None}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise UsageError(_first_problem(error, model, positional)) from None


def _from_config(path: str) -> dict[str, Any]:
    remedy = "give the run.json of a run with --config"
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path} ({error.strerror}): {remedy}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON: {remedy}") from None
    settings = content.get("settings", content) if isinstance(content, dict) else None
    if isinstance(settings, dict) and settings is not content:
        settings.pop("retry_unusable", None)  # a command for that one time
    if not isinstance(settings, dict):
        raise UsageError(f"{path} holds no settings: {remedy}")
    return dict(settings)


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
