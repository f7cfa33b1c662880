"""`make bench`: run every benchmark alone, one after the other, and write what they print to docs/benchmarks.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BENCHMARKS = {
    "Drawing and updating unresolved triples": ["benchmarks.triples"],
    "Overhead of the pipeline": ["benchmarks.pipeline"],
    "OpenAI-compatible servers": ["benchmarks.openai_throughput"],
    "Local vision-language models": ["benchmarks.local_vlm"],
}
HEAD = """# Benchmarks

Every figure comes from the command above it; `make bench` runs them all and writes this page. The machine is small and
shared: compare figures within one table rather than between tables.
"""


def main() -> None:
    console = Console(stderr=True)
    sections = [HEAD]
    for title, module in BENCHMARKS.items():
        with console.status(f"{title} …"):
            done = subprocess.run(
                [sys.executable, "-m", *module], capture_output=True, text=True, check=False, cwd=PAGE.parents[1]
            )
        if done.returncode:
            console.print(done.stderr, markup=False)
            raise SystemExit(f"error: python -m {' '.join(module)} failed: see above; {PAGE} is left as it was")
        sections.append(f"## {title}\n\n{done.stdout.strip()}\n")
    PAGE.write_text("\n".join(sections), encoding="utf-8")
    console.print(f"written to {PAGE}", markup=False)


if __name__ == "__main__":
    main()
