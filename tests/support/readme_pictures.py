"""Takes the pictures of README.md again: `python -m tests.support.readme_pictures` that of what `make discover` writes,
and with `--clip FOLDER`, which tests/install_clip.sh has filled, that of real pictures."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.clip import Parts
from benchmarks.stamps import read_stamps, write_stamps
from tests.support.chromium import MISSING, find_chromium, running_chromium

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
FACES = ("datasets/faces", "--oracle", "contrastive")  # as in the Makefile
STRATEGY = ("--strategy", "adaptive-triple", "--rare", "0.04", "--votes", "1")  # each question shows three pictures
WIDTH, HEIGHT = 1200, 1000  # pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clip", type=Path, metavar="FOLDER")
    parser.add_argument("--names", type=Path, metavar="FOLDER", help="of names.txt and vectors.npy, if another")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.clip is None:
            print(take(FACES, folder / "faces", IMAGES / "report.png"))
            return
        parts = Parts.of(options.clip.resolve(), options.names and options.names.resolve())
        photographs = [stamp for stamp in read_stamps(parts.stamps) if stamp.is_photograph]
        dataset = str(write_stamps(photographs, parts.stamps, folder / "stamps"))
        command = (dataset, "--oracle", parts.oracle, *STRATEGY)
        print(take(command, folder / "run", IMAGES / "report-stamps.png"))


def take(discovery: Sequence[str], out: Path, picture: Path) -> Path:
    """The first screen of the report of a discovery."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    line = [sys.executable, "-m", "twothirds", "discover", *discovery, "--out", str(out), "--yes"]
    subprocess.run(line, cwd=ROOT, check=True)
    with running_chromium(chromium) as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((out / "report.html").as_uri())
        page.wait_for_timeout(1000)  # until pictures that came into view are drawn
        page.screenshot(path=picture)
    return picture


if __name__ == "__main__":
    main()
