"""The settings of a rediscovery: one model for the command line and the form in Prefect."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from flows.settings import SUBSET
from flows.unsecret import DatasetText, OracleText, StoreText
from models.oracle import MICRO, Money


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
    def budget_micro(self) -> Money | None:
        return None if self.budget is None else int(self.budget * MICRO)
