"""Sums of money: exact decimals of USD where people write them, micro-dollars wherever they are counted.

What the settings of all flows share, and the one place that reads the environment.

Settings are kept: in run.json, in the store, and by Prefect as parameters. Text with a secret in it is refused."""

from __future__ import annotations

import getpass
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_type_hints
from urllib.parse import quote, urlsplit

import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from twothirds.discovery.statistics import Promise
from twothirds.flows import APP
from twothirds.flows.errors import UsageError
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracle_specs import secret_in, with_brief
from twothirds.models import MICRO, Money, ServerAway, digest_of, in_usd
from twothirds.sources import (
    Columns,
    RemoteFolder,
    Unreadable,
    has_store_password,
    keep_frame,
    name_of,
    secret_forms,
    secret_of,
)

if TYPE_CHECKING:
    from twothirds.store import Job, Store

Function = TypeVar("Function", bound=Callable[..., Any])
MAX_USD = 10**12
Usd = Annotated[Decimal, Field(gt=0, lt=MAX_USD, decimal_places=6)]  # of a settings model


def micro(amount: Decimal) -> Money:
    """The same sum in micro-dollars."""
    return int((amount * MICRO).to_integral_value(ROUND_HALF_EVEN))


def micro_of(usd: float | str) -> Money:
    """The micro-dollars of a sum in USD that was written to JSON, as a text or a number."""
    return micro(Decimal(str(usd)))


def parse_usd(text: str) -> Decimal:
    """Raises ValueError where the text is not a sum."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("nan")
    if not amount.is_finite():
        raise ValueError(f"{text!r} is not a sum in USD: give a number such as 2.50")
    if not -MAX_USD < amount < MAX_USD:
        raise ValueError(f"{text!r} is too large: give a sum below {MAX_USD:,} USD")
    return amount


def read_usd(text: str, flag: str) -> Decimal:
    """The sum given with an option; raises UsageError."""
    try:
        return parse_usd(text)
    except ValueError as error:
        raise UsageError(f"{flag} {error}") from None


NOT_REPEATED = "secret"  # the type of an error whose message must not repeat the input


def _oracle(text: str) -> str:
    if problem := secret_in(text):
        raise PydanticCustomError(NOT_REPEATED, "{problem}", {"problem": problem})
    return text


def _store(text: str) -> str:
    if has_store_password(text):
        raise PydanticCustomError(
            NOT_REPEATED, "the address holds a password, and settings are kept and logged: set TWOTHIRDS_STORE instead"
        )
    return text


def _dataset(text: str) -> str:
    if secret := secret_of(text):
        raise PydanticCustomError(
            NOT_REPEATED,
            "the address holds {secret}, and settings are kept and logged: put it into a variable and write "
            "'${NAME}' in its place",
            {"secret": secret},
        )
    return text


def _about(text: str) -> str:
    """The text, or that of the file it names, in its lines; several spaces count as one."""
    return "\n".join(" ".join(line.split()) for line in _content(text).strip().splitlines())


def _content(text: str) -> str:
    path = Path(text)
    try:
        return path.read_text(encoding="utf-8-sig") if len(text) < 1_000 and path.is_file() else text
    except (OSError, ValueError) as error:
        raise PydanticCustomError(
            "about", "{path} cannot be read ({error})", {"path": text, "error": str(error)}
        ) from None


def _names(text: str) -> str:
    """Names of features, or those of the file that the text names, each once: separated by ; or on lines."""
    content = _content(text)
    names = dict.fromkeys(name for part in content.replace("\n", ";").split(";") if (name := " ".join(part.split())))
    if not names:
        raise PydanticCustomError("names", "it names no feature: give names, separated by ;")
    return "; ".join(names)


def _folder(value: Any) -> Any:
    """A run or a path of Python by its folder."""
    place = getattr(value, "folder", value)
    return str(place) if isinstance(place, Path) else value


AboutText = Annotated[str, AfterValidator(_about)]
NamesText = Annotated[str, AfterValidator(_names)]
OracleText = Annotated[str, AfterValidator(_oracle)]
StoreText = Annotated[str, AfterValidator(_store)]
DatasetText = Annotated[str, AfterValidator(_dataset)]


class RunSettings(BaseModel):
    """What every run on a data set is given: the same model is the command line, the form in Prefect and what the
    results repeat."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    dataset: DatasetText = Field(
        description="a folder of images or texts, a table (CSV, JSON, JSONL, Parquet), a zip or tar archive, or an "
        "fsspec URL of these"
    )
    id_column: str | None = Field(None, description="column of the ids (default: id, else rows are numbered)")
    text_column: str | None = Field(None, description="column of the texts (default: text)")
    image_column: str | None = Field(None, description="column of the pictures (default: image)")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    budget: Usd | None = Field(None, description="USD that it may cost in all, interrupted attempts included")
    store: StoreText | None = Field(
        None, description="URL or path of the store (default: TWOTHIRDS_STORE, or the user's own)"
    )
    retry_unusable: bool = Field(
        False, description="ask again what was refused or unreadable before; earlier replies stay in the store"
    )

    @model_validator(mode="before")
    @classmethod
    def _tables_of_python(cls, values: Any) -> Any:
        """Runs and paths go by their names. A DataFrame or Dataset is kept as a file, by whose path results and
        repetitions know it."""
        if not isinstance(values, dict):
            return values
        values = {name: _folder(value) for name, value in values.items()}
        if isinstance(values.get("dataset", ""), str):
            return values
        folder = Path(platformdirs.user_data_dir(APP)) / "tables"
        return values | {"dataset": str(keep_frame(values["dataset"], folder, values.get("image_column")))}

    _caller: Any = PrivateAttr(None)  # who starts the run in this process (prefect_api.runs.Caller)

    @property
    def caller(self) -> Any:
        return self._caller

    def called_by(self, caller: Any) -> Self:
        """The same settings for a flow that is run here."""
        copied = self.model_copy()
        copied._caller = caller
        return copied

    @property
    def columns(self) -> Columns:
        return Columns(self.id_column, self.text_column, self.image_column)

    @property
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else micro(self.budget)

    @property
    def budget_text(self) -> str:
        """The same for the same sum; empty where there is none."""
        return "" if self.budget is None else f"{self.budget.normalize():f}"

    def with_budget(self, budget: Decimal | None) -> Self:
        return self.model_copy(update={"budget": budget})


