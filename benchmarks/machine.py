"""The line above every figure: where, when and by which command it was measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def heading(command: str, seed: int | None = None) -> str:
    cores = os.cpu_count()
    seeded = "" if seed is None else f", seed {seed}"
    today = datetime.now(UTC).date().isoformat()
    return f"`{command}`{seeded}; {today}; {processor()}, {cores} cores, Python {platform.python_version()}.\n"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
