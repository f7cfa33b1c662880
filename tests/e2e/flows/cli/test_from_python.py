"""The same from Python and notebooks, in three lines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flows.discover.flow import Run, discover

FACES = str(Path(__file__).parents[4] / "datasets" / "faces")


def test_three_lines_give_features_and_labels(prefect_url: str, tmp_path: Path) -> None:  # noqa: ARG001
    run = discover(FACES, oracle="simulated", queries=4, store=str(tmp_path / "s.sqlite"), out=str(tmp_path / "run"))
    assert list(run.features["name"]) == list(run.labels.columns)
    assert run.labels.shape == (100, len(run.features))
    assert set(run.labels.to_numpy().ravel()) <= {0, 1}


def test_it_works_inside_a_running_event_loop(prefect_url: str, tmp_path: Path) -> None:  # noqa: ARG001
    async def notebook() -> Run:
        return discover(
            FACES, oracle="simulated", queries=2, store=str(tmp_path / "s.sqlite"), out=str(tmp_path / "run")
        )

    assert asyncio.run(notebook()).summary.queries == 2


def test_errors_reach_the_caller_in_a_running_event_loop_too(tmp_path: Path) -> None:
    async def notebook() -> Run:
        return discover(FACES, oracle="nobody", store=str(tmp_path / "s.sqlite"))

    with pytest.raises(Exception, match="nobody"):
        asyncio.run(notebook())
