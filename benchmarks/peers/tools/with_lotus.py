"""LOTUS: `sem_extract` with a column per feature, its cache in SQLite, and its usage limit where there is a budget."""

from __future__ import annotations

from typing import Any

import lotus
import pandas as pd
from lotus.cache import CacheConfig, CacheFactory, CacheType
from lotus.dtype_extensions import ImageArray
from lotus.models import LM
from lotus.types import LotusUsageLimitException, UsageLimit

from benchmarks.peers.job import MODEL, Job, Labels, given_job

VALUES = {"true": True, "false": False}


def label(job: Job) -> tuple[Labels, str]:
    cache = CacheConfig(CacheType.SQLITE, max_size=1_000_000, cache_dir=f"{job.state}/lotus")
    limit = UsageLimit(total_cost_limit=job.budget) if job.budget is not None else UsageLimit()
    model = LM(
        model=f"openai/{MODEL}",
        max_tokens=2_000,
        max_batch_size=job.concurrency,
        cache=CacheFactory.create_cache(cache),
        physical_usage_limit=limit,
        api_base=job.base_url,
        api_key="none",
    )
    lotus.settings.configure(lm=model, enable_cache=True)
    pictures = job.items[0].picture is not None
    column = "picture" if pictures else "text"
    shown = ImageArray([item.picture for item in job.items]) if pictures else [item.text for item in job.items]
    frame: Any = pd.DataFrame({"id": [item.id for item in job.items], column: shown})
    try:
        wanted = {feature.field: f"{feature.definition} true or false" for feature in job.fields}
        found = frame.sem_extract([column], wanted)
    except LotusUsageLimitException as limited:
        return {}, f"ended with {type(limited).__name__} and returned nothing"
    rows = found.to_dict("records")
    return {
        row["id"]: {feature.field: VALUES.get(str(row.get(feature.field)).lower()) for feature in job.fields}
        for row in rows
    }, ""


if __name__ == "__main__":
    job = given_job()
    labels, note = label(job)
    job.done(labels, "lotus-ai", "litellm", note=note)
