"""A Python environment of its own for a package whose requirements do not go with ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def said_in_environment(folder: Path, package: str, script: str, *arguments: str) -> str:
    """The last line that a script prints in a new environment with the package, made in the folder."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    python = str(folder / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "FIFTYONE_DO_NOT_TRACK": "1"}
    command = [python, "-c", script, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]
