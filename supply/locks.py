"""The lock files: every package that make installs, at one version, with the hashes of all its files.

run.lock is for requirements.txt, dev.lock and scale.lock for what requirements-dev.txt and requirements-scale.txt need
beside it. Of torch there are builds with different needs, so it has torch.lock to itself; cuda.lock is for those that
are made for graphics cards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
RUN, DEV, SCALE, TORCH, CUDA, TOOLS = (
    HERE / f"{name}.lock" for name in ("run", "dev", "scale", "torch", "cuda", "tools")
)

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?==(?P<version>[^\s;\\]+)\s*(;\s*(?P<marker>[^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Locked:
    """One version of a package, where it is for one, and the SHA-256 of each of its files."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    def __str__(self) -> str:
        pin = f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")
        return " \\\n    ".join([pin, *(f"--hash=sha256:{one}" for one in sorted(self.hashes))])


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> list[Locked]:
    """Raises ValueError at a line that is no pinned, hashed requirement."""
    found: list[Locked] = []
    for line in text.splitlines():
        if pin := _PIN.match(line):
            found.append(Locked(normal(pin["name"]), pin["version"], (pin["marker"] or "").strip(), ()))
        elif hashed := _HASH.search(line):
            last = found[-1]
            found[-1] = Locked(last.name, last.version, last.marker, (*last.hashes, hashed[1]))
        elif line.strip() and not line.strip().startswith("#"):
            raise ValueError(f"{line!r} is no pinned requirement")
    return found


def write_lock(path: Path, what: str, locked: Iterable[Locked]) -> None:
    head = f"# {what} Made by `make lock`; not to be edited.\n"
    path.write_text(head + "".join(f"{one}\n" for one in locked), encoding="utf-8")


def pins(path: Path) -> dict[str, str]:
    """Name and version of each line of a requirements file that pins one."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    matches = (_PIN.match(line) for line in lines)
    return {normal(match["name"]): match["version"] for match in matches if match}
