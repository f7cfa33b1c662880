"""How long people wait: from Enter to the first question, and for a run whose answers are all stored.

Each command runs as people type it, without any server started by hand, in folders of its own. The first question is
counted by the lifelike server of the tests; the repetition is that of `make discover` until its process has ended.
Medians with the range, in seconds. At most 5 s and 6 s are wanted."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from tests.support.fake_openai import Failings, LifelikeServer
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset

FACES = "datasets/faces"
QUICK = {"rounds": 1}
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
        command = [sys.executable, "-m", "twothirds", *words]
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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5)


def run(options: argparse.Namespace) -> list[Table]:
    rounds, price = range(options.rounds), parse_price("0.15,0.60")
    with tempfile.TemporaryDirectory() as name, LifelikeServer(load_dataset(FACES), Failings(), price=price) as server:
        folders = Folders(Path(name))
        try:
            tell("the first run of all")
            very_first = folders.first_question(server)  # makes Prefect's database too, and probes the model server
            folders.cached()
            tell("with the server of an earlier run")
            first = [folders.first_question(server) for _ in rounds]
            cached = [folders.cached() for _ in rounds]
            first_alone, cached_alone = list[float](), list[float]()
            for _ in rounds:
                tell("without a server")
                folders.stop_server()
                first_alone.append(folders.first_question(server))
                folders.stop_server()
                cached_alone.append(folders.cached())
        finally:
            folders.stop_server()
    rows = [
        ["the server of an earlier run is found", _times(first), _times(cached)],
        ["no server is there", _times(first_alone), _times(cached_alone)],
        ["the first run of all: makes Prefect's database, probes the server", round(very_first, 1), None],
    ]
    missed = [f"the first question after {FIRST:g} s"] if max(median(first), median(first_alone)) > FIRST else []
    missed += [f"a repetition in {CACHED:g} s"] if max(median(cached), median(cached_alone)) > CACHED else []
    columns = [f"median of {len(rounds)}", "Enter to the first question, s", "all stored, `make discover` again, s"]
    return [Table("Waiting", columns, rows, [], missed)]


def _times(seconds: list[float]) -> Cell:
    return f"{median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
