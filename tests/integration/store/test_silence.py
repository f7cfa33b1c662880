"""Opening a store from Python or in a deployment prints nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.settings import open_store


def test_opening_a_store_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        open_store(str(tmp_path / "store.sqlite")).close()
    assert capfd.readouterr() == ("", "")
