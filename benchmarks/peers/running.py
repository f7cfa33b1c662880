"""A tool at work: its environment, its job, its process, the server that it asks, and what came of it.

Each tool has a virtual environment in a cache folder outside of the project. `set_up` uses pip as it is configured on
the machine. Nothing is installed unless somebody asks for it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.data import common_columns, feature_list
from benchmarks.machine import ROOT
from benchmarks.peers.job import PRICE, Field, Item, Job, Labels
from tests.support.fake_openai import Failings, Served, WidelyReadServer
from twothirds.models.prices import parse_price
from twothirds.sources import Dataset, load_dataset

CALM = Failings(label_noise=0.0, prose=0.0, too_many=0.0, broken=0.0, slow=0.0)  # every answer is right
PINNED = Path(__file__).with_name("packages.toml")
READY = "installed.txt"  # in an environment that is complete: what was installed
LONGEST = 150.0  # seconds that one run may take before it counts as hung
GRACE = 0.5  # seconds: what was answered so long before a kill has arrived


@dataclass(frozen=True)
class Tool:
    name: str
    module: str  # in benchmarks/peers/tools
    environment: str = ""  # empty: this project's own
    variant: str = ""
    budget: bool = False  # whether it has one


OURS = Tool("twothirds", "ours", budget=True)
TOOLS = (
    OURS,
    Tool("instructor + asyncio", "with_instructor", "instructor"),
    Tool("the same with its cache on disk", "with_instructor", "instructor", "cached"),
    Tool("Curator", "with_curator", "curator"),
    Tool("LOTUS", "with_lotus", "lotus", budget=True),
    Tool("distilabel", "with_distilabel", "distilabel"),
)


@dataclass(frozen=True)
class Case:
    """Examples and features that all tools are given."""

    name: str
    path: Path
    count: int  # of features

    @cached_property
    def dataset(self) -> Dataset:
        return load_dataset(str(self.path))

    @cached_property
    def names(self) -> list[str]:
        folder = self.path if self.path.is_dir() else self.path.parent
        return common_columns(folder / "truth.csv", self.count)

    @property
    def labels(self) -> int:
        return len(self.dataset.examples) * len(self.names)

    def items(self) -> tuple[Item, ...]:
        if self.path.is_dir():
            return tuple(Item(example.id, picture=str(self.path / example.id)) for example in self.dataset.examples)
        with self.path.open(newline="", encoding="utf-8") as file:
            return tuple(Item(row["id"], row["text"]) for row in csv.DictReader(file))

    def truth(self) -> Labels:
        truth = self.dataset.truth
        assert truth is not None
        columns = {field_of(name): truth.columns.index(name) for name in self.names}
        rows = zip(self.dataset.examples, truth.matrix, strict=True)
        return {example.id: {field: bool(row[column]) for field, column in columns.items()} for example, row in rows}


def field_of(name: str) -> str:
    return re.sub(r"\W+", "_", name)


@dataclass(frozen=True)
class Outcome:
    """What a tool did, by its result and by the server's book."""

    wanted: int  # labels
    right: int
    wrong: int
    seconds: float  # from the first question to the last answer
    beside: float  # seconds of the program before and after that
    requests: int
    tokens: int
    usd: float
    versions: dict[str, str]
    note: str = ""

    @property
    def lost(self) -> int:
        return self.wanted - self.right - self.wrong


@dataclass(frozen=True)
class Killed:
    """What the server was asked again after a kill, in labels."""

    before: int  # answered before the kill
    again: int  # of these, answers that had arrived and were paid again
    in_flight: int  # answers under way at the kill that were paid again
    outcome: Outcome


