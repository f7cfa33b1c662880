"""Make the lock files from the requirements files: `make lock`, or `make lock ARGS=--upgrade`.

Every package that make installs is locked at one version, with the hashes of all its files. run.lock is for
requirements.txt, dev.lock and scale.lock for what requirements-dev.txt and requirements-scale.txt need beside it. Of
torch there are builds with different needs, so it has torch.lock to itself; cuda.lock is for those that are made for
graphics cards.

uv resolves for every machine with Linux and the Python versions that pyproject.toml names. What is locked stays at its
version unless it is told to go on. The build of torch that pip finds on this machine joins those of the registry."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
RUN, DEV, SCALE, TORCH, CUDA, TOOLS = (
    HERE / f"{name}.lock" for name in ("run", "dev", "scale", "torch", "cuda", "tools")
)
UV = ROOT / ".venv" / "tools" / "bin" / "uv"
EVERYWHERE = "python_full_version < '3.14' and sys_platform == 'linux'"  # what [tool.uv] makes of every line

_PIN = re.compile(r"^(?P<name>[a-z0-9-]+)(\[[^]]*\])?==(?P<version>[^\s;\\]+)\s*(;\s*(?P<marker>[^\\]+?))?\s*\\?$")
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
        return " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in sorted(self.hashes))])


def read_lock(text: str) -> list[Locked]:
    """Raises ValueError at a line that is no pinned, hashed requirement."""
    packages: list[Locked] = []
    for line in text.splitlines():
        if pin := _PIN.match(line):
            marker = (pin["marker"] or "").strip()
            packages.append(Locked(pin["name"], pin["version"], "" if marker == EVERYWHERE else marker, ()))
        elif hashed := _HASH.search(line):
            packages[-1] = replace(packages[-1], hashes=(*packages[-1].hashes, hashed[1]))
        elif line.strip() and not line.strip().startswith("#"):
            raise ValueError(f"{line!r} is no pinned requirement")
    return packages


def write_lock(path: Path, subject: str, packages: Iterable[Locked]) -> None:
    head = f"# {subject} Made by `make lock`; not to be edited.\n"
    path.write_text(head + "".join(f"{package}\n" for package in packages), encoding="utf-8")


def main(arguments: list[str]) -> None:
    upgrading = "--upgrade" in arguments
    kept = "" if upgrading else _texts(RUN, DEV, SCALE, TORCH, CUDA)
    resolved = _resolve(kept, "requirements-dev.txt", "requirements-scale.txt")  # together: one version of each
    running, developing, scaling = (
        {package.name for package in read_lock(_resolve(resolved, f"requirements{suffix}.txt"))}
        for suffix in ("", "-dev", "-scale")
    )
    tools = read_lock(_resolve("" if upgrading else _texts(TOOLS), "supply/tools.txt"))
    packages = read_lock(resolved)
    torch = next(package for package in packages if package.name == "torch")
    cards = [package for package in packages if _is_for_cards(package.name)]
    others = [package for package in packages if package is not torch and package not in cards]
    beside = [package for package in others if package.name not in running]
    _write(RUN, "What requirements.txt needs beside torch.", others, running)
    _write(DEV, "What requirements-dev.txt needs beside it.", beside, developing)
    _write(SCALE, "What requirements-scale.txt needs beside it.", beside, scaling)
    builds = {*torch.hashes, *_hashes_in_lock(torch), *_hashes_here(torch)}
    write_lock(TORCH, "All builds that are known.", [replace(torch, hashes=tuple(builds))])
    write_lock(CUDA, "What the builds of torch for graphics cards need.", cards)
    write_lock(TOOLS, "What `make lock` and `make audit` need, in an environment of their own.", tools)
    count = len({package.name for package in packages})
    print(f"{count} packages locked, {len(cards)} of them for graphics cards only")


def _texts(*paths: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in paths if path.exists())


def _resolve(kept: str, *requirements: str) -> str:
    """The lock of requirements files, with the versions of the lock `kept` where they still fit."""
    options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "resolved.lock"
        lock.write_text(kept, encoding="utf-8")
        subprocess.run([UV, "pip", "compile", *options, *requirements, "-o", lock], cwd=ROOT, check=True)
        return lock.read_text(encoding="utf-8")


def _write(path: Path, subject: str, packages: list[Locked], names: set[str]) -> None:
    write_lock(path, subject, [package for package in packages if package.name in names])


def _hashes_in_lock(torch: Locked) -> tuple[str, ...]:
    """Builds that were found on other machines."""
    return next((locked.hashes for locked in read_lock(_texts(TORCH)) if locked.version == torch.version), ())


def _hashes_here(torch: Locked) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*download, "--dest", folder, f"{torch.name}=={torch.version}"], check=True)
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()]


def _is_for_cards(name: str) -> bool:
    return name.startswith(("nvidia-", "cuda-")) or name == "triton"


if __name__ == "__main__":
    main(sys.argv[1:])
