"""The settings of a comparison."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from twothirds.flows.settings import DatasetText, OracleText, RunSettings, Usd
from twothirds.models import digest_of
from twothirds.sources import name_of

LARGEST_SAMPLE = 2_000  # examples, unless more are asked for
MOST_VOTES = 999
NOT_DECIDING = {"store", "out", "budget", "retry_unusable"}  # the page is the same with others


class CompareSettings(RunSettings):
    """The settings of one comparison."""

    oracles: tuple[OracleText, ...] = Field(
        min_length=1, description="who is compared, as in discover, and recorded:FILE (votes in a CSV file)"
    )
    features: str | None = Field(
        None,
        description="what is labelled: a run folder, a CSV file with a column name, or by hand: 'name: definition; …' "
        "(default: the features of recorded votes, else what the first oracle discovers)",
    )
    people: str | None = Field(
        None,
        description="which of the oracles stands for people (default: the first that is human, recorded, simulated)",
    )
    annotators: Literal["expert", "skilled", "crowd"] = Field(
        "crowd",
        description="who the people are: a model may be worse by 0.2 (expert), 0.15 (skilled) or 0.1 (crowd)",
    )
    votes: str = Field("5", description="votes per label: one number, or one per oracle separated by commas")
    sample: int | None = Field(
        None, ge=3, description=f"label only so many examples, drawn at random (default: all up to {LARGEST_SAMPLE:,})"
    )
    people_sample: int | None = Field(
        None, ge=1, description="people label only so many of these; shares of all are then corrected by the model"
    )
    comparisons: int = Field(20, ge=0, description="triples that every oracle is asked to compare")
    own_discovery: bool = Field(False, description="every oracle also discovers features by itself")
    queries: int = Field(35, ge=1, description="comparisons of each discovery at most")
    accuracy: float = Field(0.95, gt=0, le=1, description="how often labels should be right, for the advice")
    budget: Usd | None = Field(
        None, description="USD that the whole comparison may cost: all oracles, their discoveries included"
    )
    draws: int = Field(1_000, ge=100, le=100_000, description="resamples behind each interval")
    out: DatasetText | None = Field(
        None, description="folder of the page and the tables (default: runs/compare-DATASET-DIGEST)"
    )

    replace: bool = Field(False, exclude=True, description="overwrite the folder if it holds another comparison")

    @field_validator("votes", mode="before")
    @classmethod
    def _votes(cls, value: object) -> object:
        return str(value)

    @field_validator("votes")
    @classmethod
    def _are_numbers(cls, value: str) -> str:
        for part in value.split(","):
            if not part.strip().isdecimal() or not 1 <= int(part) <= MOST_VOTES:
                raise ValueError(f"write numbers from 1 to {MOST_VOTES}, separated by commas")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> CompareSettings:
        if len(set(self.oracles)) < len(self.oracles):
            raise ValueError("--oracles names one oracle twice: each is compared with the others")
        if self.votes.count(",") and self.votes.count(",") + 1 != len(self.oracles):
            raise ValueError(
                f"--votes {self.votes!r} must be one number, or one for each of {len(self.oracles)} oracles"
            )
        if self.people is not None and self.people not in self.oracles:
            raise ValueError(f"--people {self.people!r} is none of the --oracles: repeat one of them exactly")
        return self

    def votes_of(self, index: int) -> int:
        numbers = [int(part) for part in self.votes.split(",")]
        return numbers[index] if len(numbers) > 1 else numbers[0]

    @property
    def suffix(self) -> str:
        """Of the default folder, whose name tells data set, oracles and votes: empty if all else is as by default."""
        named = NOT_DECIDING | {"dataset", "oracles", "votes"}
        other = self.model_dump(mode="json", exclude=named, exclude_defaults=True)
        return f"-{digest_of(other)[:4]}" if other else ""

    @property
    def run_name(self) -> str:
        """Of its flow run."""
        return f"{name_of(self.dataset)}-{len(self.oracles)}-oracles-seed{self.seed}"

    @property
    def command(self) -> str:
        """What to type to get the same page."""
        import shlex

        words = [self.dataset, "--oracles", *self.oracles]
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name in ("dataset", "oracles", "store", "out", "retry_unusable", "replace") or value == field.default:
                continue
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, str(value)]
        return "twothirds compare " + shlex.join(words)
