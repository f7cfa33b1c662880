"""distilabel: a pipeline of one task with structured output, its cache of batches.

Its task for classification asks for exactly n labels of a text, so that it cannot say which of many features hold."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from distilabel.models import OpenAILLM
from distilabel.pipeline import Pipeline
from distilabel.steps import LoadDataFromDicts
from distilabel.steps.tasks import TextGeneration, TextGenerationWithImage
from pydantic import Field, create_model

from benchmarks.peers.job import INSTRUCTIONS, MODEL, Item, Job, Labels, given_job


def label(job: Job) -> Labels:
    fields: dict[str, Any] = {feature.field: (bool, Field(description=feature.definition)) for feature in job.fields}
    llm = OpenAILLM(
        model=MODEL,
        base_url=job.base_url,
        api_key="none",
        structured_output={"schema": create_model("Features", **fields).model_json_schema()},  # a class is not pickled
        generation_kwargs={"max_new_tokens": 2_000},
    )
    pictures = job.items[0].picture is not None
    task = {"llm": llm, "system_prompt": INSTRUCTIONS, "input_batch_size": job.concurrency}
    task |= {"add_raw_input": False}  # a message with a picture and one without do not fit in one column
    with Pipeline(name="labels", cache_dir=f"{job.state}/distilabel") as pipeline:
        rows = LoadDataFromDicts(data=[row_of(item) for item in job.items], batch_size=job.concurrency)
        labels = TextGenerationWithImage(image_type="base64", **task) if pictures else TextGeneration(**task)
        rows >> labels
    found = pipeline.run(use_cache=True)["default"]["train"].to_list()
    return {row["id"]: json.loads(row["generation"]) if row["generation"] else {} for row in found}


def row_of(item: Item) -> dict[str, str]:
    if item.picture is None:
        return {"id": item.id, "instruction": item.text or ""}
    content = base64.b64encode(Path(item.picture).read_bytes()).decode()
    return {"id": item.id, "instruction": "This is the example.", "image": content}


if __name__ == "__main__":
    job = given_job()
    job.done(label(job), "distilabel", "instructor")
