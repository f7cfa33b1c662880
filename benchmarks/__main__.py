"""`make bench`: run every benchmark alone, one after the other, and write what they print to docs/benchmarks.md.

python -m benchmarks                                          all; a section whose input is not given is kept
python -m benchmarks discovery.triples strategies             only these; the other sections are kept
python -m benchmarks strategies --matrices MATRIX.csv ...     the strategies on further matrices"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from rich.console import Console

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BENCHMARKS = {
    "Drawing and updating unresolved triples": ["benchmarks.discovery.triples"],
    "Strategies": ["benchmarks.strategies"],
    "Strategies on further matrices": ["benchmarks.strategies", "--no-worlds"],
    "Strategies on parts of matrices": ["benchmarks.strategies", "--no-worlds", "--subsets", "3"],
    "What is attainable": ["benchmarks.discovery.attainable"],
    "Several features a question": ["benchmarks.strategies", "--per-question", "1,2,3,5"],
    "What is attainable with three features a question": ["benchmarks.discovery.attainable", "--per-question", "3"],
    "Towards a target": ["benchmarks.target"],
    "Parts of the strategies": ["benchmarks.discovery.ablation"],
    "Start": ["benchmarks.speed.start"],
    "Overhead of the pipeline": ["benchmarks.speed.pipeline"],
    "OpenAI-compatible servers": ["benchmarks.speed.openai_throughput"],
    "Local vision-language models": ["benchmarks.speed.local_vlm"],
    "Comparing two oracles": ["benchmarks.compare"],
    "Enriching": ["benchmarks.enrichment"],
    "The file of vectors": ["benchmarks.speed.vectors"],
    "Predicted labels": ["benchmarks.price.certificate"],
    "What labels cost": ["benchmarks.price"],
    "What a small working set loses": ["benchmarks.price.working_set"],
    "The same feature twice": ["benchmarks.discovery.duplicates"],
    "Attributes with values": ["benchmarks.discovery.attributes", "--seeds", "5"],
    "Estimates": ["benchmarks.price.estimates", "--examples", "30", "--queries", "8"],
}
# the matrices are not part of the project: they are given by path
FURTHER = {
    "Strategies on further matrices",
    "Strategies on parts of matrices",
    "What is attainable",
    "Several features a question",
    "What is attainable with three features a question",
    "Towards a target",
    "The same feature twice",
}
HEAD = """# Benchmarks

Every figure comes from the command above it; `make bench` runs them all and writes this page. The machine is small and
shared: compare figures within one table rather than between tables.
"""


def sections_of(page: str) -> dict[str, str]:
    """What the page says, by title."""
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], (text.strip() for text in parts[1::2]), strict=True))


def page_of(sections: dict[str, str]) -> str:
    """Those that are written here in their order, each followed by the sections that stand after it today: some are
    measured by hand."""
    titles = list(BENCHMARKS)
    for before, title in pairwise(sections):
        if title not in titles:
            titles.insert(titles.index(before) + 1, title)
    texts = [f"## {title}\n\n{sections[title]}\n" for title in titles if title in sections]
    return "\n".join([HEAD, *texts])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    names = list(dict.fromkeys(module.partition(".")[2] for module, *_ in BENCHMARKS.values()))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--matrices", nargs="+", type=Path, default=[], help="CSV files for the strategies")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"unknown benchmark {min(unknown)!r}: choose among {', '.join(names)}")
    console, missed = Console(stderr=True), list[str]()
    sections = sections_of(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    for title, command in BENCHMARKS.items():
        wanted = not arguments.names or command[0].partition(".")[2] in arguments.names
        if title in FURTHER:
            wanted = wanted and bool(arguments.matrices)
            command = [*command, *(str(path.resolve()) for path in arguments.matrices)]
        if not wanted:
            continue
        with console.status(f"{title} …"):
            text, problem = printed(command)
        if problem:
            console.print(f"{title}: {problem}", markup=False)
            missed.append(title)
        if text:
            sections[title] = text
    PAGE.write_text(page_of(sections), encoding="utf-8")
    console.print(f"written to {PAGE}", markup=False)
    if missed:
        raise SystemExit(f"error: missed targets: {'; '.join(missed)}: see above")


def printed(command: list[str]) -> tuple[str, str]:
    """What a benchmark prints, and its error if it misses a target; no text if it crashes."""
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False, cwd=PAGE.parents[1]
    )
    if done.returncode == 0:
        return done.stdout.strip(), ""
    if "Traceback" in done.stderr:
        return "", done.stderr
    problem = done.stderr.strip().splitlines()[-1]
    return f"{done.stdout.strip()}\n\nTarget missed: {problem}.", problem


if __name__ == "__main__":
    main()
