"""The store fails at its Nth write, once or for ever, in a first run or while a killed one is taken up again.

Once is survived or ends in one line; for ever ends in one line; and the next run ends like an undisturbed one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.crash.conftest import Places
from tests.crash.driver import ForkServer, Trial, VoteCounts
from tests.crash.faults import KINDS
from tests.crash.provider import Provider
from tests.crash.scenarios import RESULTS

pytestmark = pytest.mark.xdist_group("fork_server")
ONCE, FOR_EVER = False, True
NO_FAULT = {"kind": "locked", "at": 10**9, "for_ever": ONCE}
PATIENCE = 0.2  # seconds for which a lock or a server is waited for
IN_MID_RUN = 340  # a boundary
ALL = [(store, kind) for store, kinds in KINDS.items() for kind in kinds]


class Faulty:
    def __init__(self, forks: ForkServer, provider: Provider, places: Places) -> None:
        self._about = (forks, provider)
        self._places = places
        self.vote_counts = VoteCounts()
        self.survived = 0
        with places() as (store, folder):
            calm = Trial(*self._about, store, folder, files=RESULTS)
            self.writes = int(calm.attempt(fault=NO_FAULT)["boundaries"])
            self._expected = calm.result()

    def survives(self, fault: dict[str, Any], *, recovering: bool = False) -> None:
        with self._places() as (store, folder):
            trial = Trial(*self._about, store, folder, files=RESULTS)
            if recovering:
                assert trial.attempt(kill_at=IN_MID_RUN)["ended"] == "killed"
            outcome = trial.attempt(fault=fault, patience=PATIENCE)
            if outcome["ended"] == "clean":
                assert not fault["for_ever"] or outcome["boundaries"] <= fault["at"], "it did not notice"
                self.survived += 1
            else:
                assert outcome["status"] == 1, outcome
                assert outcome["said"].startswith("store "), outcome["said"]
                assert "\n" not in outcome["said"]
                assert ": " in outcome["said"], "it says what to do"
            trial.finish()
            assert trial.result() == self._expected
            trial.verify(self.vote_counts)


@pytest.fixture
def faulty(forks: ForkServer, provider: Provider, places: Places) -> Faulty:
    return Faulty(forks, provider, places)


@pytest.mark.parametrize("store_kind", ["sqlite"])
def test_a_few_faults_lose_nothing(faulty: Faulty) -> None:
    for number, kind in enumerate(KINDS["sqlite"]):
        for for_ever in (ONCE, FOR_EVER):
            at = 60 + 17 * number + for_ever
            faulty.survives({"kind": kind, "at": at, "for_ever": for_ever}, recovering=number == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("store_kind", "kind"), ALL)
@pytest.mark.parametrize("for_ever", [pytest.param(ONCE, id="once"), pytest.param(FOR_EVER, id="for ever")])
def test_a_fault_at_any_write_loses_nothing(faulty: Faulty, kind: str, for_ever: bool) -> None:
    """Every third write in the first run, every ninth while a killed run is taken up again."""
    for at in range(1, faulty.writes + 3, 3):
        faulty.survives({"kind": kind, "at": at, "for_ever": for_ever})
    for at in range(1, faulty.writes // 2, 9):
        faulty.survives({"kind": kind, "at": at, "for_ever": for_ever}, recovering=True)
    if kind in ("locked", "connection dropped", "acknowledgement lost") and not for_ever:
        assert faulty.survived > faulty.vote_counts.points / 2, "what passes is waited for"
    print(f"{kind}: {faulty.survived} survived; {faulty.vote_counts}")
