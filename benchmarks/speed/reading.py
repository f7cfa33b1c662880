"""How reading grows with the data set: CPU time and memory of streaming each form, at two sizes a factor of ten apart.

`python -m benchmarks.speed.reading` prints a table. Each form is read in a process of its own."""

from __future__ import annotations

import gzip
import io
import json
import resource
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from PIL import Image

from sources import iter_examples

SIZES = {"texts": (20_000, 200_000), "pictures": (1_000, 10_000)}
SIDE = 32


def picture(number: int) -> bytes:
    written = io.BytesIO()
    Image.fromarray(np.random.default_rng(number).integers(0, 255, (SIDE, SIDE, 3), np.uint8)).save(written, "PNG")
    return written.getvalue()


def text(number: int) -> str:
    return f"café number {number}: " + "words of a joke " * 12


def csv_gz(folder: Path, count: int) -> Path:
    rows = "".join(f"{number};{text(number)}\n" for number in range(count))
    (folder / "t.csv.gz").write_bytes(gzip.compress(f"ID;Text\n{rows}".encode("cp1252"), 1))
    return folder / "t.csv.gz"


def json_list(folder: Path, count: int) -> Path:
    (folder / "t.json").write_text(json.dumps([{"id": number, "text": text(number)} for number in range(count)]))
    return folder / "t.json"


def parquet(folder: Path, count: int) -> Path:
    images = [{"bytes": picture(number), "path": None} for number in range(count)]
    pd.DataFrame({"id": range(count), "image": images}).to_parquet(folder / "t.parquet", row_group_size=1000)
    return folder / "t.parquet"


def shard(folder: Path, count: int) -> Path:
    with tarfile.open(folder / "t.tar", "w") as tar:
        for number in range(count):
            for suffix, content in (("png", picture(number)), ("txt", text(number).encode())):
                member = tarfile.TarInfo(f"{number:07}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return folder / "t.tar"


FORMS: dict[str, tuple[str, Callable[[Path, int], Path]]] = {
    "CSV, compressed, Windows-1252": ("texts", csv_gz),
    "JSON list": ("texts", json_list),
    "Parquet with pictures": ("pictures", parquet),
    "WebDataset shard, picture and text": ("pictures", shard),
}


def read(spec: str) -> None:
    """In a process of its own: rows, CPU seconds and megabytes."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    count = sum(1 for _ in iter_examples(spec))
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(count, seconds, _peak_megabytes())


def _peak_megabytes() -> float:
    """Of this program: getrusage would count what the process was before it began."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    print("| form | rows | CPU s | µs per row | peak MB |\n|---|---|---|---|---|")
    for name, (kind, make) in FORMS.items():
        for count in SIZES[kind]:
            with TemporaryDirectory() as folder:
                spec = make(Path(folder), count)
                command = [sys.executable, "-m", "benchmarks.speed.reading", str(spec)]
                printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            rows, seconds, megabytes = int(printed[0]), float(printed[1]), float(printed[2])
            print(f"| {name} | {rows:,} | {seconds:.1f} | {seconds / rows * 1e6:.0f} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    read(sys.argv[1]) if len(sys.argv) > 1 else main()
