"""The commands that people give a discovery while it runs, each a line of steer.jsonl with who and when, and the marks
that the run itself writes beside them."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from twothirds.flows.errors import UsageError
from twothirds.flows.settings import MAX_USD, parse_usd

MAX_NAME, MAX_DEFINITION, MAX_ID = 200, 500, 1_000
ASKED = 3  # examples of a question
JOINERS = "\u200c\u200d"  # invisible, but part of words and of emoji


def _visible(text: str) -> str:
    """One line of characters that can be seen."""
    seen = (
        letter if letter in JOINERS or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn") else " "
        for letter in text
    )
    return " ".join("".join(seen).split())


def _words(most: int, *, needed: bool = True) -> AfterValidator:
    def checked(text: str) -> str:
        line = _visible(text)
        if needed and not line:
            raise PydanticCustomError("empty", "it is empty: write at least one word")
        if len(line) > most:
            raise PydanticCustomError(
                "long", "it has {length} characters: shorten it to {most}", {"length": len(line), "most": most}
            )
        return line

    return AfterValidator(checked)


def _three(ids: tuple[str, ...]) -> tuple[str, ...]:
    if len(ids) != ASKED or len(set(ids)) != ASKED:
        problem = f"{len(ids)} were given" if len(set(ids)) == len(ids) else "one was given twice"
        raise PydanticCustomError("three", "choose three different examples: {problem}", {"problem": problem})
    return ids


def _sum(value: Any) -> Decimal:
    try:
        amount = parse_usd(str(value).strip())
    except ValueError as error:
        raise PydanticCustomError("sum", "{problem}", {"problem": str(error)}) from None
    if not 0 < amount < MAX_USD:
        raise PydanticCustomError("sum", "a budget is more than 0 USD: give a number such as 2.50")
    return amount.quantize(Decimal("0.000001")).normalize()


Name = Annotated[str, _words(MAX_NAME)]
ExampleId = Annotated[str, Field(max_length=MAX_ID)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Command(_Line):
    """`at` is when it was entered, not when it was applied."""

    deed: ClassVar[str]  # in words, with the fields of the command
    by: Name
    at: str = ""

    @property
    def words(self) -> str:
        """What the person does, after their name."""
        return self.deed.format_map(dict(self))


class Stop(Command):
    deed = "stops it"
    action: Literal["stop"] = "stop"


class Veto(Command):
    deed = "vetoes {name}"
    action: Literal["veto"] = "veto"
    name: Name


class AddFeature(Command):
    deed = "adds {name}"
    action: Literal["add"] = "add"
    name: Name
    definition: Annotated[str, _words(MAX_DEFINITION, needed=False)] = ""


class AskAbout(Command):
    action: Literal["ask"] = "ask"
    examples: Annotated[tuple[ExampleId, ...], AfterValidator(_three)]

    @property
    def words(self) -> str:
        return f"asks about {', '.join(self.examples)}"


class ChangeBudget(Command):
    deed = "allows {usd:f} USD in all"
    action: Literal["budget"] = "budget"
    usd: Annotated[Decimal, BeforeValidator(_sum)]


class AppliedMark(_Line):
    """After how many questions the run has applied the command on line `event`. `while_labelling`: after the last
    question, while the remaining examples were labelled. Of a budget: instead of which one, for another one in the
    settings outranks it."""

    action: Literal["applied"] = "applied"
    event: int
    queries: int
    instead_of: str = ""
    while_labelling: bool = False


class RecordedMark(_Line):
    """The results hold it: a change in the log of features."""

    action: Literal["settled"] = "settled"
    event: int


ControlCommand = Stop | Veto | AddFeature | AskAbout | ChangeBudget
_COMMANDS: TypeAdapter[ControlCommand] = TypeAdapter(Annotated[ControlCommand, Field(discriminator="action")])
_LINES: TypeAdapter[ControlCommand | AppliedMark | RecordedMark] = TypeAdapter(
    Annotated[ControlCommand | AppliedMark | RecordedMark, Field(discriminator="action")]
)
COMMANDS: dict[str, type[ControlCommand]] = {
    str(command.model_fields["action"].default): command for command in (Stop, Veto, AddFeature, AskAbout, ChangeBudget)
}


class CommandProblem(UsageError):
    """A command that cannot be entered: one line, and the field that it is about."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def read_command(fields: dict[str, Any]) -> ControlCommand:
    """Raises CommandProblem."""
    if fields.get("action") not in COMMANDS:
        raise CommandProblem("action", f"unknown command {fields.get('action')!r}: choose one of {', '.join(COMMANDS)}")
    try:
        return _COMMANDS.validate_python(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = [part for part in problem["loc"] if part not in COMMANDS]
        field = str(place[0]) if place else "action"
        raise CommandProblem(field, f"{field}: {problem['msg'][0].lower()}{problem['msg'][1:]}") from None


def read_line(event: dict[str, Any]) -> ControlCommand | AppliedMark | RecordedMark | None:
    """None for a line that is none of these: it steers nothing."""
    try:
        return _LINES.validate_python(event)
    except ValidationError:
        return None
