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
from twothirds.models.oracle import Connects, OracleError
from twothirds.models.prices import parse_price
from twothirds.tasks.ask import probe

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
    with pytest.raises(OracleError, match=r"call connect\(\) first"):
        prepared.folder.exists()


def test_a_run_connects_names_its_folder_and_pays_for_the_probe(server: FakeOpenAI, tmp_path: Path) -> None:
    settings = settings_for(server, tmp_path)
    prepared = prepare(settings)
    outcome = run_discovery(prepared, run_id="run")
    assert prepared.folder == Path("runs") / f"{prepared.dataset.name}-openai-{prepared.scope[:8]}-queries-2"
    assert (prepared.folder / "run.json").exists()
    spent = server.spent(parse_price(PRICE))
    assert outcome.recorded.ledger.cost == spent
    assert prepared.store.runs.spent(prepared.scope) == (spent, 0)
    assert forecast_discovery(prepare(settings)).stored > 0
    assert server.spent(parse_price(PRICE)) == spent


def test_the_task_connects_an_oracle_with_a_server_and_leaves_others_alone(server: FakeOpenAI, tmp_path: Path) -> None:
    oracle = prepare(settings_for(server, tmp_path)).oracle
    assert isinstance(oracle, Connects)
    probe.fn(oracle)
    assert str(oracle.identity) == "openai:gpt-4o-mini"
    crowd = settings_for(server, tmp_path, labeller="human")
    mixed = prepare(crowd).oracle
    assert isinstance(mixed, Connects)
    probe.fn(mixed)
    assert str(mixed.identity).startswith("mixed:openai:gpt-4o-mini")
    alone = prepare(crowd.model_copy(update={"oracle": "human", "labeller": None})).oracle
    assert not isinstance(alone, Connects)


def test_abilities_that_are_known_from_before_are_not_called_an_answer(
    server: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("twothirds.tasks.ask.log", said.append)
    for _ in range(2):
        oracle = prepare(settings_for(server, tmp_path)).oracle
        assert isinstance(oracle, Connects)
        probe.fn(oracle)
        said.append(f"{len(server.requests)} requests")
    first, sent, second, sent_again = said
    assert first.endswith(" answers")
    assert second.endswith(": what its server can do is known from before")
    assert sent == sent_again, "nothing says whether it answers now"
