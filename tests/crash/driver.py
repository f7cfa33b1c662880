"""Runs a scenario, kills it, runs it again until it ends, and holds what is left against the provider's book."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.provider import PRICE, WIDTH, Charge, Provider
from tests.support.stored_answers import every_request
from twothirds.store import Store
from twothirds.store.schema import CLOSED

ROOT = Path(__file__).parents[2]
MOST_IN_FLIGHT = 5 * WIDTH  # questions that are sent and not committed, with those that wait to be committed


def spent_in_all(store: Store) -> tuple[int, int]:
    each = [store.runs.spent(scope) for scope in {run["scope"] for run in store.runs.overview()}]
    return sum(spent for spent, _ in each), sum(reserved for _, reserved in each)


class ForkServer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run_forked(self, **job: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job, default=str) + "\n")
        self._process.stdin.flush()
        outcome: dict[str, Any] = json.loads(self._process.stdout.readline())
        return outcome


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    """A process that has everything imported and forks one child per job."""
    command = [sys.executable, "-m", "tests.crash.fork_server"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield ForkServer(process)
        finally:
            process.kill()


@dataclass
class VoteCounts:
    """What a test has seen, over all its trials."""

    points: int = 0
    kills: int = 0
    charges: int = 0
    charged_again: int = 0  # because a kill came between the call and its booking
    acknowledged: int = 0

    def __str__(self) -> str:
        return (
            f"{self.points} points, {self.kills} kills, {self.charges} charges of which {self.charged_again} again, "
            f"{self.acknowledged} answers acknowledged: 0 lost, 0 charges not booked"
        )


@dataclass
class Trial:
    """One run on a store of its own, disturbed and repeated until it ends."""

    fork_server: ForkServer
    provider: Provider
    store: str
    folder: Path
    scenario: str = "discover"
    files: Sequence[str] = ()
    more: dict[str, Any] = field(default_factory=dict)  # that the scenario wants to know
    attempts: int = 0
    kills: int = 0  # and other ends before the end

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._first = len(self.provider.book)

    def attempt(self, **disturbance: Any) -> dict[str, Any]:
        """Start it once, disturbed as the job says."""
        self.attempts += 1
        places = {"store": self.store, "folder": self.folder, "port": self.provider.port, **self.more}
        outcome = self.fork_server.run_forked(scenario=self.scenario, attempt=self.attempts, **places, **disturbance)
        self.kills += outcome["ended"] != "clean"
        return outcome

    def finish(self) -> dict[str, Any]:
        outcome = self.attempt()
        assert outcome["ended"] == "clean", outcome
        return outcome

    def result(self) -> dict[str, bytes]:
        return {name: (self.folder / "run" / name).read_bytes() for name in self.files}

    @property
    def book(self) -> list[Charge]:
        return self.provider.book[self._first :]

    def acknowledged(self) -> dict[str, tuple[int, str]]:
        """By key: in which attempt the answer was first handed over, and what it said."""
        first: dict[str, tuple[int, str]] = {}
        path = self.folder / "acknowledged"
        for line in path.read_text().splitlines() if path.exists() else ():
            attempt, key, verdict = line.split()
            assert first.setdefault(key, (int(attempt), verdict))[1] == verdict, "an answer changed"
        return first

    def verify(self, vote_counts: VoteCounts) -> None:
        """Nothing acknowledged is lost, everything charged is booked, nothing but what was in flight is repeated."""
        assert [path for path in self.folder.rglob(".*") if path.name != ".lock"] == [], "an unfinished file is left"
        acknowledged, calls = self.acknowledged(), Counter(charge.key for charge in self.book)
        with Store.open(self.store) as store:
            assert store.check.problems() == []
            kept = store.requests.answers(list(acknowledged))
            requests, spent = every_request(store), spent_in_all(store)
        assert {key: answer["verdict"] for key, answer in kept.items()} == {
            key: verdict for key, (_, verdict) in acknowledged.items()
        }
        again = [
            charge for charge in self.book if charge.attempt > acknowledged.get(charge.key, (self.attempts, ""))[0]
        ]
        assert again == [], "an answer that had been acknowledged was paid for again"
        assert not [one for one in requests if one.state != CLOSED], "a claim outlived the run"
        answered, in_doubt = sum(one.cost for one in requests), sum(one.in_doubt for one in requests)
        assert PRICE * len(self.book) <= answered + in_doubt, "a charge is not booked"
        assert spent == (answered + in_doubt, 0)
        assert in_doubt <= self.kills * PRICE * MOST_IN_FLIGHT, "more than what was in flight is in doubt"
        assert max(calls.values(), default=0) <= 1 + self.kills, "more than one more charge per call in flight"
        assert answered == PRICE * sum(one.answered for one in requests)
        vote_counts.points += 1
        vote_counts.kills += self.kills
        vote_counts.charges += len(self.book)
        vote_counts.charged_again += len(self.book) - len(calls)
        vote_counts.acknowledged += len(acknowledged)
