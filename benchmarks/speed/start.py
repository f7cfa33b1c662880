"""How long people wait: from Enter to the first question that a model server gets, and for a run that is all kept.

    python -m benchmarks.speed.start [--rounds 5]

Each command runs as people type it, without any server started by hand, in folders of its own. The first question is
counted by the lifelike server of the tests; the repetition is that of `make discover` until its process has ended."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.machine import heading
from models.prices import parse_price
from sources import load_dataset
from tests.support.fake_openai import Habits, LifelikeServer

FACES = "datasets/faces"
FIRST, CACHED = 5.0, 6.0  # seconds, at most, with and without the server of an earlier run in the background


class Folders:
    """A user's folders, and commands of that user."""

    def __init__(self, home: Path) -> None:
        self._home, self._stores = home, 0
        unset = ("PREFECT_", "OPENAI_", "TWOTHIRDS_")
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PREFECT_HOME"):
            self._environment[name] = str(home / name.lower())

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "flows", *words]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=self._environment, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE)

    def run(self, *words: str) -> float:
        """The seconds that a command takes."""
        began = time.monotonic()
        process = self.start(*words)
        _, errors = process.communicate()
        if process.returncode:
            sys.exit(f"{' '.join(words)}: {errors.decode()}")
        return time.monotonic() - began

    def first_question(self, server: LifelikeServer) -> float:
        """The seconds from Enter to the first question of a run with a store of its own."""
        self._stores += 1
        asked, name = len(server.book_of_questions), f"first-{self._stores}"
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60"
        places = ("--budget", "5", "--store", str(self._home / f"{name}.sqlite"), "--out", str(self._home / name))
        began = time.monotonic()
        process = self.start("discover", FACES, "--oracle", oracle, "--queries", "1", *places)
        while len(server.book_of_questions) == asked and process.poll() is None:
            time.sleep(0.002)
        took = time.monotonic() - began
        _, errors = process.communicate()
        if process.returncode:
            sys.exit(errors.decode())
        return took

    def cached(self) -> float:
        return self.run("discover", FACES, "--oracle", "contrastive", "--out", str(self._home / "run"))

    def stop_server(self) -> None:
        self.run("server", "stop")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = range(parser.parse_args().rounds)
    print(heading("python -m benchmarks.speed.start"))
    price = parse_price("0.15,0.60")
    with tempfile.TemporaryDirectory() as name, LifelikeServer(load_dataset(FACES), Habits(), price=price) as server:
        folders = Folders(Path(name))
        try:
            very_first = folders.first_question(server)  # makes Prefect's database too, and probes the model server
            folders.cached()
            found = [folders.first_question(server) for _ in rounds], [folders.cached() for _ in rounds]
            first, cached = list[float](), list[float]()
            for _ in rounds:
                folders.stop_server()
                first.append(folders.first_question(server))
                folders.stop_server()
                cached.append(folders.cached())
        finally:
            folders.stop_server()
    print("| | Enter to the first question (s) | all kept, `make discover` again (s) |\n|---|---:|---:|")
    print(f"| median of {len(rounds)}, the server of an earlier run is found | {_cells(*found)} |")
    print(f"| median of {len(rounds)}, no server is there | {_cells(first, cached)} |")
    print(f"\nThe first run of all, which makes Prefect's database and probes the server: {very_first:.1f} s.")
    if max(median(found[0]), median(first)) > FIRST or max(median(found[1]), median(cached)) > CACHED:
        sys.exit(f"slower than {FIRST:g} and {CACHED:g} s")


def _cells(first: list[float], cached: list[float]) -> str:
    return " | ".join(f"{median(each):.1f} ({min(each):.1f} to {max(each):.1f})" for each in (first, cached))


if __name__ == "__main__":
    main()
