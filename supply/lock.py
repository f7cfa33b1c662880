"""Make the lock files from the requirements files: `make lock`, or `make lock ARGS=--upgrade`.

uv resolves for every machine with Linux and the Python versions that pyproject.toml names. What is locked stays at its
version unless it is told to go on. The build of torch that pip finds on this machine joins those of the registry."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from supply.locks import CUDA, DEV, ROOT, RUN, SCALE, TOOLS, TORCH, Locked, read_lock, write_lock

UV = ROOT / ".venv" / "tools" / "bin" / "uv"
EVERYWHERE = "python_full_version < '3.14' and sys_platform == 'linux'"  # what [tool.uv] makes of every line


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        everything, clusters = Path(folder) / "everything.lock", Path(folder) / "clusters.lock"
        upgrading = "--upgrade" in arguments
        everything.write_text("" if upgrading else _texts(RUN, DEV, TORCH, CUDA), encoding="utf-8")
        developing = _resolve("requirements-dev.txt", everything)
        clusters.write_text(_texts(everything) + ("" if upgrading else _texts(SCALE)), encoding="utf-8")
        scaling = _resolve("requirements-scale.txt", clusters)
        running = {one.name for one in _resolve("requirements.txt", everything)}
        apart = Path(folder) / "tools.lock"
        apart.write_text("" if upgrading else _texts(TOOLS), encoding="utf-8")
        tools = _resolve("supply/tools.txt", apart)
    _assert_one_version_each(developing, scaling)
    torch = next(one for one in developing if one.name == "torch")
    known = {*torch.hashes, *_hashes_in_lock(torch), *_hashes_here(torch)}
    cards = [one for one in developing if _is_for_cards(one.name)]
    others = [one for one in developing if one is not torch and one not in cards]
    write_lock(RUN, "What requirements.txt needs beside torch.", [one for one in others if one.name in running])
    write_lock(DEV, "What requirements-dev.txt needs beside it.", [one for one in others if one.name not in running])
    write_lock(
        SCALE, "What requirements-scale.txt needs beside it.", [one for one in scaling if one.name not in running]
    )
    write_lock(TORCH, "All builds that are known.", [Locked(torch.name, torch.version, torch.marker, tuple(known))])
    write_lock(CUDA, "What the builds of torch for graphics cards need.", cards)
    write_lock(TOOLS, "What `make lock` and `make audit` need, in an environment of their own.", tools)
    together = {one.name for one in (*developing, *scaling)}
    print(f"{len(together)} packages locked, {len(cards)} of them for graphics cards only")


def _texts(*paths: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in paths if path.exists())


def _resolve(requirements: str, at: Path) -> list[Locked]:
    """Resolve with the versions of the file `at` where they still fit, and write it anew."""
    options = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--quiet"]
    subprocess.run([UV, "pip", "compile", *options, requirements, "-o", str(at)], cwd=ROOT, check=True)
    return [
        Locked(one.name, one.version, "" if one.marker == EVERYWHERE else one.marker, one.hashes)
        for one in read_lock(at.read_text(encoding="utf-8"))
    ]


def _assert_one_version_each(*resolved: list[Locked]) -> None:
    """Locks are installed one upon the other, so what two of them need must be the same."""
    versions: dict[tuple[str, str], str] = {}
    for one in (one for part in resolved for one in part):
        if versions.setdefault((one.name, one.marker), one.version) != one.version:
            raise SystemExit(f"{one.name} is wanted as {versions[one.name, one.marker]} and {one.version}: pin it")


def _hashes_in_lock(torch: Locked) -> tuple[str, ...]:
    """Builds that were found on other machines."""
    locked = read_lock(TORCH.read_text(encoding="utf-8")) if TORCH.exists() else []
    return next((one.hashes for one in locked if (one.name, one.version) == (torch.name, torch.version)), ())


def _hashes_here(torch: Locked) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{torch.name}=={torch.version}"
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*download, "--dest", folder, wanted], check=True)
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(folder).iterdir()]


def _is_for_cards(name: str) -> bool:
    return name.startswith(("nvidia-", "cuda-")) or name == "triton"


if __name__ == "__main__":
    main(sys.argv[1:])
