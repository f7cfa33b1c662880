"""Label every example with a batch of features."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from models.oracle import Feature
from models.voting import Labelled, Panel


@task(name="label", cache_policy=NO_CACHE, persist_result=False)
def label(panel: Panel, features: list[Feature]) -> Labelled:
    return panel.label(features)
