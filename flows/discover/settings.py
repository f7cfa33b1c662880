"""The settings of a discovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from discovery import DIFFERENCE, FIRST_LOOK, LOOK_EVERY, Strategy, StrategyError
from flows.errors import UsageError
from flows.oracle_specs import OracleSpec, deciding, with_brief
from flows.settings import AboutText, DatasetText, NamesText, OracleText, PredictingSettings
from models import MOST_EXEMPLARS, Oracle, digest_of

if TYPE_CHECKING:
    from sources import Dataset

LARGE = 5_000  # examples, above which only a subset is compared, and others are labelled on request only
SUBSET = 2_000
WORKING_SET = 120  # examples that are compared where labels of an example cost less together: docs/discover.md
OF_THE_STRATEGY = ("beyond", "ask", "theta", "degree", "delta")
DECIDING = (
    *("strategy", "votes", "voters", "batch", "seed", "elicit_on", *OF_THE_STRATEGY),
    *("target", "between", "hold_out_by", "unguided", "exclude", "exemplars"),
    *("per_question", "look", "look_every", "ask_same", "label_every", "rare"),
)
PER_QUESTION = 3  # features that a model is asked for at a time
# Questions whose features are labelled together, and features that fit one request: docs/discover.md has the reckoning.
LABEL_EVERY, FEATURES_TOGETHER = 20, 60
MODELS = ("openai", "vlm", "contrastive")
TAKE_TIME = ("openai", "vlm")  # models whose labels cost money or time enough for a look to save some
StrategyName = Literal["auto", "adaptive-triple", "random-triple", "adaptive-pair", "adaptive-hybrid", "tagging"]


class DiscoverSettings(PredictingSettings):
    """The settings of one discovery."""

    oracle: OracleText = Field(
        description="who answers: contrastive (the shipped model, which knows drawn faces only), contrastive:MODEL, "
        "openai:MODEL, vlm:MODEL, human[:QUEUE] or simulated[:CROWD]; parameters after a ?"
    )
    strategy: StrategyName = Field("auto", description="how the next questions are chosen")
    queries: int = Field(35, ge=1, description="comparisons to ask at most")
    voters: int = Field(1, ge=1, le=99, description="independent voters asked each comparison; each is a query")
    batch: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="comparisons asked at a time, whose features are labelled before the next (default: 1)",
    )
    label_every: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="auto: label the features of so many comparisons together; until then comparisons are told the "
        f"names found (default: {LABEL_EVERY} with a model paid by the token and no --batch, else those of a batch)",
    )
    per_question: int | None = Field(
        None,
        ge=1,
        le=10,
        description=f"features that an answer may hold (default: {PER_QUESTION} with the strategy auto and a model, "
        "otherwise 1)",
    )
    look: int | None = Field(
        None,
        ge=0,
        description="examples on which a new feature is labelled first, and not in full if it surely will not count; "
        f"0 for no look (default: {FIRST_LOOK} with auto where openai or vlm labels without people, else 0)",
    )
    look_every: int | None = Field(
        None,
        ge=1,
        description="examples from one look at a new feature to the next, more where many were seen (default: "
        f"{LOOK_EVERY})",
    )
    ask_same: bool | None = Field(
        None,
        description="ask whether a new feature means the same as a known one where that is in doubt, and do not label "
        "it in full if so (default: with auto where openai or vlm labels without people)",
    )
    rare: float = Field(
        DIFFERENCE,
        gt=0,
        le=0.5,
        description="share of the examples that must have a feature, and lack it, for it to be interesting; a distinct "
        "one differs from others in as many",
    )
    target_g: float | None = Field(None, ge=0, le=1, description="stop when g has come down to this")
    nones: int | None = Field(None, ge=1, description="stop after this many NONEs in a row")
    beyond: bool | None = Field(
        None, description="go on when nothing is unresolved (auto does; adaptive-triple and adaptive-pair on request)"
    )
    ask: Literal["left-right", "two-of-three"] | None = Field(
        None, description="put comparisons as left-right questions, or a pair as two two-of-three questions"
    )
    theta: int | None = Field(None, ge=1, description="adaptive-hybrid: questions in vain before a feature is left")
    degree: int | None = Field(None, ge=2, description="adaptive-hybrid: features right below a feature, at most")
    delta: float | None = Field(None, gt=0, lt=1, description="adaptive-hybrid: allowed probability to miss a feature")
    avoid: AboutText = Field("", description="kinds of features that are not wanted, as in 'brand names; camera angle'")
    known: str | None = Field(
        None,
        description="features to start with, so that others are found: a run folder, a CSV file with the columns name "
        "and definition, or by hand: 'name: definition; …'; labels come from a column of that name, from the run, or "
        "else from the oracle",
    )
    exclude: NamesText | None = Field(
        None, description="names that are not to come up, as in 'text; watermark', or a file that holds them"
    )
    exemplars: int = Field(
        0,
        ge=0,
        le=MOST_EXEMPLARS,
        description="examples that models are shown with a feature when they label, of those that it was found by; "
        "people always see them",
    )
    target: str | None = Field(None, description="find features that predict this column of the data set")
    between: str | None = Field(
        None, description="find features that tell two values of a column apart, as in kind=cat,dog"
    )
    hold_out_by: str | None = Field(
        None, description="with a target: test on whole groups of this column, or on the last ones by time or number"
    )
    unguided: bool = Field(
        False, description="with a target: choose questions without it, as a control, and score it all the same"
    )
    elicit_on: int | None = Field(
        None,
        ge=3,
        description=f"compare only a random subset of this size (default: {SUBSET:,} above {LARGE:,} examples; "
        f"{WORKING_SET} with the strategy auto and a model paid by the token, all labelled at the end up to {LARGE:,})",
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
        False, description="wait for answers that take their time, e.g. people's, instead of ending with status 75"
    )
    out: DatasetText | None = Field(None, description="the run folder (default: runs/DATASET-ORACLE-DIGEST)")
    replace: bool = Field(False, exclude=True, description="overwrite the run folder if it holds another run")

    @property
    def output(self) -> str:
        """Without a folder the data set, for the default folder bears the name of the scope."""
        return (self.out or self.dataset).rstrip("/")

    def briefed(self, oracle: str) -> str:
        return with_brief(oracle, self.about, self.avoid)

    def resolved(self, n: int, *, rows_save: bool = False) -> DiscoverSettings:
        """With the defaults filled in that depend on who is asked, on the number of examples, and on whether labels of
        one example cost less when they are asked together. Strategies of the paper ask and compare as the paper does,
        and a target is learned from all examples."""
        chosen: dict[str, Any] = {"per_question": self._features_per_question()} | self._looks()
        chosen["ask_same"] = self._saves_by_asking if self.ask_same is None else self.ask_same
        aimed = self.target is not None or self.between is not None
        together = rows_save and self.strategy == "auto"
        chosen |= {"batch": self.batch or 1, "label_every": self._label_every(chosen["per_question"], together)}
        if self.elicit_on is None and together and not aimed and n > WORKING_SET:
            chosen |= {"elicit_on": WORKING_SET, "label_rest": self.label_rest or n <= LARGE}
        elif self.elicit_on is None and n > LARGE:
            chosen["elicit_on"] = SUBSET
        return self.model_copy(update=chosen)

    def _features_per_question(self) -> int:
        asked = OracleSpec.parse(self.oracle).kind
        if asked == "human" and (self.per_question or 1) > 1:
            raise UsageError(
                f"--per-question {self.per_question} is for models: people are asked for one feature at a time"
            )
        return self.per_question or (PER_QUESTION if self.strategy == "auto" and asked in MODELS else 1)

    def _label_every(self, features: int, together: bool) -> int | None:
        """None for the questions of a batch. `together`: labels of an example cost less when they are asked together.
        Whoever says how many are asked at a time has them labelled before the next, and so has a crowd with people."""
        batch = self.batch or 1
        if self.label_every is None:
            chosen = min(LABEL_EVERY, max(1, FEATURES_TOGETHER // features))
            people = OracleSpec.parse(self.oracle).kind not in MODELS or self.asks_people
            return chosen if together and self.batch is None and chosen > 1 and not people else None
        if self.label_every < batch:
            raise UsageError(
                f"--label-every {self.label_every} is less than --batch {batch}: what is asked at a time is labelled "
                f"together, so give {batch} or more"
            )
        if self.label_every > batch and self.strategy != "auto":
            raise UsageError(
                f"--label-every {self.label_every} is for the strategy auto: give {batch} with {self.strategy}, which "
                "chooses by labels alone"
            )
        return self.label_every if self.label_every > batch else None

    def _looks(self) -> dict[str, int | None]:
        """Every look is another wait: none by default where people or a provider's batch label."""
        look = (FIRST_LOOK if self._saves_by_asking else 0) if self.look is None else self.look
        if self.look_every and not look:
            raise UsageError(f"--look-every {self.look_every} is for looks: give --look {FIRST_LOOK} too")
        return {"look": look, "look_every": self.look_every or LOOK_EVERY if look else None}

    @property
    def asks_people(self) -> bool:
        """About labels of another oracle."""
        return self.escalate is not None or self.spot_check is not None

    @property
    def _saves_by_asking(self) -> bool:
        """Whether one more question before all labels of a feature costs less than it may save, and no long wait."""
        waits = self.asks_people or self.provider_batch
        labels = OracleSpec.parse(self.labeller or self.oracle).kind
        return self.strategy == "auto" and labels in TAKE_TIME and not waits

    def make_strategy(self, n: int) -> Strategy:
        """For `n` examples; raises StrategyError where that is impossible."""
        from discovery.strategies import make_strategy

        if self.ask is not None and self.voters > 1:
            raise StrategyError(f"--voters {self.voters} and --ask {self.ask} do not go together: leave one out")
        options = {name: getattr(self, name) for name in ("beyond", "theta", "degree", "delta")}
        options = {name: value for name, value in options.items() if value is not None}
        if self.strategy == "auto" and (self.per_question or 1) > 1:
            options["most"] = self.per_question
        if self.strategy == "auto":
            options["difference"] = self.rare
        rng = np.random.default_rng(self.seed)
        return make_strategy(self.strategy, n, rng, batch=self.batch or 1, ask=self.ask, **options)

    @property
    def excluded(self) -> tuple[str, ...]:
        return tuple(self.exclude.split("; ")) if self.exclude else ()

    def scope(self, dataset: Dataset, oracle: Oracle, known: str = "") -> str:
        """The same for every repetition of a run, however far it may go: budgets and resuming are counted by it.
        `known` stands for the features that it starts with."""
        return digest_of([dataset.digest, oracle.identity.to_json(), self._deciding(), known])

    def purpose(self, dataset: Dataset) -> str:
        """The same for every repetition of a run, before it is known what servers can do: probes are counted by it."""
        asked = [deciding(self.briefed(text)) for text in (self.oracle, self.labeller, self.people) if text]
        mixture = [self.escalate, self.spot_check, self.provider_batch]
        return digest_of(["discover", dataset.digest, asked, mixture, self._deciding()])

    def _deciding(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include=set(DECIDING))

    @property
    def limits(self) -> str:
        """What distinguishes the default folders of runs that go to different lengths; empty for the default length."""
        lengths = {"queries", "target_g", "nones", "label_rest", "agree", "uncertified"}
        changed = self.model_dump(include=lengths, exclude_defaults=True)
        words = (name if value is True else f"{name}-{value}" for name, value in changed.items())
        return "".join(f"-{word.replace('_', '-')}" for word in words)

    @property
    def run_name(self) -> str:
        return f"{super().run_name}-seed{self.seed}"
