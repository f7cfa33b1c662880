"""run.json: what a run was asked to do, on what, and how it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from twothirds.discovery import DIFFERENCE
from twothirds.reports.run.files import RunError, replace_file
from twothirds.reports.run.json_parts import JsonPart, Number
from twothirds.reports.run.unusable import UnusableAnswers
from twothirds.sources import without_secrets

NAME = "run.json"
LOCAL = re.compile(r"(?:file://)?(?:/|~|[A-Za-z]:\\)[^\s,;'\"]*")  # a path of the machine on which a run was made
MOST_REPEATED, FEW_REPEATED = 0.3, 3  # names that were known already: a share of all, or so few that say nothing
LEVEL = 0.05  # of the test whether a target is predicted
SETTINGS = {"dataset": str, "strategy": str, "votes": int, "seed": int}  # those that a report needs


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    for name, kind in SETTINGS.items():
        if isinstance(value.get(name), bool) or not isinstance(value.get(name), kind):
            raise ValueError(f"{name} should be of type {kind.__name__}")
    return value


class SkippedExample(JsonPart):
    id: str
    reason: str


class DatasetSummary(JsonPart):
    name: str
    digest: str
    examples: int
    compared: int
    compared_ids: list[str] | None = None  # None where every example was compared
    left_out: list[SkippedExample]


class OracleSummary(JsonPart):
    kind: str
    model: str
    parameters: dict[str, Any]
    prompts: str


class TruthScore(JsonPart):
    """How many attributes of the known truth the features match, and how well; `by_chance` is the same accuracy of
    labels that are shuffled among the examples."""

    matched: int
    of: int
    mean_balanced_accuracy: Number | None
    by_chance: Number | None


class TargetScore(JsonPart):
    """How well the features predict the target on held-out examples; the curves have one score per question."""

    column: str
    classes: list[str]  # none of a number
    measure: str
    trained_on: int
    held_out: int
    score: Number
    p: Number  # how often shuffled held-out values would score as high
    curve: list[Number]
    random: list[Number]
    shuffled: list[Number]

    @property
    def predicts(self) -> bool:
        return self.p <= LEVEL

    def __str__(self) -> str:
        figures = f"{self.measure} {self.score:.2f} on {self.held_out:,} held-out examples, p {self.p:.3f}"
        if self.predicts:
            return f"target {self.column}: predicted, {figures}"
        return f"target {self.column}: the features found do not predict it ({figures})"


class PerQuestion(JsonPart):
    """Where a question asks for several features: what questions brought."""

    most: int  # features that an answer may hold
    named: int  # features in all answers
    features: Number  # new ones per question


class KnownFeatures(JsonPart):
    """Features that the run started with. They are not counted among those that it found."""

    features: int
    labels_taken: int  # from a column of the data set or from another run
    labels_asked: int
    cost_usd: Number  # of these
    g: Number  # by these features alone
    labels_from: dict[str, str]  # by feature: a column, a run, or the oracle
    by: dict[str, str] = Field(default_factory=dict)  # by feature: who gave it while the run went on

    def __str__(self) -> str:
        names = f"{self.features} features were" if self.features > 1 else "1 feature was"
        return (
            f"{names} known: {self.labels_taken:,} labels taken, {self.labels_asked:,} asked; g {self.g:.3f} by these"
        )


class SteeredBy(JsonPart):
    """What a person wanted while the run went on, and after how many questions it was applied. `words` follow the name;
    `rejected` says why nothing came of it."""

    after: int
    action: str
    by: str
    at: str
    words: str
    rejected: str = ""


class SameFeatures(JsonPart):
    """Features that mean what an earlier one means, and the questions whether they do."""

    asked: int
    usd: Number
    features: int


class Unlabelled(JsonPart):
    """Examples of a run that ended before everything was labelled."""

    examples: int  # that have no label
    partly: int  # that lack labels of some features
    of: int
    usd_about: Number  # what their labels are likely to cost

    def __str__(self) -> str:
        counts = ((self.examples, "no labels"), (self.partly, "only some of their labels"))
        first, *more = (f"{count:,} of {self.of:,} examples have {words}" for count, words in counts if count)
        lacking = " and ".join([first, *(words.replace(f" of {self.of:,} examples", "") for words in more)])
        digits = 2 if self.usd_about >= 0.1 else 4 if self.usd_about >= 0.0001 else 6
        price = f"about {self.usd_about:.{digits}f} USD more labels them" if self.usd_about else "run again"
        return f"{lacking}; {price}"


class RunSummary(JsonPart):
    """Fields are in the order of the file. Those with a default only some runs have."""

    settings: Annotated[dict[str, Any], AfterValidator(_settings)]
    dataset: DatasetSummary
    oracle: OracleSummary
    run_id: str
    scope: str
    queries: int
    features: int
    interesting_distinct: int  # doubtful ones are not counted
    doubtful: list[str] = Field(default_factory=list)  # features whose own question contradicts them
    repeated_names: int
    g: Number
    g_curve: list[Number]
    unresolved: Number
    stopped_because: str
    cost_usd: Number  # paid by this call; `total_usd` by all calls of this run together
    paid_calls: int
    cached_calls: int
    total_usd: Number
    total_paid_calls: int
    booked_usd: dict[str, Number]  # the same as `total_usd`, for questions, labels and probes
    seconds: Number
    finished_at: str
    unknown_usd: float | None = None  # at most what requests of unknown cost come to, in addition
    versions: dict[str, Any]
    given: KnownFeatures | None = None
    steered: list[SteeredBy] = Field(default_factory=list)
    per_question: PerQuestion | None = None
    same: SameFeatures | None = None
    voters_agree: Number | None = None
    people: dict[str, Any] | None = None
    predicted: dict[str, Any] | None = None  # labels that were predicted, and their certificates
    nones_prove: str = ""
    target: TargetScore | None = None
    truth: TruthScore | None = None
    unusable: UnusableAnswers | None = None
    unlabelled: Unlabelled | None = None
    warnings: list[str] = Field(default_factory=list)  # that the reader of the results must know

    @classmethod
    def read(cls, folder: Path) -> RunSummary:
        """Raises RunError, one line with the remedy, where discover did not write the folder."""
        path = folder / NAME
        try:
            return cls.model_validate_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(f"{folder} is not a run folder (it has no {NAME}): give one that discover wrote") from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            problem = f"{where}: {first['msg']}" if where else first["msg"]
        except (OSError, ValueError) as error:
            problem = " ".join(str(error).split())
        raise RunError(f"{path} is not what discover writes ({problem}): run discover again")

    @property
    def rare(self) -> float:
        """The share of the examples in which a feature must differ to count."""
        return float(self.settings.get("rare", DIFFERENCE))

    @property
    def of_sampled(self) -> str:
        """On what g and the marks of features were judged, where that is not all examples."""
        return f"of {self.dataset.compared:,} sampled" if self.dataset.compared < self.dataset.examples else ""

    @property
    def notices(self) -> list[str]:
        """What the reader must know of the answers before believing the rest."""
        asked, notices = self.people or {}, [*(self.unusable.lines() if self.unusable else [])]
        if self.unlabelled:
            notices.append(str(self.unlabelled))
        if self.doubtful:
            notices.append(f"{doubtful_features(self.doubtful)}; not counted, and left out of exports")
        named = self.features + self.repeated_names
        if self.settings["strategy"] == "auto" and self.repeated_names > max(MOST_REPEATED * named, FEW_REPEATED):
            notices.append(
                f"{self.repeated_names:,} of {named:,} names that came back were known already: the oracle does not "
                "follow the list of known features: take --strategy adaptive-triple, which needs no list"
            )
        if (escalated := asked.get("escalated")) and (labels := asked.get("labels")):
            notices.append(f"people decided {escalated:,} of {labels:,} labels, because the labeller was in doubt")
        if checked := asked.get("checked"):
            notices.append(
                f"people checked {checked:,} votes of the labeller and gave the same {asked['agreed']:,} times"
            )
        return notices

    def write(self, folder: Path) -> None:
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"
        replace_file(folder / NAME, lambda file: file.write(text))


def doubtful_features(names: Sequence[str]) -> str:
    features = "1 doubtful feature" if len(names) == 1 else f"{len(names):,} doubtful features"
    return f"{features}, contradicted by the labels of the examples asked about: {', '.join(names)}"


def public_source(summary: RunSummary) -> str:
    """The data set's address if others can reach it, else its name."""
    spec = str(summary.settings["dataset"])
    reachable = "://" in spec and not spec.startswith(("file:", "local:"))
    return without_secrets(spec) if reachable and not LOCAL.search(spec.partition("://")[0]) else summary.dataset.name


def without_paths(text: str) -> str:
    """Each local path in a text by its last part."""
    return LOCAL.sub(lambda found: re.split(r"[/\\]", found.group().rstrip("/\\"))[-1] or "…", text)
