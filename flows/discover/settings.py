"""The settings of a discovery."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from twothirds.discovery import DIFFERENCE, Strategy
from twothirds.flows.discover.profiles import LABELS_FOR_A_TARGET, Profile, usual_profile
from twothirds.flows.oracle_specs import with_brief
from twothirds.flows.settings import AboutText, DatasetText, NamesText, OracleText, PredictingSettings
from twothirds.models import MOST_EXEMPLARS, Members, OracleIdentity, Traits, digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twothirds.sources import Dataset, Example

CHOSEN_WITHOUT_LABELS = ("auto", "random-triple", "tagging")  # strategies that need none, or hardly
LARGE = 5_000  # examples, above which only a subset is compared, and others are labelled on request only
SUBSET = 2_000
WORKING_SET = 120  # examples that are compared where labels of an example cost less together: docs/discover.md
OF_THE_STRATEGY = ("beyond", "theta", "degree", "delta")
DECIDING = (
    *("strategy", "votes", "voters", "seed", "elicit_on", *OF_THE_STRATEGY),
    *("target", "between", "hold_out_by", "unguided", "exclude", "exemplars"),
    *("ask_same", "rare"),
)
StrategyName = Literal["auto", "adaptive-triple", "random-triple", "adaptive-pair", "adaptive-hybrid", "tagging"]


class DiscoverSettings(PredictingSettings):
    """The settings of one discovery."""

    oracle: OracleText = Field(
        description="who answers: contrastive (the shipped model, which knows drawn faces only), contrastive:MODEL, "
        "openai:MODEL, vlm:MODEL, human[:QUEUE] or simulated[:CROWD]; parameters after a ?"
    )
    strategy: StrategyName = Field("auto", description="how the next questions are chosen")
    queries: int | None = Field(
        None,
        ge=1,
        description="comparisons to ask at most (default: 35; with auto and a model paid by the token 12, 24 of short "
        "texts)",
    )
    voters: int = Field(1, ge=1, le=99, description="independent voters asked each comparison; each is a query")
    ask_same: bool | None = Field(
        None,
        description="ask whether a new feature means the same as a known one where that is in doubt (default: with "
        "auto where openai or vlm labels without people)",
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
        None, description="adaptive-triple, adaptive-pair: go on when nothing is unresolved, as auto does"
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

    def resolved(self, n: int, labels: Traits) -> DiscoverSettings:
        """With the defaults filled in that depend on the number of examples and on who labels. Strategies of the paper
        compare as the paper does, and a target is learned from all examples."""
        may_ask_same = self.strategy == "auto" and labels.profile in ("paid", "local") and labels.reads_text
        waits = self.asks_people or labels.slow
        chosen: dict[str, Any] = {"ask_same": may_ask_same and not waits if self.ask_same is None else self.ask_same}
        if (
            self.elicit_on is None
            and labels.shares_rows
            and self.strategy == "auto"
            and not self.is_aimed
            and n > WORKING_SET
        ):
            chosen |= {"elicit_on": WORKING_SET, "label_rest": self.label_rest or n <= LARGE}
        elif self.elicit_on is None and n > LARGE:
            chosen["elicit_on"] = SUBSET
        return self.model_copy(update=chosen)

    def profile(self, members: Members, examples: Sequence[Example]) -> Profile:
        """What is asked: the usual, with what these settings say. All labels come at the end where those of one example
        cost less together, unless they decide what is asked next or when it stops."""
        usual = usual_profile(self.strategy, members.comparisons.traits, examples)
        together = self.strategy in CHOSEN_WITHOUT_LABELS and members.labels.traits.shares_rows
        if self.is_aimed or self.target_g is not None:
            labels_after: int | None = LABELS_FOR_A_TARGET if together else 1
        else:
            labels_after = None if together else usual.labels_after
        return replace(usual, queries=self.queries or usual.queries, labels_after=labels_after)

    @property
    def is_aimed(self) -> bool:
        """At features that predict something."""
        return self.target is not None or self.between is not None

    @property
    def asks_people(self) -> bool:
        """About labels of another oracle."""
        return self.escalate is not None or self.spot_check is not None

    def make_strategy(self, n: int, profile: Profile) -> Strategy:
        """For `n` examples; raises StrategyError where that is impossible."""
        from twothirds.discovery.strategies import make_strategy

        options = {name: getattr(self, name) for name in ("beyond", "theta", "degree", "delta")}
        options = {name: value for name, value in options.items() if value is not None}
        if self.strategy == "auto":
            options |= {"most": profile.features, "widest": profile.widest}
        return make_strategy(self.strategy, n, np.random.default_rng(self.seed), **options)

    @property
    def excluded(self) -> tuple[str, ...]:
        return tuple(self.exclude.split("; ")) if self.exclude else ()

    def scope(self, dataset: Dataset, oracle: OracleIdentity, known: str = "") -> str:
        """The same for every repetition of a run, however far it may go: budgets and resuming are counted by it.
        `known` stands for the features that it starts with."""
        return digest_of([dataset.digest, oracle.to_json(), self._deciding(), known])

    def _deciding(self) -> dict[str, Any]:
        return self.model_dump(mode="json", include=set(DECIDING))

    def limits(self, usual_queries: int) -> str:
        """What distinguishes the default folders of runs that go to different lengths; empty for the usual length."""
        lengths = {"queries", "target_g", "nones", "label_rest", "agree", "uncertified"}
        changed = self.model_dump(include=lengths, exclude_defaults=True)
        if changed.get("queries") == usual_queries:
            del changed["queries"]
        words = (name if value is True else f"{name}-{value}" for name, value in changed.items())
        return "".join(f"-{word.replace('_', '-')}" for word in words)

    @property
    def run_name(self) -> str:
        return f"{super().run_name}-seed{self.seed}"
