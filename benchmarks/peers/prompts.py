"""Prompts of other ways to find features, in our own words after the published descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

TAG = "List up to 8 tags for this example: short noun phrases for what it shows or mentions. Answer in JSON."
MERGE = "These are tags of examples. Put those that mean the same into a group, named by its best tag. Answer in JSON."
DISTILL = "Sum up this example in up to 8 bullet points, each a phrase of at most 6 words. Answer in JSON."
SYNTHESIZE = (
    "These are bullet points about examples of one collection. Name up to 8 concepts that several of them have in "
    "common, each with a name of at most 4 words and a one-sentence criterion by which one can tell whether an example "
    "has it. Answer in JSON."
)
DIFFER = (
    "Group A and Group B are sets of examples. Name up to 5 differences: what is true more often of Group A than of "
    "Group B, each with a name of at most 4 words and a one-sentence criterion. Answer in JSON."
)
LABEL = "Decide for each feature whether the example has it. Judge by its definition. Answer in JSON."

TEXTS = {"type": "array", "items": {"type": "string"}}
NAMED = {"name": {"type": "string"}, "definition": {"type": "string"}}


def of_object(properties: dict[str, Any]) -> dict[str, Any]:
    """A strict schema."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TAGS = of_object({"tags": TEXTS})
BULLETS = of_object({"bullets": TEXTS})
CONCEPTS = of_object({"concepts": {"type": "array", "items": of_object(NAMED)}})
DIFFERENCES = of_object({"differences": {"type": "array", "items": of_object(NAMED)}})
GROUPS = of_object({"groups": {"type": "array", "items": of_object({"name": {"type": "string"}, "tags": TEXTS})}})


def labels_schema(features: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A boolean per feature, given by name and definition."""
    numbered = enumerate(features, start=1)
    return of_object(
        {f"f{number}": {"type": "boolean", "title": name, "description": text} for number, (name, text) in numbered}
    )
