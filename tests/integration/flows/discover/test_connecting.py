"""What a server can do is found out within the run, and paid for by it; preparing and estimating send nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import FakeOpenAI
from tests.support.fake_openai.examples import texts_table
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models.prices import parse_price

PRICE = "0.15,0.60"


def settings_for(server: FakeOpenAI, folder: Path, **changes: Any) -> DiscoverSettings:
    return DiscoverSettings(
        dataset=str(texts_table(folder, 12)),
        oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}",
        queries=2,
        store=str(folder / "store.sqlite"),
        **changes,
    )


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_preparing_and_estimating_send_nothing(server: FakeOpenAI, tmp_path: Path) -> None:
    settings = settings_for(server, tmp_path)
    prepared = prepare(settings)
    assert forecast_discovery(prepared).stored == 0
    assert server.requests == []
    assert prepared.kind == "openai"
    assert prepared.folder == Path("runs") / f"{prepared.dataset.name}-openai-{prepared.scope[:8]}-queries-2"


def test_a_run_pays_for_its_probe(server: FakeOpenAI, tmp_path: Path) -> None:
    settings = settings_for(server, tmp_path)
    prepared = prepare(settings)
    outcome = run_discovery(prepared, run_id="run")
    assert prepared.folder == Path("runs") / f"{prepared.dataset.name}-openai-{prepared.scope[:8]}-queries-2"
    assert (prepared.folder / "run.json").exists()
    spent = server.spent(parse_price(PRICE))
    assert outcome.crowd.ledger.cost == spent
    assert prepared.store.runs.spent(prepared.scope) == (spent, 0)
    assert forecast_discovery(prepare(settings)).stored > 0
    assert server.spent(parse_price(PRICE)) == spent
