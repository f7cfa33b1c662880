"""Reasons for labels that are in doubt: priced, kept, resumed and shown."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, texts_table
from tests.support.fake_openai.mind import Shown
from tests.support.people import TruthfulPerson
from tests.support.run_folders import make_run
from tests.support.valued_worlds import ValuedWorld
from twothirds.flows.api import estimate, rationale
from twothirds.flows.cli.app import main
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.runs import RationaleRequest, ask_why, correct_labels, forecast_reasons
from twothirds.flows.runs.rationale import chosen_cells
from twothirds.models import BudgetExhausted
from twothirds.reports import Run
from twothirds.reports.run import read_reasons
from twothirds.sources.load import load_dataset
from twothirds.store import Store

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
    assert all(
        found[one.feature].vote_counts.yes[row[one.id]] and found[one.feature].vote_counts.no[row[one.id]]
        for one in kept
    )
    page = wavering.report().path.read_text(encoding="utf-8")
    assert page.count("The crowd knows the truth of this example.") == 7
    ask_why(wavering, RationaleRequest("disputed", 7))
    assert read_reasons(wavering.folder) == kept, "asked again it is the same, and there once"


def test_a_paid_server_needs_a_yes_a_budget_stops_it_and_nothing_is_paid_twice(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    class Wavering(FakeModel):
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
            strategy="adaptive-triple",
            out=str(tmp_path / "run"),
        )
        run_discovery(prepare(chosen), run_id="discovery")
        run, asked = Run(tmp_path / "run"), len(server.requests)
        assert main(["estimate", "rationale", str(run.folder), "--limit", "4", "--json"]) == 0
        expected = json.loads(capsys.readouterr().out)
        assert (expected["calls"], expected["kept"]) == (4, 0)
        assert estimate(rationale, run, limit=4).to_json() == expected
        plan = ask_why(run, RationaleRequest(limit=4))
        assert plan.data["done"] is False
        assert (plan.data["likely_usd"], plan.data["usd"]) == (expected["usd_about"], expected["usd"])
        assert not read_reasons(run.folder)
        assert len(server.requests) == asked, "nothing is sent before somebody agrees"
        with pytest.raises(BudgetExhausted):
            ask_why(run, RationaleRequest(limit=4, budget="0.000001"))
        assert main(["rationale", str(run.folder), "--limit", "4", "--yes", "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert expected["usd_about"] / 2 < data["usd"] < expected["usd"], "its reasons are shorter than usual ones"
        assert len(read_reasons(run.folder)) == len(data["reasons"]) > 0
        sent = len(server.requests)
        assert ask_why(run, RationaleRequest(limit=4, confirmed=True)).data["usd"] == 0
        assert len(server.requests) == sent
        after = forecast_reasons(run, RationaleRequest(limit=4))
        assert (after.stored, after.left, after.most_left) == (4, 0, 0)
        assert after.spent == round(data["usd"] * 1_000_000)
    texts = {example.id: example.text for example in prepare(chosen).dataset.examples}
    assert all(one.quote in str(texts[one.id]) for one in read_reasons(run.folder))
    assert any(one.quote for one in read_reasons(run.folder))


def test_a_label_that_a_person_has_corrected_is_not_in_doubt(wavering: Run) -> None:
    (found, row), *_ = chosen_cells(wavering, "disputed", 1)
    correct_labels(wavering, "set", wavering.findings.ids[row], found.name, "yes", by="ann")
    after = [(one.name, at) for one, at in chosen_cells(Run(wavering.folder), "disputed", 1000)]
    assert (found.name, row) not in after
    assert after


def by_people(tmp_path: Path, **more: Any) -> Run:
    """The run of a crowd whose people, or some of them, are asked from now on."""
    world = ValuedWorld(tmp_path / "world", n=24)
    run = make_run(
        world.folder / "run", world.write(), world.ids, list(world.names), world.labels.T, votes=3, divided=0.2
    )
    changed = run.summary.settings | {"replace": True, "votes": 3, "store": str(tmp_path / "store.sqlite")} | more
    (run.folder / "run.json").write_text(run.summary.model_copy(update={"settings": changed}).model_dump_json())
    return Run(run.folder)


@pytest.mark.parametrize(
    "who", [{"oracle": "human"}, {"oracle": "simulated", "labeller": "human"}], ids=["people", "mixed"]
)
def test_people_are_asked_on_the_review_page_and_the_command_goes_on(
    tmp_path: Path, capsys: Printed, who: dict[str, Any]
) -> None:
    run = by_people(tmp_path, **who)
    wanted = ["rationale", str(run.folder), "--labels", "disputed", "--limit", "5"]
    assert main(wanted) == 75
    assert "5 questions wait for 1 vote" in capsys.readouterr().err
    assert main(wanted) == 75, "asked again they wait once"
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        person = TruthfulPerson(store.queue, "ann", load_dataset(run.summary.settings["dataset"]))
        assert (person.answer_page(), person.answer_page()) == (1, 1)
        assert main(wanted) == 75
        assert len(read_reasons(run.folder)) == 2, "what came is there"
        while person.answer_page():
            pass
    assert main(wanted) == 0
    kept = read_reasons(run.folder)
    assert [one.by for one in kept] == ["ann"] * 5
    truth = dict(zip(person.columns, zip(*person.truth.values(), strict=True), strict=True))
    assert all(one.has == truth[one.feature][run.findings.ids.index(one.id)] for one in kept)
    page = run.report().path.read_text(encoding="utf-8")
    assert page.count("&lt;script&gt;seen&lt;/script&gt;") == 5
    assert "<script>seen" not in page
    assert forecast_reasons(run, RationaleRequest("disputed", 5)).at_most == 0


def test_people_who_are_paid_are_priced_before_they_are_asked(tmp_path: Path, capsys: Printed) -> None:
    run = by_people(tmp_path, oracle="human?price=0.05")
    expected = forecast_reasons(run, RationaleRequest("disputed", 4))
    assert expected.likely == 200_000 <= expected.at_most
    assert main(["rationale", str(run.folder), "--labels", "disputed", "--limit", "4"]) == 0
    assert "4 questions why, about disputed labels: likely 0.2000 USD" in capsys.readouterr().out
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        assert store.queue.records.waiting() == []


def test_where_no_label_is_in_doubt_nothing_is_asked(tmp_path: Path) -> None:
    places = {"store": str(tmp_path / "s.sqlite"), "out": str(tmp_path / "run")}
    chosen = DiscoverSettings.model_validate({"dataset": "datasets/zoo", "oracle": "simulated", "queries": 2} | places)
    run_discovery(prepare(chosen), run_id="discovery")
    assert ask_why(Run(tmp_path / "run"), RationaleRequest("disputed")).data == {"asked": 0, "done": True}
