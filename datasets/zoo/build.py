"""Builds animals.csv and truth.csv from the Zoo table in the PyPI package orange3 and the texts in descriptions.txt.

    pip download orange3==3.40.0 --no-deps
    python datasets/zoo/build.py orange3-3.40.0-*.whl

Without an argument the installed package is used. A plain zoo.tab is accepted as well.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import zipfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEMBER = "Orange/datasets/zoo.tab"
SHA256 = "4cbf8af5bda8edcb35b37a4cae3ac42544abcd84ecfa9e21dd3da94f5f6758ff"
LEGS = {"0": "no legs", "2": "two legs", "4": "four legs", "5": "five legs", "6": "six legs", "8": "eight legs"}
TYPES = ("mammal", "bird", "reptile", "fish", "amphibian", "insect", "invertebrate")


def read_table(source: Path | None) -> bytes:
    if source is None:
        package = importlib.util.find_spec("Orange")
        if package is None or package.origin is None:
            raise SystemExit("orange3 is not installed: give the path of its wheel, or of a zoo.tab")
        source = Path(package.origin).parent / "datasets" / "zoo.tab"
    if source.suffix == ".whl":
        with zipfile.ZipFile(source) as wheel:
            return wheel.read(MEMBER)
    return source.read_bytes()


def animals_of(table: bytes) -> list[dict[str, str]]:
    """One dict per animal. Orange's tables have two more header lines, for the kinds and the roles of the columns."""
    found = hashlib.sha256(table).hexdigest()
    if found != SHA256:
        raise SystemExit(f"this zoo.tab has the SHA-256 {found}: take the one of orange3 3.40.0, which has {SHA256}")
    names, _, _, *rows = (line.split("\t") for line in table.decode().splitlines())
    return [dict(zip(names, row, strict=True)) for row in rows]


def id_of(animal: dict[str, str]) -> str:
    """The table has two frogs, of which one is venomous."""
    return "frog-venomous" if animal["name"] == "frog" and animal["venomous"] == "1" else animal["name"]


def truth_of(animal: dict[str, str]) -> dict[str, int]:
    native = {name: int(value) for name, value in animal.items() if name not in ("name", "legs", "type")}
    legs = {name: int(animal["legs"] == count) for count, name in LEGS.items()}
    return native | legs | {name: int(animal["type"] == name) for name in TYPES}


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def build(table: bytes, out: Path) -> None:
    animals = animals_of(table)
    ids = [id_of(animal) for animal in animals]
    lines = (HERE / "descriptions.txt").read_text(encoding="utf-8").splitlines()
    texts = {name: text for name, _, text in (line.partition(": ") for line in lines)}
    if sorted(texts) != sorted(ids):
        raise SystemExit(f"descriptions.txt and the table differ in {sorted(set(texts) ^ set(ids))}: correct the texts")
    truths = [truth_of(animal) for animal in animals]
    write_csv(out / "animals.csv", [("id", "text"), *((name, texts[name]) for name in ids)])
    rows = ((name, *truth.values()) for name, truth in zip(ids, truths, strict=True))
    write_csv(out / "truth.csv", [("id", *truths[0]), *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the zoo data set.")
    parser.add_argument("source", nargs="?", type=Path, help="a wheel of orange3, or its zoo.tab")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write (default: beside this script)")
    arguments = parser.parse_args()
    build(read_table(arguments.source), arguments.out)


if __name__ == "__main__":
    main()
