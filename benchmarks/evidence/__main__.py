"""`make evidence DATA=FOLDER`: run the experiment behind every claim, and write docs/evidence.md.

    python -m benchmarks.evidence                 claims that need no public data; the others are listed as not run
    python -m benchmarks.evidence --data FOLDER   all of them

tests/install_smollm2.sh fetches the model that one of them asks. FOLDER holds the public data by these names:
leuven_animal_votes.csv.gz, leuven_animal.csv, snow_rte_votes.csv, bluebirds_votes.csv, flags_png_truth.csv, nlvr/."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks.evidence.claims import BY_EXPERIMENT, DATA, MODEL, Claim
from benchmarks.evidence.claims_by_tests import BY_TESTS

CLAIMS = (*BY_EXPERIMENT, *BY_TESTS)
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence.md"
LONGEST = 3_000.0  # seconds of one experiment
HEAD = """# Evidence

The claims of the README, and some that it rests on, with the experiment behind each, what came out, what would refute
it, and how that was judged: first those about the method, models and people, then those that tests hold.
`make evidence DATA=FOLDER` runs them all and writes this page; FOLDER holds public data that is no part of this project
([which](compare.md#results-on-public-data-sets)). Claims whose data is not there are listed as not run, with the result
of the last time. Simulated crowds know the truth: what they show is what the method can do, not what a model will do.
Intervals are 95 %, ± is one standard error.

What would refute a claim was written down when its first results were known (2026-11-17), not before: the limits bind
the runs to come. No large model was asked for this page, for none could be had where it was made; prices are those of a
server that is like one. Speed, growth and memory are in [benchmarks.md](benchmarks.md),
and claims beside other tools in [peers.md](peers.md).
"""


def written(claim: Claim, date: str, result: str) -> str:
    command = shlex.join(claim.command)
    python = "" if claim.command[0] == "pytest" else "python -m "
    return "\n".join(
        [
            f"## {claim.title}\n",
            f"**Claim.** {claim.claim}\n",
            f"**Experiment.** {claim.experiment} Data: {claim.data}.\n",
            f"**Command.** `{python}{command}`, {date}.\n",
            f"**Result.**\n\n{result}\n",
            f"**What would refute it.** {claim.refuted[0].upper()}{claim.refuted[1:]}.\n",
            *([f"**Judged.** {claim.judged}\n"] if claim.judged else []),
        ]
    )


def result_of(claim: Claim, output: str) -> str:
    """The lines that are the result: tables where their heads are among them, else a list."""
    lines = [line.strip() for line in output.splitlines()]
    kept, heads = list[str](), 0
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if not any(re.fullmatch(pattern, line) for pattern in claim.results):
            continue
        if re.match(r"\| ?---", below):
            kept += [*([""] if heads else []), line, below]
            heads += 1
        else:
            kept.append(line)
    if not kept:
        return "no result: the experiment printed none"
    if heads:
        return "\n".join(kept)
    return "\n".join(
        f"- {' '.join(line.strip('│| ').replace(' │ ', '; ').replace(' | ', '; ').split())}" for line in kept
    )


def printed(command: Sequence[str], data: Path | None) -> str:
    words = [
        word.replace(DATA, str(data.resolve()), 1) if data and word.startswith(f"{DATA}/") else word for word in command
    ]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False, cwd=ROOT, timeout=LONGEST
    )
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(f"python -m {' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def sections_of(page: str) -> dict[str, str]:
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0].removeprefix("## "): part.rstrip() + "\n" for part in parts}


def not_run(claim: Claim, missing: Sequence[str], before: str) -> str:
    """Listed as not run, with the result of the last time where there is one."""
    note = f"*Not run this time: {', '.join(missing)} not given.*\n"
    if not before:
        return written(replace(claim, judged=""), "not run", note)
    return re.sub(r"\*Not run this time: .*\n\n?", "", before).replace("**Result.**\n\n", f"**Result.**\n\n{note}\n", 1)


def _missing(claim: Claim, data: Path | None) -> list[str]:
    absent = [path for path in claim.needs if data is None or not (data / path).exists()]
    return absent + [part for part in claim.command if part == MODEL and not (ROOT / MODEL).exists()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("titles", nargs="*", metavar="TITLE", help="only claims whose title holds these words")
    parser.add_argument("--data", type=Path, help="the folder of public data")
    options = parser.parse_args(arguments)
    console, outputs, skipped = Console(stderr=True), dict[tuple[str, ...], str](), list[str]()
    before = sections_of(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    sections, today = [], datetime.now(UTC).date().isoformat()
    for claim in CLAIMS:
        kept = before.get(claim.title, "")
        if options.titles and not any(words.lower() in claim.title.lower() for words in options.titles):
            sections.append(kept or written(replace(claim, judged=""), "not run", "*Not run yet.*\n"))
            continue
        missing = _missing(claim, options.data)
        if missing:
            skipped.append(claim.title)
            sections.append(not_run(claim, missing, kept))
            continue
        if claim.command not in outputs:
            with console.status(f"{claim.title} …"):
                outputs[claim.command] = printed(claim.command, options.data)
        sections.append(written(claim, today, result_of(claim, outputs[claim.command])))
    PAGE.write_text("\n".join([HEAD, *sections]), encoding="utf-8")
    console.print(f"written to {PAGE}", markup=False)
    if skipped:
        console.print(f"not run, because their data was not given: {'; '.join(skipped)}", markup=False)


if __name__ == "__main__":
    main()
