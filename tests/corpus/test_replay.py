"""Runs recorded by every schema that was released are replayed: nobody is asked, and the result has the same bytes.

A new schema needs a new record: `python -m tests.corpus.record`, and commit the two files that it writes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from store.migrations import STEPS
from tests.corpus.recorded_run import Disabled, crowd, run
from tests.corpus.replay import HERE, replay
from tests.support.made import texts
from tests.support.slow import slow

ROOT = Path(__file__).parents[2]
ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati")
LOCALES = ("C", "C.UTF-8", "POSIX")
SCHEMAS = [f"schema-{number}" for number in range(1, len(STEPS) + 1)]


def expected() -> dict[str, dict[str, str]]:
    return {name: json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")) for name in SCHEMAS}


def test_every_released_schema_is_in_the_corpus() -> None:
    assert sorted(path.stem for path in HERE.glob("schema-*.sql")) == sorted(SCHEMAS)


@pytest.mark.parametrize("seed", [0, *slow(*range(1, 10))])
def test_a_replay_asks_nobody_and_gives_the_same_bytes_whatever_the_process_is_like(seed: int) -> None:
    """Another hash seed, order of completion, time zone and locale each time."""
    about = {"PYTHONHASHSEED": str(seed), "TZ": ZONES[seed % len(ZONES)], "LC_ALL": LOCALES[seed % len(LOCALES)]}
    command = [sys.executable, "-m", "tests.corpus.replay", str(seed)]
    said = subprocess.run(command, cwd=ROOT, env=os.environ | about, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == expected()


def test_an_altered_or_reordered_question_is_noticed(tmp_path: Path) -> None:
    replay(HERE / f"{SCHEMAS[-1]}.sql", tmp_path, seed=1)
    first, *others = texts(6)
    altered = [replace(first, digest=first.digest[::-1]), *others]
    for examples in (altered, [*reversed(others), first]):
        with pytest.raises(AssertionError, match="a question is not in the record"):
            run(str(tmp_path / "store.sqlite"), tmp_path / "again", Disabled(crowd()), random.Random(1), examples)
