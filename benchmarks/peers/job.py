"""What a tool is asked to do, and what it has done. Read by the Python of every tool: the standard library only."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

MODEL = "gpt-4o-mini"
PRICE = "0.15,0.60,0.075"  # its price, in USD per million tokens
INSTRUCTIONS = "Decide for each feature whether the example has it. Judge by its definition."
Labels = dict[str, dict[str, bool | None]]  # by example and field


@dataclass(frozen=True)
class Item:
    """An example: a text, or the path of a picture."""

    id: str
    text: str | None = None
    picture: str | None = None


@dataclass(frozen=True)
class Field:
    """A feature, with a name that programs accept."""

    name: str
    field: str
    definition: str


@dataclass(frozen=True)
class Job:
    base_url: str
    dataset: str
    features: str  # a table for `enrich`
    state: str  # a folder that outlives a kill: caches and stores go there
    result: str  # where the labels are to be written
    items: tuple[Item, ...]
    fields: tuple[Field, ...]
    concurrency: int = 16
    budget: float | None = None  # USD
    variant: str = ""  # of a tool that can be used in several documented ways

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: str) -> Job:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        data["items"] = tuple(Item(**item) for item in data["items"])
        data["fields"] = tuple(Field(**field) for field in data["fields"])
        return cls(**data)

    def done(self, labels: Mapping[str, Mapping[str, bool | None]], *packages: str, note: str = "") -> None:
        """Write the result, with the versions of these packages."""
        versions = {name: version(name) for name in packages}
        result = {"labels": labels, "versions": versions, "note": note}
        Path(self.result).write_text(json.dumps(result), encoding="utf-8")


def given_job() -> Job:
    """The one on the command line of a tool's program."""
    return Job.read(sys.argv[1])