@dataclass(frozen=True)
class Bench:
    folder: Path
    seed: int
    concurrency: int = 16
    first: float = 0.25  # seconds until a reply begins
    per_token: float = 0.005

    @contextmanager
    def served(self, case: Case, habits: Failings = CALM) -> Iterator[WidelyReadServer]:
        terms = {"price": parse_price(PRICE), "seed": self.seed, "first": self.first, "per_token": self.per_token}
        with WidelyReadServer(case.dataset, habits, **terms) as server:  # type: ignore[arg-type]
            yield server

    def job(self, tool: Tool, case: Case, server: WidelyReadServer, name: str) -> Job:
        state = self.folder / name
        state.mkdir()
        features = feature_list(state / "features.csv", case.names)
        fields = tuple(Field(feature.name, field_of(feature.name), feature.definition) for feature in features)
        return Job(
            base_url=server.base_url,
            dataset=str(case.path),
            features=str(state / "features.csv"),
            state=str(state),
            result=str(state / "result.json"),
            items=case.items(),
            fields=fields,
            concurrency=self.concurrency,
            variant=tool.variant,
        )

    def run(self, tool: Tool, case: Case, name: str, bad: float = 0.0, budget: float | None = None) -> Outcome:
        with self.served(case) as server:
            if bad:
                server.misbehave(bad, ("prose", "half the labels"), self.seed)
            job = replace(self.job(tool, case, server, name), budget=budget)
            return self._finished(tool, case, job, server)

    def killed(self, tool: Tool, case: Case, name: str) -> Killed:
        """Killed when half of the labels are answered, and started again."""
        with self.served(case) as server:
            job = self.job(tool, case, server, name)
            process = start(tool, job)
            while process.poll() is None and answered(server) < case.labels / 2:
                time.sleep(0.02)
            ended = time.time()
            stop(process)
            before = len(server.served)
            outcome = self._finished(tool, case, job, server)
            answered_before, again, in_flight = paid_again(server.served[:before], server.served[before:], ended)
            return Killed(before=answered_before, again=again, in_flight=in_flight, outcome=outcome)

    def _finished(self, tool: Tool, case: Case, job: Job, server: WidelyReadServer) -> Outcome:
        began = time.time()
        process = start(tool, job)
        try:
            process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            return judged(case, server, {"note": f"not finished after {LONGEST:.0f} s"}, began)
        finally:
            stop(process)
        path = Path(job.result)
        if not path.exists():
            return judged(case, server, {"note": f"ended with status {process.returncode}: {last_line(job)}"}, began)
        return judged(case, server, json.loads(path.read_text(encoding="utf-8")), began)


def judged(case: Case, server: WidelyReadServer, result: dict[str, Any], began: float) -> Outcome:
    labels: Labels = result.get("labels", {})
    truth = case.truth().items()
    pairs = [(labels.get(item, {}).get(field), true) for item, row in truth for field, true in row.items()]
    right = sum(label is not None and label == true for label, true in pairs)
    wrong = sum(label is not None and label != true for label, true in pairs)
    book = server.summary()
    asked = [request for request in server.served if request.cells and request.arrived >= began]
    seconds = max(request.replied for request in asked) - min(request.arrived for request in asked) if asked else 0.0
    return Outcome(
        wanted=case.labels,
        right=right,
        wrong=wrong,
        seconds=seconds,
        beside=time.time() - began - seconds,
        requests=book["charged_requests"],
        tokens=book["prompt_tokens"] + book["completion_tokens"],
        usd=book["usd"],
        versions=result.get("versions", {}),
        note=result.get("note", ""),
    )


def paid_again(earlier: Sequence[Served], later: Sequence[Served], ended: float) -> tuple[int, int, int]:
    """Labels that were answered before a kill, and how many answers to these were paid again: of those that had
    arrived by then, and of those that were under way."""
    again = Counter(cell for request in later for cell in request.cells)
    arrived = {cell for request in earlier if request.replied < ended - GRACE for cell in request.cells}
    under_way = {cell for request in earlier for cell in request.cells} - arrived
    return len(arrived | under_way), sum(again[cell] for cell in arrived), sum(again[cell] for cell in under_way)


def answered(server: WidelyReadServer) -> int:
    now = time.time()
    return len({cell for request in list(server.served) if request.replied <= now for cell in request.cells})


def start(tool: Tool, job: Job) -> subprocess.Popen[bytes]:
    """The tool's program, in a process group of its own."""
    python = python_of(tool.environment)
    assert python is not None, f"{tool.environment} is not installed"
    state = Path(job.state)
    job.write(state / "job.json")
    with (state / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [str(python), "-m", f"benchmarks.peers.tools.{tool.module}", str(state / "job.json")],
            cwd=ROOT,
            env=environment(job, python),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def environment(job: Job, python: Path) -> dict[str, str]:
    """No telemetry and no downloads, and what a tool keeps is in its own folder."""
    state = Path(job.state)
    offline = {"TELEMETRY_ENABLED": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1"}
    offline |= {"OPENAI_BASE_URL": job.base_url, "OPENAI_API_KEY": "none"}
    offline |= {"DO_NOT_TRACK": "1", "HF_DATASETS_OFFLINE": "1"}
    homes = {"HF_HOME": "hf", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
    kept = {name: str(state / place) for name, place in homes.items()}
    tables = sorted(python.parents[1].glob("lib/*/site-packages/litellm/litellm_core_utils/tokenizers"))
    offline |= {"TIKTOKEN_CACHE_DIR": str(tables[0])} if tables else {}  # it would be fetched otherwise
    shared = {"PREFECT_HOME": str(state.parent / "prefect"), "TWOTHIRDS_SERVER_MINUTES": "0.05"}
    return os.environ | offline | kept | shared


def stop(process: subprocess.Popen[bytes]) -> None:
    """At once, with all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_line(job: Job) -> str:
    lines: Sequence[str] = (Path(job.state) / "output.txt").read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:200]


def pinned() -> dict[str, list[str]]:
    data = tomllib.loads(PINNED.read_text(encoding="utf-8"))
    return {name: list(tool["packages"]) for name, tool in data.items()}


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
    """Install it again; the error of pip, or nothing."""
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
