"""Reasons for labels that are in doubt: priced, kept, resumed and shown."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from flows.__main__ import main
from flows.discover.flow import run_discovery
from flows.discover.preparation import prepare
from flows.discover.settings import DiscoverSettings
from flows.runs import RationaleRequest, ask_why
from models import BudgetExhausted
from reports import Run
from reports.run import read_reasons
from tests.support.fake_openai import FakeOpenAI, Mind
from tests.support.fake_openai.examples import WORDS, texts_table
from tests.support.fake_openai.mind import Shown

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def wavering(tmp_path: Path) -> Run:
    """A run on a free crowd whose votes differ now and then."""
    chosen = DiscoverSettings(
        dataset="datasets/zoo",
        oracle="simulated?flip=0.15",
        queries=3,
        votes=3,
        store=str(tmp_path / "store.sqlite"),
        out=str(tmp_path / "run"),
    )
    run_discovery(prepare(chosen), run_id="discovery")
    return Run(tmp_path / "run")


def test_a_free_oracle_is_asked_at_once_and_the_report_shows_what_it_says(wavering: Run) -> None:
    result = ask_why(wavering, RationaleRequest("disputed", 7))
    kept = read_reasons(wavering.folder)
    assert result.data["asked"] == len(kept) == 7
    assert len({one.feature for one in kept}) == min(3, wavering.summary.features), "every feature has its turn"
    row = {name: at for at, name in enumerate(wavering.findings.ids)}
    found = {one.name: one for one in wavering.findings.found}
    assert all(found[one.feature].tally.yes[row[one.id]] and found[one.feature].tally.no[row[one.id]] for one in kept)
    page = wavering.report().path.read_text(encoding="utf-8")
    assert page.count("The crowd knows the truth of this example.") == 7
    ask_why(wavering, RationaleRequest("disputed", 7))
    assert read_reasons(wavering.folder) == kept, "asked again it is the same, and there once"


def test_a_paid_server_needs_a_yes_a_budget_stops_it_and_nothing_is_paid_twice(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    class Wavering(Mind):
        def has(self, example: Shown, feature: Mapping[str, str], dice: random.Random) -> bool:
            return super().has(example, feature, dice) != (dice.random() < 0.3)

    with FakeOpenAI(Wavering(WORDS)) as server:
        chosen = DiscoverSettings(
            dataset=str(texts_table(tmp_path, 12)),
            oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60&logprobs=false",
            queries=3,
            votes=3,
            budget="1",
            store=str(tmp_path / "store.sqlite"),
            out=str(tmp_path / "run"),
        )
        run_discovery(prepare(chosen), run_id="discovery")
        run, asked = Run(tmp_path / "run"), len(server.requests)
        told = ask_why(run, RationaleRequest(limit=4))
        assert told.data["done"] is False
        assert told.data["usd"] > 0
        assert not read_reasons(run.folder)
        assert len(server.requests) == asked, "nothing is sent before somebody agrees"
        with pytest.raises(BudgetExhausted):
            ask_why(run, RationaleRequest(limit=4, budget="0.000001"))
        assert main(["rationale", str(run.folder), "--limit", "4", "--yes", "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["usd"] > 0
        assert len(read_reasons(run.folder)) == len(data["reasons"]) > 0
        sent = len(server.requests)
        assert ask_why(run, RationaleRequest(limit=4, confirmed=True)).data["usd"] == 0
        assert len(server.requests) == sent
    texts = {example.id: example.text for example in prepare(chosen).dataset.examples}
    assert all(one.quote in str(texts[one.id]) for one in read_reasons(run.folder))
    assert any(one.quote for one in read_reasons(run.folder))


def test_where_no_label_is_in_doubt_nothing_is_asked(tmp_path: Path) -> None:
    places = {"store": str(tmp_path / "s.sqlite"), "out": str(tmp_path / "run")}
    chosen = DiscoverSettings.model_validate({"dataset": "datasets/zoo", "oracle": "simulated", "queries": 2} | places)
    run_discovery(prepare(chosen), run_id="discovery")
    assert ask_why(Run(tmp_path / "run"), RationaleRequest("disputed")).data == {"asked": 0, "done": True}
