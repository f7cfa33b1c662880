"""An alert of automations.yaml fires for real: a night whose budget is used up, and a listener that hears of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from flows.enrich.flow import enrich_flow
from flows.enrich.settings import EnrichSettings
from flows.prefect_api.history import send_history
from tests.support.growing_worlds import World
from tests.support.webhook import listening

ROOT = Path(__file__).parents[3]


@pytest.fixture
def heard() -> Iterator[tuple[str, list[str]]]:
    with listening() as heard:
        yield heard


def test_a_budget_drift_and_refusals_are_notified(
    prefect_url: str, tmp_path: Path, heard: tuple[str, list[str]]
) -> None:
    password = os.environ["PREFECT_API_AUTH_STRING"]
    address, said = heard
    settings = {PREFECT_API_URL: prefect_url, PREFECT_API_AUTH_STRING: password}
    with temporary_settings(settings), SyncPrefectClient(prefect_url, auth_string=password) as client:
        block = CustomWebhookNotificationBlock(name="ear", url=address, json_data={"text": "{{subject}} {{body}}"})
        block_id = str(block.save("ear", overwrite=True))
        text = (ROOT / "automations.yaml").read_text(encoding="utf-8").replace("BLOCK_ID", block_id)
        made = [client._client.post("/automations/", json=one) for one in yaml.safe_load(text)["automations"]]
        assert [one.status_code for one in made] == [201] * 5, [one.text for one in made]
        try:
            world = World(tmp_path / "world", 40)
            given = {"dataset": world.spec, "features": world.features, "out": str(tmp_path / "out")}
            places = given | {"store": str(tmp_path / "store.sqlite")}
            deadline = time.monotonic() + 60
            while len([one for one in said if "a budget is used up" in one]) < 1:
                assert time.monotonic() < deadline, said
                dear = {"oracle": "simulated?price=0.01&refuse=0.2", "budget": "0.05"}
                enrich_flow(EnrichSettings.model_validate(places | dear), return_state=True)
                send_history()
                time.sleep(3)  # the server may have yet to learn of the automations
            assert any("raise --budget" in one for one in said)
        finally:
            for one in made:
                client._client.delete(f"/automations/{one.json()['id']}")
