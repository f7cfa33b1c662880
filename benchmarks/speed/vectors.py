"""The file of vectors at a million: bytes written against the data, time, and the memory of a process that reads.

    python -m benchmarks.speed.vectors [--vectors 1000000] [--size 512] [--folder FOLDER]

Vectors are appended 64 at a time, as a model makes them. Writing and reading run in a process each: bytes written are
what the system counts for the process (write calls), memory is its peak. The reader looks up every vector once, in a
random order, 512 at a time."""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.machine import heading
from models.contrastive import VectorFile, Vectors

SEED, APPENDED, LOOKED_UP = 0, 64, 512
MAX_WRITTEN, MAX_MEGABYTES = 1.05, 200.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--folder", help="where the file is made for as long as it is measured")
    parser.add_argument("--step", choices=("write", "read"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step = write if options.step == "write" else read
        print(json.dumps(step(Path(options.folder) / "model", options.vectors, options.size)))
        return
    print(heading(f"python -m benchmarks.speed.vectors --vectors {options.vectors} --size {options.size}", SEED))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        written = _in_a_process("write", folder, options)
        looked_up = _in_a_process("read", folder, options)
    data = 4 * options.vectors * options.size
    share = written["bytes"] / data
    print("| | vectors | data | bytes written / data | CPU s | peak MB |\n|---|---|---|---|---|---|")
    made = f"{options.vectors:,} | {data / 1e6:,.0f} MB"
    print(f"| append, {APPENDED} at a time | {made} | {share:.3f} | {written['cpu']:.1f} | {written['peak']:.0f} |")
    print(f"| look up all | {made} | | {looked_up['cpu']:.1f} | {looked_up['peak']:.0f} |")
    if share > MAX_WRITTEN or looked_up["peak"] > MAX_MEGABYTES:
        sys.exit(f"above {MAX_WRITTEN} times the data, or {MAX_MEGABYTES:.0f} MB")


def _in_a_process(step: str, folder: str, options: argparse.Namespace) -> dict[str, float]:
    size = ["--vectors", str(options.vectors), "--size", str(options.size)]
    command = [sys.executable, "-m", "benchmarks.speed.vectors", "--step", step, "--folder", folder, *size]
    figures: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return figures


def _made(count: int, size: int) -> Iterator[tuple[list[str], Vectors]]:
    rng = np.random.default_rng(SEED)
    for start in range(0, count, APPENDED):
        numbers = rng.standard_normal((min(APPENDED, count - start), size), np.float32)
        numbers /= np.linalg.norm(numbers, axis=1, keepdims=True)
        yield [_name(number) for number in range(start, start + len(numbers))], numbers


def _name(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def write(path: Path, count: int, size: int) -> dict[str, float]:
    file, before = VectorFile(path, size), _written()
    for names, numbers in _made(count, size):
        file.add(dict(zip(names, numbers, strict=True)))
    return {"bytes": _written() - before, **_taken()}


def read(path: Path, count: int, size: int) -> dict[str, float]:
    file, order = VectorFile(path, size), np.random.default_rng(SEED + 1).permutation(count)
    for start in range(0, count, LOOKED_UP):
        there = file.find([_name(number) for number in order[start : start + LOOKED_UP].tolist()])[1]
        if not there.all():
            sys.exit("a vector that was appended is not found")
    return _taken()


def _written() -> int:
    lines = Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def _taken() -> dict[str, float]:
    return {"cpu": time.process_time(), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    main()
