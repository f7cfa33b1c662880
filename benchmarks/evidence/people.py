"""What NLVR's people wrote and voted, and what their sentences mean."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.sentences import Picture, Program, Reading, is_towers, meaning, picture_of
from discovery.questions import UNKNOWN

READINGS = [Reading(exact, adjacent) for exact in (True, False) for adjacent in (True, False)]
Votes = NDArray[np.int8]  # cells × workers


@dataclass(frozen=True, eq=False)
class People:
    pictures: dict[str, Picture]
    comparisons: list[dict[str, str]]
    votes: list[dict[str, str]]

    @classmethod
    def read(cls, folder: Path) -> People:
        try:
            boxes = json.loads((folder / "structured.json").read_text(encoding="utf-8"))
            tables = [_rows(folder / name) for name in ("comparisons.csv", "votes.csv")]
        except OSError as error:
            raise SystemExit(f"{folder} is not the folder of NLVR ({error}): see --help") from None
        return cls({name: picture_of(one) for name, one in boxes.items()}, *tables)

    @cached_property
    def cells(self) -> list[tuple[str, str]]:
        """A picture and a sentence that people voted on."""
        return list(dict.fromkeys((row["example"], row["feature"]) for row in self.votes))

    @cached_property
    def workers(self) -> list[str]:
        return sorted({row["worker"] for row in self.votes})

    @cached_property
    def cast(self) -> Votes:
        said = np.full((len(self.cells), len(self.workers)), UNKNOWN, np.int8)
        place = {cell: number for number, cell in enumerate(self.cells)}
        for row in self.votes:
            said[place[row["example"], row["feature"]], self.workers.index(row["worker"])] = int(row["label"])
        return said

    @cached_property
    def majority(self) -> dict[tuple[str, str], bool]:
        yes, no = (self.cast == 1).sum(1), (self.cast == 0).sum(1)
        return dict(zip(self.cells, (yes > no).tolist(), strict=True))

    def truth(self, reading: Reading) -> NDArray[np.int8]:
        """Of every cell by the program of its sentence; UNKNOWN where there is none."""
        programs = {sentence: meaning(sentence, reading) for _, sentence in self.cells}
        return np.array([_value(programs[sentence], self.pictures[name]) for name, sentence in self.cells], np.int8)

    @cached_property
    def readings(self) -> list[tuple[Reading, int, int]]:
        """Each way of reading the sentences, and how many of the majorities it says, of how many."""
        said = np.array([self.majority[cell] for cell in self.cells])
        truths = [(reading, self.truth(reading)) for reading in READINGS]
        return [(one, int((true == said).sum()), int((true != UNKNOWN).sum())) for one, true in truths]

    @cached_property
    def reading(self) -> Reading:
        return max(self.readings, key=lambda one: one[1])[0]

    @cached_property
    def towers(self) -> list[str]:
        return [name for name, picture in self.pictures.items() if is_towers(picture)]

    @cached_property
    def about_towers(self) -> list[dict[str, str]]:
        """The questions about pictures of towers whose answer is covered."""
        towers = set(self.towers)
        return [
            row for row in self.comparisons if set(row["left"].split()) <= towers and row["sentence"] in self.meanings
        ]

    @cached_property
    def meanings(self) -> dict[str, NDArray[np.int8]]:
        """Of the sentences about towers that are covered, which of all pictures of towers they are true of."""
        about = set(self.towers)
        sentences = dict.fromkeys(sentence for name, sentence in self.cells if name in about)
        programs = {one: program for one in sentences if (program := meaning(one, self.reading)) is not None}
        return {
            one: np.array([program(self.pictures[name]) for name in self.towers], np.int8)
            for one, program in programs.items()
        }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _value(program: Program | None, picture: Picture) -> int:
    return UNKNOWN if program is None else int(program(picture))
