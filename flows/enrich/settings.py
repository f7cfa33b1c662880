"""The settings of an enrichment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from twothirds.discovery.statistics import Promise
from twothirds.flows.oracle_specs import with_brief
from twothirds.flows.settings import DatasetText, PredictingSettings, Usd
from twothirds.models import MOST_EXEMPLARS, digest_of
from twothirds.sources import name_of

Runner = Literal["threads", "dask", "ray"]


def default_folder(spec: str) -> Path:
    """Of the table."""
    return Path("enriched") / name_of(spec)


class EnrichSettings(PredictingSettings):
    """The settings of one enrichment."""

    features: str = Field(
        description="a run folder, a CSV file with the columns name and definition, or by hand: 'name: definition; …'"
    )
    exemplars: int = Field(
        0,
        ge=0,
        le=MOST_EXEMPLARS,
        description="with the features of a run: examples of the run that models are shown with each of them; people "
        "always see them",
    )
    backfill: bool = Field(False, description="fill in features that are new to the table for old examples too")
    drop_gone: bool = Field(False, description="drop rows whose examples are no longer in the data set")
    expect: str | None = Field(
        None, description="a JSON file that says what the table must be like; one that is not does not replace it"
    )
    delta: float = Field(0.05, gt=0, lt=0.5, description="with agree: how probable it may be that a certificate fails")
    propose: int | None = Field(
        None,
        ge=1,
        description="then ask so many questions about examples that the features leave unresolved; proposals.csv "
        "beside the table holds what is new",
    )
    budget: Usd | None = Field(
        None, description="USD that one version of the table may cost, interrupted attempts included; see also per"
    )
    runner: Runner = Field("threads", description="where batches are labelled: here, or on a Dask or Ray cluster")
    workers: int = Field(2, ge=1, le=1000, description="batches labelled at a time: threads, or processes of a cluster")
    cluster: str | None = Field(
        None, description="address of a cluster that is there already (default: one of its own for this run)"
    )
    out: DatasetText | None = Field(None, description="folder of the table that grows (default: enriched/DATASET)")

    def briefed(self, oracle: str) -> str:
        """As the run was whose features these are, if nothing else is said."""
        from twothirds.flows.discover.known import about_of

        return with_brief(oracle, self.about or about_of(self.features), None)

    @property
    def promise(self) -> Promise:
        return Promise(self.agree or 1.0, self.delta)

    @property
    def output(self) -> str:
        return (self.out or str(default_folder(self.dataset))).rstrip("/")

    def scope(self, folder: str, identity: dict[str, Any], version: int) -> str:
        """The same for every attempt at one version of a table: the budget is counted by it."""
        return digest_of(["enrich", folder, identity, version])
