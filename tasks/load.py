"""Read a data set."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from sources.dataset import Dataset
from sources.load import load_dataset


@task(name="load", cache_policy=NO_CACHE, persist_result=False)
def load(spec: str) -> Dataset:
    return load_dataset(spec)
