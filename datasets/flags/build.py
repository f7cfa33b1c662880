"""Builds images/ and metadata.csv from the npm package svg-country-flags.

    npm pack svg-country-flags@1.2.10
    python datasets/flags/build.py svg-country-flags-1.2.10.tgz

The folder of an installed package (node_modules/svg-country-flags) is accepted as well.
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import resvg_py
from PIL import Image

HERE = Path(__file__).resolve().parent
FLAGS = 100
LONGEST_SIDE = 192
VERSION = "1.2.10"
# The member states of the United Nations, by ISO 3166 code.
UN_MEMBERS = """
AD AE AF AG AL AM AO AR AT AU AZ BA BB BD BE BF BG BH BI BJ BN BO BR BS BT BW BY BZ CA CD CF CG CH CI CL CM CN CO CR CU
CV CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FM FR GA GB GD GE GH GM GN GQ GR GT GW GY HN HR HT HU ID IE IL IN IQ
IR IS IT JM JO JP KE KG KH KI KM KN KP KR KW KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MG MH MK ML MM MN MR MT MU
MV MW MX MY MZ NA NE NG NI NL NO NP NR NZ OM PA PE PG PH PK PL PT PW PY QA RO RS RU RW SA SB SC SD SE SG SI SK SL SM SN
SO SR SS ST SV SY SZ TD TG TH TJ TL TM TN TO TR TT TV TZ UA UG US UY UZ VC VE VN VU WS YE ZA ZM ZW
"""


def chosen() -> list[str]:
    """A draw that anyone can repeat and nobody could steer: the members whose codes have the lowest SHA-256."""
    return sorted(sorted(UN_MEMBERS.split(), key=lambda code: hashlib.sha256(code.encode()).hexdigest())[:FLAGS])


def package_reader(source: Path) -> Callable[[str], bytes]:
    if source.is_dir():
        return lambda name: (source / name).read_bytes()
    with tarfile.open(source) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        contents = {name: file.read() for name, file in files.items() if file is not None}
    return lambda name: contents[f"package/{name}"]


def render(svg: str) -> Image.Image:
    """On white, because Nepal's flag is no rectangle; no side longer than LONGEST_SIDE."""
    draw = functools.partial(resvg_py.svg_to_bytes, svg, background="#ffffff", skip_system_fonts=True)
    image: Image.Image = Image.open(io.BytesIO(draw(width=LONGEST_SIDE)))
    if image.height > LONGEST_SIDE:
        image = Image.open(io.BytesIO(draw(height=LONGEST_SIDE)))
    return image.convert("RGB")


def build(source: Path, out: Path) -> None:
    read = package_reader(source)
    version = json.loads(read("package.json"))["version"]
    if version != VERSION:
        raise SystemExit(f"this is svg-country-flags {version}: take {VERSION}, from which the data set was built")
    names = json.loads(read("countries.json"))
    shutil.rmtree(out / "images", ignore_errors=True)
    (out / "images").mkdir(parents=True)
    rows = [("file_name", "id", "country")]
    for code in chosen():
        name = f"images/{code.lower()}.png"
        render(read(f"svg/{code.lower()}.svg").decode("utf-8")).save(out / name, optimize=True)
        rows.append((name, code.lower(), names[code]))
    with (out / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the flags data set.")
    parser.add_argument("source", type=Path, help="the packed svg-country-flags, or its folder")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write (default: beside this script)")
    arguments = parser.parse_args()
    build(arguments.source, arguments.out)


if __name__ == "__main__":
    main()
