"""Where and of what a figure was measured: the machine, the commit, and work in processes of their own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
BUSY = 0.25  # load for each core before a benchmark begins, above which times are not clean


def machine() -> str:
    cores = os.cpu_count() or 1
    state = "busy" if os.getloadavg()[0] > BUSY * cores else "quiet"
    return f"{processor()}, {cores} cores, Python {platform.python_version()}, {state}"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str:
    """The commit that is checked out, with a plus if the program differs from it."""
    try:
        number = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results", ":!docs")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{number}+" if changed else number


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def alone(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What a function returns in a process of its own, whose memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()


def tell(text: str) -> None:
    """Say on standard error how far a benchmark is."""
    print(text, file=sys.stderr, flush=True)
