"""A command and the seconds of computing that it took, whatever other processes of the tests end meanwhile."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Timed(NamedTuple):
    status: int
    stdout: str
    stderr: str
    seconds: float


def timed(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> Timed:
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        return Timed(process.returncode, stdout.read(), stderr.read(), used.ru_utime + used.ru_stime)
