"""Estimates hold: likely is near what the lifelike server books, at most is never exceeded, and nothing is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.estimates import ALLOWED, Case, cases, outcome_of
from tests.support.fake_openai import CHAT, FakeOpenAI
from tests.support.fake_openai.examples import texts_table
from tests.support.fake_openai.tokens import picture_tokens as published_tokens
from twothirds.flows.cli.app import main
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.estimate import LIKELY, WORST, LabelPlan, made_up_features
from twothirds.models.prompting import picture_tokens, text_tokens
from twothirds.sources import load_dataset

PRICE = "0.15,0.60"
Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def holds(case: Case, folder: Path) -> None:
    outcome = outcome_of(case, folder)
    assert abs(outcome.ratio - 1) <= ALLOWED, outcome.row
    assert outcome.spent <= outcome.estimate.at_most <= 4 * outcome.estimate.likely, outcome.row


@pytest.mark.parametrize("name", ["Parquet", "texts, short", "enrich, PNG, 33 features"])
def test_a_small_run_costs_about_what_was_forecast(name: str, tmp_path: Path) -> None:
    [case] = [case for case in cases(examples=24, queries=6) if case.name == name]
    holds(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(examples=60, queries=12), ids=lambda case: case.name)
def test_a_run_costs_about_what_was_forecast(case: Case, tmp_path: Path) -> None:
    holds(case, tmp_path)


def settings_for(server: FakeOpenAI, folder: Path, **changes: object) -> DiscoverSettings:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}"
    dataset, store = str(texts_table(folder, 12)), str(folder / "store.sqlite")
    return DiscoverSettings.model_validate(
        {"dataset": dataset, "oracle": oracle, "queries": 3, "store": store} | changes
    )


@pytest.mark.parametrize(
    "crowd",
    [
        {"labeller": "simulated?price=0.001"},
        {"people": "human?price=0.05", "spot_check": 0.5},
        {"people": "human?price=0.05", "escalate": 0.2, "votes": 3},
        {"provider_batch": True},
    ],
    ids=lambda crowd: next(iter(crowd)),
)
def test_a_crowd_with_a_server_that_was_never_probed_is_forecast_without_a_request(
    server: FakeOpenAI, tmp_path: Path, crowd: dict[str, object]
) -> None:
    (tmp_path / "truth.csv").write_text("id,cat\n" + "".join(f"t{row},{row % 2}\n" for row in range(12)))
    expected = forecast_discovery(prepare(settings_for(server, tmp_path, **crowd)))
    assert server.requests == []
    assert 0 < expected.left < expected.most_left
    if "people" in crowd:  # half of the labels, or those in doubt, at 5 cents each
        assert expected.likely > 50_000


def test_a_run_that_came_to_its_end_has_nothing_left_to_ask(server: FakeOpenAI, tmp_path: Path) -> None:
    from twothirds.flows.discover.run import run_discovery

    settings = settings_for(server, tmp_path, queries=3)
    assert not forecast_discovery(prepare(settings)).ended
    run_discovery(prepare(settings), run_id="run")
    again, more = (forecast_discovery(prepare(settings.model_copy(update={"queries": n}))) for n in (3, 4))
    assert (again.ended, again.left, again.most_left) == (True, 0, 0)
    assert f"{again.stored:,} answers are stored already: nothing is left to ask" in again.lines()
    assert (more.ended, more.most_left > 0) == (False, True)
    charged = len(server.book)
    run_discovery(prepare(settings), run_id="again")
    assert len(server.book) == charged


def test_a_run_that_its_budget_ended_goes_on(server: FakeOpenAI, tmp_path: Path) -> None:
    from twothirds.flows.discover.run import run_discovery

    terms = {"dataset": "datasets/zoo", "oracle": "simulated?price=0.001", "budget": "0.15"}
    settings = settings_for(server, tmp_path, **terms)
    assert run_discovery(prepare(settings), run_id="run").progress.stopped == "budget"
    assert not forecast_discovery(prepare(settings)).ended


@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-4o", "gpt-4.1-mini", "o1", "openai/gpt-4o-mini", "other"])
@pytest.mark.parametrize("size", [(96, 96), (512, 300), (512, 512), (1024, 700), (3000, 2000)])
@pytest.mark.parametrize("detail", ["auto", "low"])
def test_pictures_take_what_is_published(model: str, size: tuple[int, int], detail: str) -> None:
    assert picture_tokens(model, *size, detail) == published_tokens(model.rpartition("/")[2], *size, detail)


def test_texts_take_a_token_for_about_four_letters() -> None:
    text = (load_dataset("datasets/zoo").examples[0].text or "") * 4
    assert 3.5 < len(text) / text_tokens(text) < 5.5


def discover(server: FakeOpenAI, folder: Path, *more: str) -> int:
    settings = settings_for(server, folder)
    options = ["--oracle", settings.oracle, "--queries", "3", "--store", str(settings.store)]
    return main(["discover", settings.dataset, *options, "--out", str(folder / "run"), *more])


def test_a_script_that_says_nothing_about_money_ends_before_anything_is_spent(
    server: FakeOpenAI, tmp_path: Path, capsys: Printed
) -> None:
    assert discover(server, tmp_path) == 2
    refusal = capsys.readouterr().err.splitlines()[-1]
    assert refusal.startswith("error: openai:gpt-4o-mini will likely cost ")
    assert "give --budget USD, or --yes" in refusal
    assert server.count(CHAT) == 0
    command = [str(texts_table(tmp_path, 12)), "--features", "cat: A cat.", "--store", str(tmp_path / "store.sqlite")]
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}"
    assert main(["enrich", *command, "--oracle", oracle, "--out", str(tmp_path / "table")]) == 2
    assert main(["compare", *command, "--oracles", oracle, "--out", str(tmp_path / "both")]) == 2
    assert main(["estimate", "enrich", *command, "--oracle", oracle, "--out", str(tmp_path / "table")]) == 0
    assert main(["estimate", "compare", *command, "--oracles", oracle]) == 0
    assert capsys.readouterr().out.count(": likely ") == 2
    assert server.count(CHAT) == 0


@pytest.mark.usefixtures("prefect_url")
def test_who_says_yes_or_gives_a_budget_is_not_asked(server: FakeOpenAI, tmp_path: Path, capsys: Printed) -> None:
    for place, words in enumerate((["--yes"], ["--budget", "1"])):
        (tmp_path / str(place)).mkdir()
        assert discover(server, tmp_path / str(place), *words) == 0, capsys.readouterr().err
    assert "go on?" not in capsys.readouterr().err


@pytest.mark.parametrize("votes", [1, 2, 3, 5, 99])
def test_votes_that_are_likely_cast_are_between_the_fewest_and_all(votes: int) -> None:
    example, features = load_dataset("datasets/zoo").examples[0], made_up_features(200)
    likely, most = (
        sum(len(asked.questions) * asked.times for asked in LabelPlan(votes, chances).of([example], features))
        for chances in (LIKELY, WORST)
    )
    assert most == pytest.approx(200 * votes)
    assert 200 * (votes // 2 + 1) <= likely <= 1.1 * 200 * (votes // 2 + 1)
