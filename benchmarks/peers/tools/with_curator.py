"""Bespoke Curator as its README uses it: an LLM class with a prompt, a response format and its cache of responses."""

from __future__ import annotations

from typing import Any

from bespokelabs import curator
from pydantic import BaseModel, Field, create_model

from benchmarks.peers.job import INSTRUCTIONS, MODEL, Job, Labels, given_job

AMPLE = 1_000_000_000  # a minute: the limits of the account are not what is measured


class Labeller(curator.LLM):
    def prompt(self, row):
        if row["picture"]:
            return INSTRUCTIONS, curator.types.Image(url=row["picture"])
        return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": row["text"]}]

    def parse(self, row, response: BaseModel):
        return {"id": row["id"], **response.model_dump()}


def label(job: Job) -> Labels:
    fields: dict[str, Any] = {feature.field: (bool, Field(description=feature.definition)) for feature in job.fields}
    labeller = Labeller(
        model_name=MODEL,
        response_format=create_model("Features", **fields),
        backend="openai",
        backend_params={
            "base_url": job.base_url,
            "max_concurrent_requests": job.concurrency,
            "max_requests_per_minute": AMPLE,
            "max_tokens_per_minute": AMPLE,
            "require_all_responses": False,
        },
    )
    rows = [{"id": item.id, "text": item.text or "", "picture": item.picture or ""} for item in job.items]
    found = labeller(rows, working_dir=f"{job.state}/curator")
    return {row.pop("id"): row for row in found.dataset.to_list()}


if __name__ == "__main__":
    job = given_job()
    job.done(label(job), "bespokelabs-curator", "litellm")
