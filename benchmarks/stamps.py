"""Real pictures with what people say of them: Tux Paint's stamps, in folders by kind, each with a caption.

tests/install_clip.sh unpacks them from the Debian package tuxpaint-stamps-default (GPL 2 or later)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Truth = NDArray[np.bool_]  # of each picture
DRAWN = {"symbols", "cartoon"}  # folders that hold no photographs
LEAST = 8  # pictures that a folder must hold, and lack, to be a feature
NAMED = 3  # pictures that must have a name in their folders or captions for the name to have a truth


@dataclass(frozen=True)
class Stamp:
    path: str  # below the folder of all stamps
    caption: str

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(self.path.split("/")[:-1])

    @property
    def is_photograph(self) -> bool:
        """By its folders; those without a caption are mirrored copies."""
        return DRAWN.isdisjoint(self.folders) and bool(self.caption)

    @cached_property
    def words(self) -> frozenset[str]:
        return words_of(" ".join((*self.folders, self.caption)))


def words_of(text: str) -> frozenset[str]:
    """In small letters and in the singular, by the plainest rules."""
    return frozenset(_singular(word) for word in re.findall("[a-z]+", text.lower()))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "ches", "shes", "oes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def read_stamps(folder: Path) -> list[Stamp]:
    """The first line of a caption is English; translations follow."""
    found = []
    for picture in sorted(folder.rglob("*.png")):
        said = picture.with_suffix(".txt")
        lines = said.read_text(encoding="utf-8").splitlines() if said.exists() else []
        found.append(Stamp(picture.relative_to(folder).as_posix(), lines[0] if lines else ""))
    return found


def having(stamps: Sequence[Stamp], name: str) -> Truth:
    """Pictures whose folders and caption together have all words of a name; what follows its hyphen does not count."""
    wanted = words_of(name.partition("-")[0])
    return np.array([wanted <= stamp.words for stamp in stamps])


def has_truth(stamps: Sequence[Stamp], name: str) -> bool:
    return bool(having(stamps, name).sum() >= NAMED)


def folders_of(stamps: Sequence[Stamp]) -> dict[str, Truth]:
    """Which pictures are in each folder of enough pictures, at whatever depth."""
    names = sorted({folder for stamp in stamps for folder in stamp.folders})
    inside = {name: np.array([name in stamp.folders for stamp in stamps]) for name in names}
    return {name: held for name, held in inside.items() if LEAST <= held.sum() <= len(stamps) - LEAST}


def write_stamps(stamps: Sequence[Stamp], source: Path, folder: Path) -> Path:
    """A data set without the captions, which would be shown with the pictures; its truth are the folders."""
    for stamp in stamps:
        (folder / stamp.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / stamp.path, folder / stamp.path)
    table = {"id": [stamp.path for stamp in stamps]} | {
        name: held.astype(int) for name, held in folders_of(stamps).items()
    }
    pd.DataFrame(table).to_csv(folder / "truth.csv", index=False)
    return folder
