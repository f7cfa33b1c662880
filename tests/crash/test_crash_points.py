"""A discovery of 20 comparisons, killed at every statement, commit and paid call, ends as if nothing had happened.

The provider keeps its own book. `pytest -s` shows the counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.crash.boundaries import PAID_CALL
from tests.crash.conftest import Places
from tests.crash.driver import ForkServer, Trial, VoteCounts
from tests.crash.provider import Provider
from tests.crash.scenarios import RESULTS
from tests.support.growing_worlds import World

pytestmark = pytest.mark.xdist_group("fork_server")
SAMPLE = 59  # one boundary in so many, where time is short
PARTS = 4  # of all boundaries, so that one test takes minutes
RESTARTS = 3  # each killed at the same boundary


class Ordeal:
    """Trials of one run, each on a store of its own, held against one that was left alone."""

    def __init__(self, forks: ForkServer, provider: Provider, places: Places, **about: Any) -> None:
        self._about = (forks, provider)
        self._places = places
        self._scenario = about or {"files": RESULTS}
        self.vote_counts = VoteCounts()
        with self._trial() as calm:
            self.boundaries = int(calm.finish()["boundaries"])
            self._expected = calm.result()

    @contextmanager
    def _trial(self) -> Iterator[Trial]:
        with self._places() as (store, folder):
            yield Trial(*self._about, store, folder, **self._scenario)

    def survives(self, boundary: int, restarts: int = 1) -> bool:
        """Killed at this boundary, and at the same one of each restart, then left alone; False where it has no such."""
        with self._trial() as trial:
            for _ in range(restarts):
                outcome = trial.attempt(kill_at=boundary)
                assert outcome["ended"] in ("killed", "clean"), outcome
            trial.finish()
            assert trial.result() == self._expected
            trial.verify(self.vote_counts)
            return trial.kills > 0


@pytest.fixture
def ordeal(forks: ForkServer, provider: Provider, places: Places) -> Iterator[Ordeal]:
    made = Ordeal(forks, provider, places)
    yield made
    print(made.vote_counts)


@pytest.mark.parametrize("store_kind", ["sqlite"])
def test_killed_at_a_sample_of_boundaries_it_ends_like_an_undisturbed_run(ordeal: Ordeal) -> None:
    assert ordeal.boundaries > 300, "so many there are at least in 20 comparisons and their labels"
    for boundary in range(1, ordeal.boundaries, SAMPLE):
        ordeal.survives(boundary, restarts=1 + boundary % 2)
    assert ordeal.vote_counts.charged_again, "some kill came between a call and its booking"


@pytest.fixture
def labelling(forks: ForkServer, provider: Provider, places: Places, tmp_path: Path) -> Iterator[Ordeal]:
    """An enrichment whose labels are packed; some packs are answered in parts."""
    world = World(tmp_path / "world", 7, ("red", "round", "heavy", "old", "soft"))
    more = {"dataset": world.spec, "features": world.features}
    made = Ordeal(forks, provider, places, scenario="enrich", files=["labels.parquet"], more=more)
    yield made
    print(made.vote_counts)


@pytest.mark.parametrize("store_kind", ["sqlite"])
def test_an_enrichment_killed_at_a_sample_of_boundaries_ends_like_an_undisturbed_one(labelling: Ordeal) -> None:
    for boundary in range(1, labelling.boundaries, SAMPLE // 3):
        labelling.survives(boundary, restarts=1 + boundary % 2)
    assert labelling.vote_counts.charged_again, "some kill came between a call and its booking"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("store_kind", ["sqlite", "postgresql"])
def test_an_enrichment_killed_at_every_boundary_ends_like_an_undisturbed_one(labelling: Ordeal, part: int) -> None:
    boundary = part + 1
    while labelling.survives(boundary, restarts=1 + boundary % RESTARTS):
        boundary += PARTS
    assert boundary > 100, "the boundaries ended early"


@pytest.mark.parametrize("store_kind", ["sqlite"])
def test_a_store_that_does_not_write_down_what_it_sends_is_found_out(
    forks: ForkServer, provider: Provider, places: Places
) -> None:
    with places() as (store, folder):
        trial = Trial(forks, provider, store, folder, scenario="forgetful")
        assert trial.attempt(kill_at=2, of_kind=PAID_CALL)["ended"] == "killed", "charged, and nobody heard the answer"
        trial.finish()
        with pytest.raises(AssertionError, match="a charge is not booked"):
            trial.verify(VoteCounts())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("store_kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("restarts", [pytest.param(1, id="once"), pytest.param(RESTARTS, id="at every restart")])
def test_killed_at_every_boundary_it_ends_like_an_undisturbed_run(ordeal: Ordeal, restarts: int, part: int) -> None:
    boundary = part + 1
    while ordeal.survives(boundary, restarts):
        boundary += PARTS
    assert boundary > 300, "the boundaries ended early"
