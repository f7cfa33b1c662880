"""instructor with asyncio: a semaphore, a response model with a boolean per feature, one example a request.

The variant `cached` gives the client a cache on disk, as instructor's page on caching does."""

from __future__ import annotations

import asyncio
from typing import Any

import instructor
from instructor.cache import DiskCache
from instructor.core import InstructorRetryException
from openai import AsyncOpenAI
from pydantic import Field, create_model

from benchmarks.peers.job import INSTRUCTIONS, MODEL, Job, Labels, given_job


async def label(job: Job) -> Labels:
    kept = {"cache": DiskCache(directory=f"{job.state}/instructor"), "cache_namespace": "labels"}
    options = kept if job.variant == "cached" else {}
    client = instructor.from_openai(AsyncOpenAI(base_url=job.base_url, api_key="none"), **options)
    fields: dict[str, Any] = {feature.field: (bool, Field(description=feature.definition)) for feature in job.fields}
    answer = create_model("Features", **fields)
    places, labels = asyncio.Semaphore(job.concurrency), Labels()

    async def label_item(item) -> None:
        shown = item.text if item.picture is None else [instructor.Image.from_path(item.picture)]
        messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": shown}]
        async with places:
            try:
                found = await client.chat.completions.create(model=MODEL, response_model=answer, messages=messages)
            except InstructorRetryException:
                return
        labels[item.id] = found.model_dump()

    await asyncio.gather(*(label_item(item) for item in job.items))
    return labels


if __name__ == "__main__":
    job = given_job()
    job.done(asyncio.run(label(job)), "instructor", "openai")
