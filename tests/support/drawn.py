"""A small picture on disk, and what was read of a data set."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from twothirds.sources.dataset import Dataset


def draw(path: Path, colour: str = "red") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 9), colour).save(path, "PNG")
    return path


def ids(data: Dataset) -> list[str]:
    return [example.id for example in data.examples]


def reasons(data: Dataset) -> dict[str, str]:
    return {bad.id: bad.reason for bad in data.quarantined}
