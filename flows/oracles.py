"""`KIND[:MODEL][?name=value&…]`: how an oracle is named on the command line, read and written.

From `KIND[:MODEL][?name=value&…]` on the command line to an oracle: the only place that tells oracles apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote

from pydantic import TypeAdapter, ValidationError

from flows.settings import DiscoverSettings, Environment
from models.openai.probe import Remembered
from models.oracle import MICRO, Money, Oracle, OracleError
from sources.secrets import is_secret_name, secret_of

if TYPE_CHECKING:
    from sources.dataset import Dataset
    from store import Store

LONGEST = 10_000
SHOWN = 300  # characters of a spec that an error line repeats


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
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST} characters: shorten it"
    if not unquote(text).isprintable():
        return "it holds a character that cannot be printed: remove it"
    return ""


def shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def secret_in(text: str) -> str:
    """What is secret about an oracle's parameters, in words that do not repeat it; empty where nothing is."""
    for name, value in parse_qsl(text.partition("?")[2], keep_blank_values=True):
        if is_secret_name(name):
            return "a key is no parameter, for those are kept and logged: set OPENAI_API_KEY instead"
        if held := secret_of(value):
            return f"its address holds {held}, and parameters are kept and logged: set OPENAI_BASE_URL instead"
    return ""


def by_provider_batch(text: str) -> str:
    """The same oracle, with its labels sent through the provider's Batch API."""
    if not text.startswith("openai:"):
        given = shown(text.partition("?")[0])
        raise OracleError(f"--provider-batch is for openai:MODEL, not for {given}: leave it out")
    return f"{text}{'&' if '?' in text else '?'}provider_batch=true"


Config = TypeVar("Config")


@dataclass(frozen=True)
class Spec:
    """What was asked for, and all that an oracle may be built from."""

    text: str
    model: str
    parameters: dict[str, str]
    dataset: Dataset
    seed: int
    environment: Environment
    store: Store | None = None  # where questions wait for people
    budget: Money | None = None  # that finding out about a server may take
    growing: bool = False  # the data set will have more examples tomorrow, and the oracle is to stay the same

    def config(self, made: type[Config], given: Mapping[str, Any]) -> Config:
        """A configuration from the parameters, each read as the type of its field; `given` is not the user's to set."""
        names = [field.name for field in fields(made) if field.name not in given]  # type: ignore[arg-type]
        for name in self.parameters:
            if name not in names:
                raise OracleError(f"oracle {self.text!r}: unknown parameter {name!r}: choose among {', '.join(names)}")
        try:
            return TypeAdapter(made).validate_python({**self.parameters, **given})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            name, value = ".".join(map(str, problem["loc"])), problem["input"]
            message = problem["msg"][0].lower() + problem["msg"][1:]
            raise OracleError(f"oracle {self.text!r}: {name}={value!r}: {message}") from None


def build_oracle(
    text: str,
    dataset: Dataset,
    seed: int,
    environment: Environment,
    store: Store | None = None,
    *,
    budget: Money | None = None,
    growing: bool = False,
) -> Oracle:
    spec = OracleSpec.parse(text)
    if spec.kind not in BUILDERS:
        raise OracleError(f"unknown oracle {shown(text)}: choose one of {', '.join(BUILDERS)}")
    parameters = dict(spec.parameters)
    return BUILDERS[spec.kind](Spec(text, spec.model, parameters, dataset, seed, environment, store, budget, growing))


def build_crowd(settings: DiscoverSettings, dataset: Dataset, store: Store) -> Oracle:
    """The oracle of a discovery, or all who take part where several do."""

    def build(text: str) -> Oracle:
        return build_oracle(text, dataset, settings.seed, Environment.read(), store, budget=settings.budget_micro)

    ask_people = settings.escalate is not None or settings.spot_check is not None
    labeller = settings.labeller or settings.oracle
    if settings.provider_batch:
        labeller = by_provider_batch(labeller)
    elicits = build(settings.oracle if settings.labeller is not None else labeller)
    if settings.labeller is None and not ask_people:
        return elicits
    from models.people.mixed import MixedCrowd, Mixture

    labels = build(labeller) if settings.labeller is not None else elicits
    people = build(settings.people) if ask_people else None
    return MixedCrowd(elicits, labels, people, Mixture(settings.escalate, settings.spot_check))


