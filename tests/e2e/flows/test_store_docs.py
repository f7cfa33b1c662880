"""Every command of docs/store.md is run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from flows.__main__ import main
from store import Store
from tests.e2e.flows.runs.test_docs import blocks_of
from tests.support.filled_stores import keep


def test_the_commands_of_the_page_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.open("answers.sqlite") as store:
        keep(store, 30)
    lines = [line for language, text in blocks_of("store.md") if language == "sh" for line in text.splitlines()]
    assert len(lines) == 6
    for line in lines:
        words = shlex.split(line)
        assert words[:4] == ["python", "-m", "flows", "store"], line
        assert main(words[3:]) == 0, line
    assert capsys.readouterr().out.splitlines()[-1].startswith("store restored.sqlite: 30 answers; every key")
    with Store.open("restored.sqlite") as store:
        assert keep(store, 30).paid_calls == 0