def shows_settings(model: type[BaseModel]) -> Callable[[Function], Function]:
    """For a function `f(dataset, *, yes, **settings)`: `help(f)` lists the settings, and editors complete them."""

    def decorate(function: Function) -> Function:
        fields = model.model_fields.items()
        hints = get_type_hints(model)
        given = inspect.signature(function)
        parameters = [_parameter(name, field, hints[name]) for name, field in fields] + [given.parameters["yes"]]
        function.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
        described = [f"    {name}: {field.description}" for name, field in fields]
        described.append("    yes: spend what it is likely to cost, without a budget")
        function.__doc__ = "\n".join([function.__doc__ or "", "", "    Settings:", *described])
        return function

    return decorate


def _parameter(name: str, field: FieldInfo, hint: Any) -> inspect.Parameter:
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD if name == "dataset" else inspect.Parameter.KEYWORD_ONLY
    default = inspect.Parameter.empty if field.is_required() else field.default
    return inspect.Parameter(name, kind, annotation=hint, default=default)


class OracleSettings(RunSettings):
    """What every run with one oracle is given."""

    oracle: OracleText = Field(description="who answers, as in discover")
    about: AboutText = Field(
        "", description="what the data is and what the features are for: a text, or a file that holds it"
    )
    votes: int = Field(1, ge=1, le=99, description="independent votes per label; the majority counts")

    def briefed(self, oracle: str) -> str:
        """The oracle, told what the data is about."""
        return with_brief(oracle, self.about, None)

    @property
    def run_name(self) -> str:
        """Of its flow run."""
        return f"{name_of(self.dataset)}-{self.oracle.partition('?')[0]}"


class NightlySettings(OracleSettings):
    """What every run is given that may be repeated night after night: an enrichment or a discovery."""

    per: Literal["day", "week", "month"] | None = Field(
        None,
        description="the budget is for each calendar day, week or month (UTC): all runs with this output that began in "
        "it share it",
    )

    @model_validator(mode="after")
    def _only_with_budget(self) -> Self:
        if self.per is not None and self.budget is None:
            raise ValueError(f"--per {self.per} goes with --budget: add --budget USD, or leave it out")
        return self

    @property
    def output(self) -> str:
        """By which budgets know the job."""
        raise NotImplementedError

    @property
    def job(self) -> Job:
        """The same for every run with the same output."""
        from twothirds.store import Job

        return Job(self.output if "://" in self.output else str(Path(self.output).resolve()), self.per)

    def budget_left(self, store: Store) -> str:
        """How much of the period's budget is left, in words; empty where there is none."""
        booked = store.runs.booked_now(self.job)
        if booked is None or booked.period is None or self.budget_micro is None:
            return ""
        left = max(self.budget_micro - booked.spent - booked.reserved, 0)
        until = f"the next {self.per} begins on {booked.period.next_day} (UTC)"
        return f"budget {in_usd(self.budget_micro)} per {self.per}: {in_usd(left)} is left, {until}"


class PredictingSettings(NightlySettings):
    """What every run that may predict labels is given."""

    agree: float | None = Field(
        None,
        ge=0.5,
        lt=1,
        description="predict labels (in discover: of the examples that are not compared) where at least this share of "
        "them (0.95) is certified to agree with the oracle's, and ask elsewhere",
    )
    uncertified: Literal["ask", "leave"] = Field(
        "ask",
        description="with agree: for features that cannot be certified ask about all examples, or leave them out",
    )
    embedder: str | None = Field(
        None,
        description="with agree: a vision or sentence model by path or hub id, contrastive[:MODEL], or an image tower "
        "as an ONNX file (default: statistics of the texts or pictures)",
    )
    cheap: OracleText | None = Field(
        None, description="with agree: a cheaper oracle that labels first; the other is asked where that is not enough"
    )

    @model_validator(mode="after")
    def _only_with_agree(self) -> Self:
        options = {"embedder": self.embedder, "cheap": self.cheap, "uncertified": self.leaves}
        name = next((name for name, value in options.items() if value), None)
        if self.agree is None and name is not None:
            raise ValueError(f"--{name} goes with --agree: add --agree 0.95, or leave it out")
        return self

    @property
    def promise(self) -> Promise:
        """Of predicted labels, where any are wanted."""
        return Promise(self.agree or 1.0)

    @property
    def leaves(self) -> bool:
        """Labels of features that cannot be certified."""
        return self.uncertified == "leave"


