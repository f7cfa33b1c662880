"""A Prefect server of ours begins with the database that the set-up has made, and touches no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from twothirds.flows.prefect_api.server_program import bring_database


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    (tmp_path / "prepared.db").write_bytes(b"as prepared")
    return tmp_path / "prepared.db"


def test_a_server_without_a_database_begins_with_the_prepared_one(tmp_path: Path, prepared: Path) -> None:
    file = tmp_path / "new home" / "prefect.db"
    bring_database(f"sqlite+aiosqlite:///{file}", prepared)
    assert file.read_bytes() == b"as prepared"
    assert list(file.parent.iterdir()) == [file], "nothing is left beside it"


def test_a_database_that_is_there_stays(tmp_path: Path, prepared: Path) -> None:
    file = tmp_path / "prefect.db"
    file.write_bytes(b"of the user")
    bring_database(f"sqlite+aiosqlite:///{file}", prepared)
    assert file.read_bytes() == b"of the user"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://somebody@localhost/prefect",
        "sqlite+aiosqlite:///file::memory:?cache=shared",
        "sqlite+aiosqlite:///:memory:",
    ],
)
def test_other_databases_are_left_to_prefect(
    tmp_path: Path, prepared: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bring_database(url, prepared)
    assert list(tmp_path.iterdir()) == [prepared]


def test_without_a_prepared_one_prefect_makes_it(tmp_path: Path) -> None:
    bring_database(f"sqlite+aiosqlite:///{tmp_path}/prefect.db", tmp_path / "missing.db")
    assert list(tmp_path.iterdir()) == []
