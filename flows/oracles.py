"""From `KIND[:MODEL][?name=value&…]` on the command line to an oracle: the only place that tells oracles apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from twothirds.flows.oracle_specs import OracleSpec, shown
from twothirds.flows.settings import OPENAI_SERVER, Environment, micro, parse_usd
from twothirds.models import MAX_PRICE_USD, Oracle, OracleError

if TYPE_CHECKING:
    from twothirds.models.people import RecordedVotes
    from twothirds.sources import Dataset
    from twothirds.store import Store


Config = TypeVar("Config")


@dataclass(frozen=True)
class BuildContext:
    """The oracle that was asked for, and all that it may be built from."""

    text: str
    model: str
    parameters: dict[str, str]
    dataset: Dataset
    seed: int
    environment: Environment
    store: Store | None = None  # where questions wait for people, and rate limits are shared
    growing: bool = False  # the data set will have more examples tomorrow, and the oracle is to stay the same

    def config(self, made: type[Config], fixed: Mapping[str, Any]) -> Config:
        """A configuration from the parameters, each read as the type of its field; `fixed` is not the user's to set."""
        names = [field.name for field in fields(made) if field.name not in fixed]  # type: ignore[arg-type]
        for name in self.parameters:
            if name not in names:
                raise OracleError(f"oracle {self.text!r}: unknown parameter {name!r}: choose among {', '.join(names)}")
        try:
            return TypeAdapter(made).validate_python({**self.parameters, **fixed})
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
    growing: bool = False,
) -> Oracle:
    spec = OracleSpec.parse(text)
    if spec.kind not in BUILDERS:
        raise OracleError(f"unknown oracle {shown(text)}: choose one of {', '.join(BUILDERS)}")
    parameters = dict(spec.parameters)
    return BUILDERS[spec.kind](BuildContext(text, spec.model, parameters, dataset, seed, environment, store, growing))


def recorded_votes(oracle: Oracle) -> RecordedVotes | None:
    """The votes and comparisons of an oracle that is a table of them."""
    from twothirds.models.people import RecordedVotes

    return oracle if isinstance(oracle, RecordedVotes) else None


def remarks_on(oracles: Iterable[str], dataset: Dataset) -> list[str]:
    """What people should know about how these oracles see the data set."""
    with_both = sum(example.text is not None and example.image is not None for example in dataset.examples)
    blind = [text for text in oracles if text.startswith("contrastive")]
    if not (with_both and blind):
        return []
    return [f"{blind[0]} looks at pictures only: the texts of {with_both:,} examples are not shown to it"]


def _simulated(spec: BuildContext) -> Oracle:
    from twothirds.discovery.simulation import CROWDS
    from twothirds.models.people import Behaviour, SimulatedOracle

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


def _usd(spec: BuildContext, name: str) -> int:
    """A sum of money taken out of the parameters; 0 where it is not given."""
    text = spec.parameters.pop(name, "0")
    try:
        amount = parse_usd(text)
        if amount > MAX_PRICE_USD:
            raise ValueError(f"{text!r} is too large: give at most {MAX_PRICE_USD:,} USD")
        return micro(amount)
    except ValueError as error:
        raise OracleError(f"oracle {spec.text!r}: {name}={error}") from None


@dataclass(frozen=True)
class _ContrastiveParameters:
    vocabulary: Annotated[str | None, "a file of words, or words separated by commas"] = None
    vectors: Annotated[str | None, "with an image tower (…/NAME.onnx): a NumPy file with a row for each word"] = None
    threshold: Annotated[float, "probability from which an example has a feature"] = 0.5
    synonym: Annotated[float, "similarity from which two words mean the same"] = 0.9
    revision: Annotated[str | None, "of a model on the hub"] = None


def _contrastive(spec: BuildContext) -> Oracle:
    from twothirds.models.contrastive import ContrastiveOracle

    chosen = spec.config(_ContrastiveParameters, {})
    words: Path | list[str] | None = None
    if chosen.vocabulary:
        path = Path(chosen.vocabulary)
        is_file = path.exists() or path.suffix in (".txt", ".json")
        words = path if is_file else [word.strip() for word in chosen.vocabulary.split(",")]
    return ContrastiveOracle(
        spec.model or None,
        vocabulary=words,
        vectors=Path(chosen.vectors) if chosen.vectors else None,
        threshold=chosen.threshold,
        synonym=chosen.synonym,
        cache=spec.environment.cache / "embeddings",
        revision=chosen.revision,
    )


def _openai(spec: BuildContext) -> Oracle:
    from twothirds.models import parse_price, read_prices
    from twothirds.models.openai import OpenAIConfig, OpenAIOracle, Remembered

    environment = spec.environment
    url = spec.parameters.get("base_url") or environment.openai_base_url
    fixed: dict[str, Any] = {"model": spec.model, "api_key": environment.key_for(url or OPENAI_SERVER)}
    if "base_url" not in spec.parameters and environment.openai_base_url:
        fixed["base_url"] = environment.openai_base_url
    if "price" in spec.parameters:
        fixed["price"] = parse_price(spec.parameters.pop("price"))
    if "prices" in spec.parameters:
        fixed["prices"] = read_prices(Path(spec.parameters.pop("prices")))
    remembered = Remembered(environment.cache / "servers.json")
    config = spec.config(OpenAIConfig, fixed)
    if spec.store is None:
        return OpenAIOracle(config, remembered)
    return OpenAIOracle(config, remembered, spec.store.rates, spec.store.notice)


def _vlm(spec: BuildContext) -> Oracle:
    from twothirds.models.local import LocalVlmConfig, LocalVlmOracle

    if not spec.model:
        raise OracleError("oracle 'vlm' names no model: say which, as in vlm:PATH_OR_HUB_ID")
    return LocalVlmOracle(spec.config(LocalVlmConfig, {"model": spec.model}))


def _human(spec: BuildContext) -> Oracle:
    from twothirds.models.people import HumanOracle, HumanTerms

    if spec.store is None:
        raise OracleError(f"oracle {spec.text!r} needs a store in which questions can wait for people")
    money = {name: _usd(spec, name) for name in ("price", "hourly")}
    return HumanOracle(spec.store.queue, spec.model, spec.config(HumanTerms, money), dataset=spec.dataset.name)


def _recorded(spec: BuildContext) -> Oracle:
    from twothirds.models.people import RecordedVotes
    from twothirds.reports.run import restore

    if not spec.model:
        raise OracleError("oracle 'recorded' names no file: say which, as in recorded:votes.csv")
    price, comparisons = _usd(spec, "price"), spec.parameters.pop("comparisons", None)
    if spec.parameters:
        name = next(iter(spec.parameters))
        raise OracleError(f"oracle {spec.text!r}: unknown parameter {name!r}: it takes comparisons and price")
    second = Path(comparisons) if comparisons else None
    return RecordedVotes(Path(spec.model), comparisons=second, price=price, cell=restore)


BUILDERS: dict[str, Callable[[BuildContext], Oracle]] = {
    "simulated": _simulated,
    "contrastive": _contrastive,
    "openai": _openai,
    "vlm": _vlm,
    "human": _human,
    "recorded": _recorded,
}
