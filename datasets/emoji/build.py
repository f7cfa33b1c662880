"""Builds images/, metadata.csv, truth.csv and vocabulary.txt from two npm packages.

npm pack emoji-datasource-google@16.0.0 cldr-annotations-full@48.2.0
python datasets/emoji/build.py emoji-datasource-google-16.0.0.tgz cldr-annotations-full-48.2.0.tgz
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EMOJI = 300
CATEGORIES = ("Animals & Nature", "Food & Drink", "Smileys & Emotion")
LEAST_TRUE, LEAST_IN_VOCABULARY = 6, 3  # pictures that have a keyword
JOINER, VARIANT = "\u200d", "\ufe0f"
PICTURES, WORDS = "emoji-datasource-google 16.0.0", "cldr-annotations-full 48.2.0"


@dataclass(frozen=True)
class Emoji:
    code: str
    name: str
    category: str
    groups: tuple[str, str]  # Unicode's group and subgroup, in words
    keywords: frozenset[str]
    picture: str  # its path in the package

    @property
    def chance(self) -> str:
        """A draw that anyone can repeat and nobody could steer: those with the lowest values are taken."""
        return hashlib.sha256(self.code.encode()).hexdigest()


class Package:
    def __init__(self, path: Path, wanted: str) -> None:
        self._archive = tarfile.open(path)  # noqa: SIM115 (read from until the script ends)
        about = json.loads(self.read("package.json"))
        if f"{about['name']} {about['version']}" != wanted:
            raise SystemExit(
                f"{path} is {about['name']} {about['version']}: take {wanted}, which the data set is built from"
            )

    def read(self, name: str) -> bytes:
        with self._archive.extractfile(f"package/{name}") or io.BytesIO() as file:
            return file.read()


def all_emoji(pictures: Package, words: Package) -> list[Emoji]:
    """Those of the categories that are one sign: no families, flags or variants of skin and hair."""
    said = json.loads(words.read("annotations/en/annotations.json"))["annotations"]["annotations"]
    found = []
    for one in json.loads(pictures.read("emoji.json")):
        sign = "".join(chr(int(code, 16)) for code in one["unified"].split("-"))
        if one["category"] in CATEGORIES and one["has_img_google"] and JOINER not in sign:
            about: dict[str, Any] = said.get(sign) or said[sign.replace(VARIANT, "")]
            keywords = frozenset(word.lower() for word in about["default"] if not any(map(str.isdigit, word)))
            path = f"img/google/64/{one['image']}"
            group, subgroup = one["category"].lower().replace("&", "and"), one["subcategory"].replace("-", " ")
            about_it = (one["unified"].lower(), about["tts"][0], one["category"], (group, subgroup))
            found.append(Emoji(*about_it, keywords, path))
    return found


def build(pictures: Package, words: Package, out: Path) -> None:
    drawn = sorted(all_emoji(pictures, words), key=lambda one: one.chance)[:EMOJI]
    drawn.sort(key=lambda one: one.code)
    shutil.rmtree(out / "images", ignore_errors=True)
    (out / "images").mkdir(parents=True)
    for one in drawn:
        (out / "images" / f"{one.code}.png").write_bytes(pictures.read(one.picture))
    counts = Counter(word for one in drawn for word in one.keywords)
    groups = Counter(word for one in drawn for word in one.groups)
    often = [*_by_count(groups), *(word for word in _by_count(counts) if word not in groups)]
    metadata = [(f"images/{one.code}.png", one.code, one.name, one.category) for one in drawn]
    _write(out / "metadata.csv", [("file_name", "id", "name", "category"), *metadata])
    truth = [(one.code, *(int(word in one.keywords or word in one.groups) for word in often)) for one in drawn]
    _write(out / "truth.csv", [("id", *often), *truth])
    named = sorted({*groups} | {word for word in counts if counts[word] >= LEAST_IN_VOCABULARY})
    (out / "vocabulary.txt").write_text("".join(f"{word}\n" for word in named), encoding="utf-8")


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted((word for word in counts if counts[word] >= LEAST_TRUE), key=lambda word: (-counts[word], word))


def _write(path: Path, rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the emoji data set.")
    parser.add_argument("pictures", type=Path, help="the packed emoji-datasource-google")
    parser.add_argument("words", type=Path, help="the packed cldr-annotations-full")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write (default: beside this script)")
    arguments = parser.parse_args()
    build(Package(arguments.pictures, PICTURES), Package(arguments.words, WORDS), arguments.out)


if __name__ == "__main__":
    main()
