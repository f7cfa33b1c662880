"""Draws the hundred faces again, byte for byte: python datasets/faces/build.py [FOLDER]"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from benchmarks.faces_model.draw import png  # noqa: E402
from benchmarks.faces_model.face import Face, shipped_faces  # noqa: E402
from benchmarks.faces_model.truth import ATTRIBUTES, visible  # noqa: E402

SIZE = 160


def faces() -> dict[str, Face]:
    return {f"face-{number:03d}": face for number, face in enumerate(shipped_faces(), start=1)}


def build(folder: Path) -> None:
    drawn = faces()
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for identifier, face in drawn.items():
        (folder / "images" / f"{identifier}.png").write_bytes(png(face, SIZE))
    _write(
        folder / "metadata.csv", ["file_name", "id"], [[f"images/{identifier}.png", identifier] for identifier in drawn]
    )
    rows = [[identifier, *(str(int(seen)) for seen in visible(face).values())] for identifier, face in drawn.items()]
    _write(folder / "truth.csv", ["id", *ATTRIBUTES], rows)


def _write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
