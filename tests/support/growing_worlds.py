"""Data sets that grow: texts with a truth beside them, written anew with more rows; and a night that labels them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.events import SILENT, Events

TRAITS = ("red", "round", "heavy")


class World:
    """Texts with traits. The truth of a row depends on its number alone: more rows change nothing of the others."""

    def __init__(self, folder: Path, rows: int, traits: tuple[str, ...] = TRAITS) -> None:
        self.folder = folder
        self.traits = traits
        folder.mkdir(parents=True, exist_ok=True)
        self.texts = {f"e{number:06}": f"text of number {number}" for number in range(rows)}
        self.write()

    @property
    def spec(self) -> str:
        return str(self.folder / "world.csv")

    @property
    def features(self) -> str:
        return "; ".join(f"{name}: It is {name}." for name in self.traits)

    def truth(self, name: str) -> list[int]:
        number = int(name.lstrip("re") or 0)
        drawn = np.random.default_rng(number).integers(0, 2, 40)
        return [int(value) for value in drawn[: len(self.traits)]]

    def add(self, more: int) -> list[str]:
        first = len(self.texts)
        new = [f"e{number:06}" for number in range(first, first + more)]
        self.texts |= {name: f"text of number {name}" for name in new}
        self.write()
        return new

    def write(self) -> None:
        pd.DataFrame({"id": list(self.texts), "text": list(self.texts.values())}).to_csv(self.spec, index=False)
        truth = pd.DataFrame([self.truth(name) for name in self.texts], columns=list(self.traits))
        truth.insert(0, "id", list(self.texts))
        truth.to_csv(self.folder / "truth.csv", index=False)


def night(world: World, run_id: str | None = None, events: Events = SILENT, **changed: Any) -> dict[str, Any]:
    """One nightly run."""
    settings = {
        "dataset": world.spec,
        "features": world.features,
        "oracle": "simulated?price=0.001",
        "store": str(world.folder / "store.sqlite"),
        "out": str(world.folder / "out"),
    }
    return enrich_with(EnrichSettings.model_validate(settings | changed), run_id=run_id, events=events).to_json()


def table(world: World, name: str = "labels.parquet") -> pd.DataFrame:
    return pd.read_parquet(world.folder / "out" / name).set_index("id")


FILLERS = [f"word{number}" for number in range(200)]


class TellingWorld(World):
    """`named` is how often a trait that an example has is named in its text."""

    named = 0.99
    shares: tuple[float, ...] = (0.5, 0.3, 0.15)
    unnamed: tuple[str, ...] = ()  # traits that no text names

    def truth(self, name: str) -> list[int]:
        number = int(name.lstrip("re") or 0)
        drawn = np.random.default_rng([7, number]).random(len(self.traits))
        return [int(value < share) for value, share in zip(drawn, self.shares, strict=False)]

    def write(self) -> None:
        self.texts = {name: self.text(name) for name in self.texts}
        super().write()

    def text(self, name: str) -> str:
        rng = np.random.default_rng([11, int(name.lstrip("re") or 0)])
        words = [str(word) for word in rng.choice(FILLERS, 6)]
        words += [
            trait
            for trait, has in zip(self.traits, self.truth(name), strict=True)
            if has and rng.random() < self.named and trait not in self.unnamed
        ]
        return f"{name} " + " ".join(words)
