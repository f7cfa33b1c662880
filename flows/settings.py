"""Settings are kept: in run.json, in the store, and by Prefect as parameters. What is secret is refused before that.

The settings of a run, and the one place that reads the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic_core import PydanticCustomError

from discovery.questions import Strategy, StrategyError
from flows.oracles import secret_in
from models.oracle import MICRO, Money, Oracle, digest_of
from sources.secrets import has_password, secret_of, words_of

if TYPE_CHECKING:
    from sources.dataset import Dataset
    from store import Store

NOT_REPEATED = "secret"  # the type of an error whose input is not shown


def _oracle(text: str) -> str:
    if problem := secret_in(text):
        raise PydanticCustomError(NOT_REPEATED, "{problem}", {"problem": problem})
    return text


def _store(text: str) -> str:
    if has_password(text) or "password=" in text.lower():
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


OracleText = Annotated[str, AfterValidator(_oracle)]
StoreText = Annotated[str, AfterValidator(_store)]
DatasetText = Annotated[str, AfterValidator(_dataset)]


APP = "twothirds"
LARGE = 5_000  # examples, above which only a subset is compared
SUBSET = 2_000
OF_THE_STRATEGY = ("beyond", "ask", "theta", "degree", "delta", "parts")
StrategyName = Literal["auto", "adaptive-triple", "random-triple", "adaptive-pair", "adaptive-hybrid", "tagging"]


class DiscoverSettings(BaseModel):
    """Everything that one discovery is told. The same model is the command line, the form in Prefect and run.json."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    dataset: DatasetText = Field(
        description="a folder of images, a CSV, JSONL or Parquet file, or an fsspec URL of these"
    )
    oracle: OracleText = Field(
        description="who answers: contrastive (the shipped model, which knows drawn faces only), contrastive:MODEL, "
        "openai:MODEL, vlm:MODEL, human[:QUEUE] or simulated[:CROWD]; parameters after a ?"
    )
    strategy: StrategyName = Field("auto", description="how the next questions are chosen")
    queries: int = Field(35, ge=1, description="comparisons to ask at most")
    votes: int = Field(1, ge=1, le=99, description="independent votes per label; the majority counts")
    voters: int = Field(1, ge=1, le=99, description="independent voters asked each comparison; each is a query")
    batch: int = Field(1, ge=1, le=1000, description="comparisons asked at a time")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    budget: Annotated[Decimal, Field(gt=0, decimal_places=6)] | None = Field(
        None, description="USD that this run may cost in all, interrupted attempts included"
    )
    target_g: float | None = Field(None, ge=0, le=1, description="stop when g has come down to this")
    nones: int | None = Field(None, ge=1, description="stop after this many NONEs in a row")
    beyond: bool | None = Field(
        None, description="go on when nothing is unresolved (auto does; adaptive-triple and adaptive-pair if told to)"
    )
    ask: Literal["left-right", "two-of-three"] | None = Field(
        None, description="put comparisons as left-right questions, or a pair as two two-of-three questions"
    )
    theta: int | None = Field(None, ge=1, description="adaptive-hybrid: questions in vain before a feature is left")
    degree: int | None = Field(None, ge=2, description="adaptive-hybrid: features right below a feature, at most")
    delta: float | None = Field(None, gt=0, lt=1, description="adaptive-hybrid: allowed probability to miss a feature")
    parts: str | None = Field(
        None, description="auto: parts to switch, as in imagine=off,ways=unresolved+pair (docs/strategies.md)"
    )
    elicit_on: int | None = Field(
        None, ge=3, description=f"compare only a random subset of this size (default: {SUBSET:,} above {LARGE:,})"
    )
    label_rest: bool = Field(False, description="with a subset: label the examples that were not compared, at the end")
    provider_batch: bool = Field(False, description="openai: send labels through the Batch API, at half the price")
    labeller: OracleText | None = Field(
        None, description="who labels, if not the oracle that elicits; as in human:QUEUE"
    )
    escalate: float | None = Field(
        None,
        ge=0,
        le=0.5,
        description="people label where votes disagree or a probability is within this of one half",
    )
    spot_check: float | None = Field(None, gt=0, le=1, description="share of the labels that people check")
    people: OracleText = Field("human", description="who is asked by --escalate and --spot-check")
    wait: bool = Field(
        False, description="wait for answers that take their time, people's for one, instead of ending with status 75"
    )
    store: StoreText | None = Field(
        None, description="URL or path of the store (default: TWOTHIRDS_STORE, or the user's own)"
    )
    out: str | None = Field(None, description="the run folder (default: runs/DATASET-ORACLE-DIGEST)")

    def resolved(self, n: int) -> DiscoverSettings:
        """With the defaults that depend on the number of examples filled in."""
        if self.elicit_on is None and n > LARGE:
            return self.model_copy(update={"elicit_on": SUBSET})
        return self

    def make_strategy(self, n: int) -> Strategy:
        """For `n` examples; raises StrategyError where that is impossible."""
        from discovery.strategies import make_strategy
        from flows.discover.settings import read_parts

        if self.ask is not None and self.voters > 1:
            raise StrategyError(f"--voters {self.voters} and --ask {self.ask} do not go together: leave one out")
        options = {name: getattr(self, name) for name in ("beyond", "theta", "degree", "delta")}
        options = {name: value for name, value in options.items() if value is not None} | read_parts(self.parts)
        rng = np.random.default_rng(self.seed)
        return make_strategy(self.strategy, n, rng, batch=self.batch, ask=self.ask, **options)

    def scope(self, dataset: Dataset, oracle: Oracle) -> str:
        """The same for every repetition of a run, however far it may go: budgets and resuming are counted by it."""
        deciding = {"strategy", "votes", "voters", "batch", "seed", "elicit_on", *OF_THE_STRATEGY}
        chosen = self.model_dump(mode="json", include=deciding)
        return digest_of([dataset.digest, oracle.identity.to_json(), chosen])

    @property
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else int(self.budget * MICRO)


def default_store() -> str:
    """TWOTHIRDS_STORE, for an address with a password has no place among parameters; else in the user's data folder."""
    return os.environ.get("TWOTHIRDS_STORE") or f"sqlite:///{Path(platformdirs.user_data_dir(APP)) / 'store.sqlite'}"


def open_store(url: str | None) -> Store:
    """Every process that works for long begins with this."""
    from flows.arenas import share_arenas
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages
    from store import Store

    share_arenas()
    return Store.open(url or default_store(), waiting=TerminalDisplay(messages()).waiting)


def state_folder() -> Path:
    return Path(platformdirs.user_state_dir(APP))


@dataclass(frozen=True)
class Environment:
    """What the usual variables say. Secrets stay in here and in the adapters: never in settings, logs or the store."""

    cache: Path
    openai_api_key: SecretStr
    openai_base_url: str | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no line may show."""
        of_oracle = words_of(self.openai_api_key.get_secret_value(), self.openai_base_url)
        return (*of_oracle, *words_of("", default_store()))

    @classmethod
    def read(cls) -> Environment:
        return cls(
            cache=Path(platformdirs.user_cache_dir(APP)),
            openai_api_key=SecretStr(os.environ.get("OPENAI_API_KEY", "")),
            openai_base_url=os.environ.get("OPENAI_BASE_URL") or None,
        )


def prefect_environment() -> dict[str, str]:
    """History written promptly, nothing reported to anybody; whatever the user has set wins."""
    wanted = {
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}