def _simulated(spec: Spec) -> Oracle:
    from discovery.simulation.crowds import CROWDS
    from models.people.simulated import Behaviour, SimulatedOracle

    truth = spec.dataset.truth
    if truth is None:
        raise OracleError(
            f"oracle {spec.text!r} answers from truth.csv, and {spec.dataset.name!r} has none: choose another"
        )
    if spec.model and spec.model not in CROWDS:
        raise OracleError(f"oracle {spec.text!r}: unknown crowd {spec.model!r}: choose one of {', '.join(CROWDS)}")
    seed = spec.parameters.pop("seed", str(spec.seed))
    if not seed.isdecimal():
        raise OracleError(f"oracle {spec.text!r}: seed={seed!r} is not a whole number")
    price = _usd(spec, "price")
    behaviour = spec.config(Behaviour, {"price": price})
    return SimulatedOracle(
        spec.dataset.examples,
        truth.matrix,
        truth.columns,
        crowd=spec.model or "salience",
        seed=int(seed),
        behaviour=behaviour,
        growing=spec.growing,
    )


def _usd(spec: Spec, name: str) -> int:
    """A sum of money taken out of the parameters; 0 where it is not given."""
    text = spec.parameters.pop(name, "0")
    try:
        return round(float(text) * MICRO)
    except (ValueError, OverflowError):
        raise OracleError(f"oracle {spec.text!r}: {name}={text!r} is not a sum in USD") from None


@dataclass(frozen=True)
class _ContrastiveParameters:
    vocabulary: str | None = None  # a file, or words separated by commas
    threshold: float = 0.5
    synonym: float = 0.9
    revision: str | None = None


def _contrastive(spec: Spec) -> Oracle:
    from models.contrastive.oracle import ContrastiveOracle

    chosen = spec.config(_ContrastiveParameters, {})
    words: Path | list[str] | None = None
    if chosen.vocabulary:
        path = Path(chosen.vocabulary)
        words = path if path.exists() else [word.strip() for word in chosen.vocabulary.split(",")]
    return ContrastiveOracle(
        spec.model or None,
        vocabulary=words,
        threshold=chosen.threshold,
        synonym=chosen.synonym,
        cache=spec.environment.cache / "embeddings",
        revision=chosen.revision,
    )


def _openai(spec: Spec) -> Oracle:
    from models.openai.config import OpenAIConfig
    from models.openai.oracle import OpenAIOracle
    from models.prices import parse_price, read_prices

    environment = spec.environment
    given: dict[str, Any] = {"model": spec.model, "api_key": environment.openai_api_key}
    if "base_url" not in spec.parameters and environment.openai_base_url:
        given["base_url"] = environment.openai_base_url
    if "price" in spec.parameters:
        given["price"] = parse_price(spec.parameters.pop("price"))
    if "prices" in spec.parameters:
        given["prices"] = read_prices(Path(spec.parameters.pop("prices")))
    remembered = Remembered(environment.cache / "servers.json")
    return OpenAIOracle(spec.config(OpenAIConfig, given), remembered, spec.store, spec.budget)


def _vlm(spec: Spec) -> Oracle:
    from models.local.oracle import LocalVlmConfig, LocalVlmOracle

    if not spec.model:
        raise OracleError("oracle 'vlm' names no model: say which, as in vlm:PATH_OR_HUB_ID")
    return LocalVlmOracle(spec.config(LocalVlmConfig, {"model": spec.model}))


def _human(spec: Spec) -> Oracle:
    from models.people.human import HumanOracle, HumanTerms

    if spec.store is None:
        raise OracleError(f"oracle {spec.text!r} needs a store in which questions can wait for people")
    money = {name: _usd(spec, name) for name in ("price", "hourly")}
    return HumanOracle(spec.store.queue, spec.model, spec.config(HumanTerms, money))


def _recorded(spec: Spec) -> Oracle:
    from models.people.recorded_votes import RecordedVotes
    from reports.run.csv_cells import restore

    if not spec.model:
        raise OracleError("oracle 'recorded' names no file: say which, as in recorded:votes.csv")
    price = _usd(spec, "price")
    for name in spec.parameters:
        raise OracleError(f"oracle {spec.text!r}: unknown parameter {name!r}: it takes price only")
    return RecordedVotes(Path(spec.model), price=price, cell=restore)


BUILDERS: dict[str, Callable[[Spec], Oracle]] = {
    "simulated": _simulated,
    "contrastive": _contrastive,
    "openai": _openai,
    "vlm": _vlm,
    "human": _human,
    "recorded": _recorded,
}