OPENAI_SERVER = "https://api.openai.com"


def default_store() -> str:
    """TWOTHIRDS_STORE, which may hold a password as parameters may not; else a file in the user's data folder."""
    return os.environ.get("TWOTHIRDS_STORE") or f"sqlite:///{Path(platformdirs.user_data_dir(APP)) / 'store.sqlite'}"


def open_store(url: str | None, events: Events = SILENT) -> Store:
    """The store of the settings; `events` says what is waited for."""
    from twothirds.store import Store

    store = Store.open(url or default_store(), say=events.say)
    if store.is_incomplete:
        events.say(f"store {store.name} was in use when it was copied: its latest answers may be missing (store check)")
    return store


@dataclass(frozen=True)
class OutFolder:
    """Where results are written: a folder here, or the copy here of one elsewhere."""

    path: Path
    remote: RemoteFolder | None = None

    @classmethod
    def of(cls, out: str, last: str, *, writable: bool = True, growing: tuple[str, ...] = ()) -> OutFolder:
        """`last` is the file that is written last. What a folder elsewhere holds is fetched, but for the folders
        `growing`, to which files are only added; raises DatasetError."""
        if "://" not in out:
            return cls(Path(out))
        remote = RemoteFolder(out, local_folder(out), last)
        remote.fetch(writable=writable, skip=growing)
        return cls(remote.local, remote)

    @property
    def place(self) -> str:
        """By which budgets and resuming know it, on every machine."""
        return self.remote.url if self.remote else str(self.path.resolve())

    def deliver(self, events: Events, only: str = "*") -> None:
        """Upload what was written. Raises ServerAway: what was answered is kept, and running again uploads it."""
        if self.remote is None:
            return
        try:
            with events.waiting(f"uploading to {self.remote.url}"):
                self.remote.deliver(only)
        except Unreadable as problem:
            raise ServerAway(f"{self.remote.url} was not written: {problem}; run again, answers are kept") from None
        events.say(f"uploaded to {self.remote.url}")


def local_folder(out: str) -> Path:
    """The folder here in which results are written first, and from which they are uploaded if `out` is elsewhere."""
    if "://" not in out:
        return Path(out)
    return Path(platformdirs.user_data_dir(APP)) / "copies" / digest_of(out.rstrip("/"))[:12] / name_of(out)


def account_name() -> str:
    """Of the account that runs this; empty where it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def served_at(folder: Path) -> str | None:
    """Where a browser finds a run folder: in the studio at TWOTHIRDS_STUDIO_URL; None where there is none."""
    studio = os.environ.get("TWOTHIRDS_STUDIO_URL", "").rstrip("/")
    return f"{studio}/runs/{quote(folder.name)}" if studio.startswith(("http://", "https://")) else None


@dataclass(frozen=True)
class Environment:
    """What the usual variables say. Secrets stay in here and in the adapters: never in settings, logs or the store."""

    cache: Path
    openai_api_key: SecretStr
    openai_base_url: str | None
    key_hosts: tuple[str, ...] = ()  # other servers that may have the key

    def key_for(self, url: str) -> SecretStr:
        """The key for OpenAI, the server of OPENAI_BASE_URL and those of TWOTHIRDS_KEY_HOSTS, and none for another:
        an address may come from a parameter, and whoever sets parameters must not get the key."""
        asked = _server_of(url)
        allowed = {_server_of(known) for known in (OPENAI_SERVER, self.openai_base_url or OPENAI_SERVER)}
        for host in self.key_hosts:
            schemes = ("https", "http") if host.rpartition("]")[2].count(":") else ("https",)
            allowed |= {_server_of(f"{scheme}://{host}") for scheme in schemes}
        return self.openai_api_key if asked and asked in allowed else SecretStr("")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no line may show."""
        of_oracle = secret_forms(self.openai_api_key.get_secret_value(), self.openai_base_url)
        return (*of_oracle, *secret_forms("", default_store()))

    @classmethod
    def read(cls) -> Environment:
        return cls(
            cache=Path(platformdirs.user_cache_dir(APP)),
            openai_api_key=SecretStr(os.environ.get("OPENAI_API_KEY", "")),
            openai_base_url=os.environ.get("OPENAI_BASE_URL") or None,
            key_hosts=tuple(os.environ.get("TWOTHIRDS_KEY_HOSTS", "").replace(",", " ").split()),
        )


def _server_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None if the address cannot be read."""
    try:
        address = urlsplit(url)
        port = address.port or {"https": 443, "http": 80}[address.scheme]
    except (ValueError, KeyError):
        return None
    return address.scheme, address.hostname or "", port
