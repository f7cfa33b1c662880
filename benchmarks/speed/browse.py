"""What browsing costs the studio at two sizes: `python -m benchmarks.speed.browse --examples 5000,50000`.

CPU seconds of the questions that the page asks, after the run is read, and what reading it takes once; the memory that
the catalogue adds. Made-up texts, columns and labels: nothing is asked."""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd

from reports.browse import BrowseChoice
from studio.browse.browsed import BrowsedRuns
from studio.browse.pages import MOST_AT_ONCE
from studio.browse.views import about_of, tiles_of
from studio.runs import Shelf, key_of
from tests.support.run_folders import make_run, random_matrix

FEATURES = 8
QUESTIONS = {
    "first page": "",
    "two features and a value": "yes=feature+1&no=feature+3&is.place=place+2",
    "search in texts": "q=word7+word11",
    "sorted by a column": "sort=column.price",
    "most alike by features": "sort=near.t7",
    "a value of many": "look.author=author+12",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", default="5000,50000")
    sizes = [int(one) for one in parser.parse_args().examples.split(",")]
    rows = [_measured(size) for size in sizes]
    print("| | " + " | ".join(f"{size:,} examples" for size in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for name in rows[0]:
        print(f"| {name} | " + " | ".join(str(row[name]) for row in rows) + " |")


def _measured(size: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        run = _run(root, size)
        runs, key = BrowsedRuns(Shelf([root / "runs"]), lambda _: None), key_of(run.resolve())
        before = _memory()
        opening, browsed = _timed(lambda: runs.get(key))
        figures = {"reading the run, once": f"{opening:.2f} s"}
        figures["what the page loads first"] = f"{_timed(lambda: about_of(browsed))[0]:.3f} s"
        for words, text in QUESTIONS.items():
            choice = BrowseChoice.of(parse_qsl(text))
            figures[words] = f"{min(_timed(partial(_page, browsed, choice))[0] for _ in range(3)):.3f} s"
        figures["memory that it adds"] = f"{_memory() - before:,.0f} MB"
        return figures


def _page(browsed: Any, choice: BrowseChoice) -> None:
    found = browsed.catalogue.find(choice, 0, min(120, MOST_AT_ONCE))
    tiles_of(browsed, choice, found["places"], found["notes"])


def _timed(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    made = action()
    return time.process_time() - started, made


def _memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def _run(root: Path, size: int) -> Path:
    rng = np.random.default_rng(0)
    ids = [f"t{number}" for number in range(size)]
    words = np.array([f"word{number}" for number in range(200)])
    table = {
        "id": ids,
        "text": [" ".join(row) for row in words[rng.integers(200, size=(size, 40))]],
        "place": [f"place {one}" for one in rng.integers(5, size=size)],
        "price": rng.gamma(2, 30, size).round(2),
        "author": [f"author {one}" for one in rng.integers(size // 4, size=size)],
        "page": [f"https://example.org/{number}" for number in range(size)],
    }
    pd.DataFrame(table).to_csv(root / "texts.csv", index=False)
    names = [f"feature {number}" for number in range(FEATURES)]
    folder = root / "runs" / "texts"
    make_run(folder, str(root / "texts.csv"), ids, names, random_matrix(FEATURES, size), votes=1)
    return folder


if __name__ == "__main__":
    main()
