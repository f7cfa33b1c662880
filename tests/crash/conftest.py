"""One fork_server and one provider per test process, and stores that can be thrown away by the hundred."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.crash.driver import ForkServer, fork_server
from tests.crash.provider import Provider
from tests.integration.conftest import postgres
from tests.support.postgres import PostgresServer

__all__ = ["postgres"]

Place = tuple[str, Path]  # the address of a store that does not exist yet, and a folder that does not exist yet
Places = Callable[[], AbstractContextManager[Place]]


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    with fork_server() as opened:
        yield opened


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    with Provider() as opened:
        yield opened


@pytest.fixture
def places(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Places:
    """A new store and a new folder for each trial; both are gone after it."""
    numbers = itertools.count()

    @contextmanager
    def place() -> Iterator[Place]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        if store_kind == "sqlite":
            yield f"sqlite:///{folder / 'store.sqlite'}", folder / "work"
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            url = server.fresh_schema()
            yield url, folder / "work"
            server.drop_schema(url)
        shutil.rmtree(folder)

    return place
