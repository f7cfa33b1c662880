"""Environments of the tools: one virtual environment each, in a cache folder outside of the project.

`set_up` uses pip as it is configured on the machine. Nothing is installed unless somebody asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

PINNED = Path(__file__).with_name("packages.toml")
READY = "installed.txt"  # in an environment that is complete: what was installed


def pinned() -> dict[str, list[str]]:
    data = tomllib.loads(PINNED.read_text(encoding="utf-8"))
    return {name: list(one["packages"]) for name, one in data.items()}


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twothirds" / "peers"


def python_of(name: str) -> Path | None:
    """The Python of an environment; None if it is not complete, or holds other versions than are pinned."""
    if not name:
        return Path(sys.executable)
    ready = cache_folder() / name / READY
    if not ready.exists() or ready.read_text(encoding="utf-8").split() != pinned()[name]:
        return None
    return cache_folder() / name / "bin" / "python"


def set_up(name: str) -> str:
    """Install it anew; the error of pip, or nothing."""
    folder, packages = cache_folder() / name, pinned()[name]
    print(f"{name}: installing {', '.join(packages)} into {folder}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    command = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return (errors or done.stderr.splitlines() or ["pip failed"])[-1]
    (folder / READY).write_text("\n".join(packages), encoding="utf-8")
    return ""
