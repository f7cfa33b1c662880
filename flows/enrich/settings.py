"""The settings of an enrichment: one model for the command line, the form in Prefect and enrich.json."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from flows.discover.settings import SUBSET
from flows.settings import DatasetText, OracleText, StoreText
from models.oracle import MICRO, Money, digest_of
from sources.find import name_of

Runner = Literal["threads", "dask", "ray"]


class EnrichSettings(BaseModel):
    """Everything that one enrichment is told."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    dataset: DatasetText = Field(
        description="a folder of images, a CSV, JSONL or Parquet file, or an fsspec URL of these"
    )
    features: str = Field(
        description="a run folder, a CSV file with the columns name and definition, or by hand: 'name: definition; …'"
    )
    oracle: OracleText = Field(description="who answers, as in discover")
    votes: int = Field(1, ge=1, le=99, description="independent votes per label; the majority counts")
    seed: int = Field(0, ge=0, description="seed of a simulated crowd")
    backfill: bool = Field(False, description="fill in features that are new to the table for old examples too")
    budget: Annotated[Decimal, Field(gt=0, decimal_places=6)] | None = Field(
        None, description="USD that one version of the table may cost, interrupted attempts included"
    )
    runner: Runner = Field("threads", description="where batches are labelled: here, or on a Dask or Ray cluster")
    workers: int = Field(2, ge=1, le=1000, description="batches labelled at a time: threads, or processes of a cluster")
    cluster: str | None = Field(
        None, description="address of a cluster that is there already (default: one of its own for this run)"
    )
    store: StoreText | None = Field(
        None, description="URL or path of the store (default: TWOTHIRDS_STORE, or the user's own)"
    )
    out: str | None = Field(None, description="folder of the table that grows (default: enriched/DATASET)")

    @model_validator(mode="before")
    @classmethod
    def _of_an_earlier_version(cls, values: Any) -> Any:
        """enrich.json of earlier versions has `shard`, null unless the data set was labelled in parts."""
        if isinstance(values, dict) and "shard" in values and values["shard"] is None:
            return {name: value for name, value in values.items() if name != "shard"}
        return values

    @property
    def run_name(self) -> str:
        """Of its flow run."""
        return f"{name_of(self.dataset)}-{self.oracle.partition('?')[0]}"

    @property
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else int(self.budget * MICRO)

    def scope(self, folder: str, identity: dict[str, Any], version: int) -> str:
        """The same for every attempt at one version of a table: the budget is counted by it."""
        return digest_of(["enrich", folder, identity, version])


class RediscoverSettings(BaseModel):
    """Everything that one rediscovery is told."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    dataset: DatasetText = Field(
        description="a folder of images, a CSV, JSONL or Parquet file, or an fsspec URL of these"
    )
    table: str = Field(description="the folder in which enrich keeps its table")
    oracle: OracleText = Field(description="who answers, as in discover")
    queries: int = Field(20, ge=1, description="comparisons to ask at most")
    votes: int = Field(1, ge=1, le=99, description="independent votes per label; the majority counts")
    examples: int = Field(SUBSET, ge=3, description="compare a random subset of this size")
    seed: int = Field(0, ge=0, description="seed of every random choice")
    budget: Annotated[Decimal, Field(gt=0, decimal_places=6)] | None = Field(None, description="USD that it may cost")
    store: StoreText | None = Field(
        None, description="URL or path of the store (default: TWOTHIRDS_STORE, or the user's own)"
    )

    @property
    def run_name(self) -> str:
        """Of its flow run."""
        return f"{name_of(self.dataset)}-{self.oracle.partition('?')[0]}"

    @property
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else int(self.budget * MICRO)
