"""The settings of an enrichment: one model for the command line, the form in Prefect and enrich.json."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from flows.settings import DatasetText, OracleText, StoreText
from models.oracle import MICRO, Money, digest_of

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
    shard: str | None = Field(
        None, description="label only one part of the examples, as in 3/8; the last part joins all"
    )
    store: StoreText | None = Field(
        None, description="URL or path of the store (default: TWOTHIRDS_STORE, or the user's own)"
    )
    out: str | None = Field(None, description="folder of the table that grows (default: enriched/DATASET)")

    @field_validator("shard")
    @classmethod
    def _is_a_shard(cls, value: str | None) -> str | None:
        if value is not None:
            parts = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", value)
            if not parts or not 1 <= int(parts[1]) <= int(parts[2]):
                raise ValueError("is not one of so many parts: write it as 3/8")
        return value

    @property
    def part(self) -> tuple[int, int]:
        """Which part, counted from 0, of how many."""
        place, _, count = (self.shard or "1/1").partition("/")
        return int(place) - 1, int(count)

    @property
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else int(self.budget * MICRO)

    def scope(self, folder: str, identity: dict[str, Any], version: int) -> str:
        """The same for every attempt at one version of a table, all its parts together: the budget is counted by it."""
        return digest_of(["enrich", folder, identity, version])
