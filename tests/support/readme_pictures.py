"""Takes the picture of README.md again, of what `make discover` writes: `python -m tests.support.readme_pictures`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.chromium import MISSING, find_chromium, running_chromium

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "report.png"
COMMAND = ("discover", "datasets/faces", "--oracle", "contrastive")  # as in the Makefile
WIDTH, HEIGHT, BAR = 1200, 1000, 66  # pixels; the bar of links stays at the top


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "faces"
        subprocess.run([sys.executable, "-m", "flows", *COMMAND, "--out", str(out)], cwd=ROOT, check=True)
        with running_chromium(chromium) as browser:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto((out / "report.html").as_uri())
            first = page.locator("article.feature").first
            box = first.bounding_box()
            if box is None:
                sys.exit("the report shows no feature")
            page.mouse.wheel(0, box["y"] - BAR)
            page.wait_for_timeout(1000)  # until pictures that came into view are drawn
            page.screenshot(path=PICTURE)
    print(PICTURE)


if __name__ == "__main__":
    main()
