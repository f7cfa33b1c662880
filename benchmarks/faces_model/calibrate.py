"""How far a picture may be from drawn faces before the shipped model's answers mean nothing, and how often that errs:
python -m benchmarks.faces_model.calibrate writes models/faces/domain.npz and domain.json and prints the table; with
--measure the table is of the files that are there, and nothing is written."""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from benchmarks.faces_model.draw import DRAWN_SIZE, png
from benchmarks.faces_model.evaluate import as_examples
from benchmarks.faces_model.face import Face, choosing_faces, held_out_faces
from twothirds.discovery.statistics import wilson
from twothirds.models.contrastive import SHIPPED, ContrastiveOracle, Domain
from twothirds.sources import load_dataset, picture_at

ROOT = Path(__file__).parents[2]
FITTED, CALIBRATED = 1000, 1000  # of the faces by which choices are made
QUANTILE = 0.995  # of the distances of other drawn faces is the threshold
OTHERS = 200  # pictures of each other kind
SEED = 0
Draw = Callable[[np.random.Generator, int], Image.Image]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faces_model.calibrate")
    parser.add_argument("--measure", action="store_true", help="how often the shipped threshold errs; write nothing")
    measure = parser.parse_args(arguments).measure
    oracle = ContrastiveOracle()
    with tempfile.TemporaryDirectory() as folder:
        vectors = _Vectors(oracle, Path(folder))
        kept = Domain.read(SHIPPED, str(dict(oracle.identity.parameters)["weights"])) if measure else None
        domain = kept or _calibrated(oracle, vectors)
        rows = [("held-out drawn faces", "inside", vectors.of_faces("held out", held_out_faces()))]
        rows.append(("datasets/faces", "inside", vectors.of_data_set("faces")))
        rows += [(f"datasets/{name}", "outside", vectors.of_data_set(name)) for name in ("flags", "emoji")]
        rows += [(name, "outside", vectors.drawn(name, draw)) for name, draw in OTHER_PICTURES.items()]
        _print(domain, rows)


def _calibrated(oracle: ContrastiveOracle, vectors: _Vectors) -> Domain:
    chosen = choosing_faces()
    fitted = Domain.fitted("drawn faces", vectors.of_faces("fitted", chosen[:FITTED]))
    calibration = vectors.of_faces("calibration", chosen[FITTED : FITTED + CALIBRATED])
    domain = replace(fitted, threshold=float(np.quantile(fitted.distances(calibration), QUANTILE)))
    domain.write(SHIPPED, _provenance(oracle))
    return domain


def _provenance(oracle: ContrastiveOracle) -> dict[str, object]:
    return {
        "weights": dict(oracle.identity.parameters)["weights"],
        "fitted_on": f"{FITTED} drawn faces (choosing_faces of benchmarks/faces_model/face.py)",
        "calibrated_on": f"{CALIBRATED} others of these, quantile {QUANTILE}",
        "command": "python -m benchmarks.faces_model.calibrate",
        "date": datetime.now(UTC).date().isoformat(),
    }


def _print(domain: Domain, rows: Sequence[tuple[str, str, NDArray[np.float32]]]) -> None:
    table = Table(title=f"threshold {domain.threshold:.2f}")
    for heading in ("pictures", "should be", "number", "outside", "wrong", "95 % interval"):
        table.add_column(heading)
    for name, should, vectors in rows:
        share = float(domain.outside(vectors).mean())
        wrong = share if should == "inside" else 1 - share
        low, high = wilson(round(wrong * len(vectors)), len(vectors))
        table.add_row(name, should, str(len(vectors)), f"{share:.1%}", f"{wrong:.1%}", f"{low:.1%} to {high:.1%}")
    Console(width=100).print(table)


class _Vectors:
    def __init__(self, oracle: ContrastiveOracle, folder: Path) -> None:
        self._oracle, self._folder = oracle, folder

    def of_faces(self, name: str, faces: Sequence[Face]) -> NDArray[np.float32]:
        folder = self._folder / name
        folder.mkdir()
        return self._oracle.vectors(as_examples(faces, folder))

    def of_data_set(self, name: str) -> NDArray[np.float32]:
        return self._oracle.vectors(load_dataset(str(ROOT / "datasets" / name)).examples)

    def drawn(self, name: str, draw: Draw) -> NDArray[np.float32]:
        folder, rng = self._folder / name, np.random.default_rng(SEED)
        folder.mkdir()
        examples = []
        for number in range(OTHERS):
            path = folder / f"{number}.png"
            draw(rng, number).save(path)
            examples.append(picture_at(path, str(number)))
        return self._oracle.vectors(examples)


def _noise(rng: np.random.Generator, _number: int) -> Image.Image:
    return Image.fromarray(rng.integers(256, size=(DRAWN_SIZE, DRAWN_SIZE, 3)).astype(np.uint8))


def _plain(rng: np.random.Generator, _number: int) -> Image.Image:
    return Image.new("RGB", (DRAWN_SIZE, DRAWN_SIZE), _colour(rng))


def _clouds(rng: np.random.Generator, _number: int) -> Image.Image:
    few = Image.fromarray(rng.integers(256, size=(5, 5, 3)).astype(np.uint8))
    return few.resize((DRAWN_SIZE, DRAWN_SIZE), Image.Resampling.BICUBIC)


def _discs(rng: np.random.Generator, number: int) -> Image.Image:
    picture = _plain(rng, number)
    pen = ImageDraw.Draw(picture)
    for _ in range(8):
        x, y, width, height = (int(value) for value in rng.integers(0, 120, size=4))
        pen.ellipse((x, y, x + width + 5, y + height + 5), fill=_colour(rng))
    return picture


def _colour(rng: np.random.Generator) -> tuple[int, int, int]:
    red, green, blue = (int(value) for value in rng.integers(256, size=3))
    return red, green, blue


def _face(number: int) -> Image.Image:
    with Image.open(io.BytesIO(png(held_out_faces()[number], DRAWN_SIZE))) as picture:
        return picture.convert("RGB")


OTHER_PICTURES: dict[str, Draw] = {
    "noise": _noise,
    "plain colours": _plain,
    "clouds of colour": _clouds,
    "coloured discs": _discs,
    "faces turned by 90°": lambda _, number: _face(number).rotate(90),
    "faces cropped by an eighth": lambda _, number: _face(number).crop((20, 20, 140, 140)),
}

if __name__ == "__main__":
    main()
