"""A label that was refused or unreadable one night is asked again the next, and not by a run that is only resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.fake_openai import LABELS, FakeOpenAI
from twothirds.flows.cli.errors import explain
from twothirds.flows.cli.store_check import check
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich import summary as written_summary
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.models.oracle import AnswersUnusable, OracleLost
from twothirds.store import Store

FEATURES = "cat: It mentions a cat.; dog: It mentions a dog."


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


@pytest.fixture
def enriching(server: FakeOpenAI, dataset: Path, store_path: str) -> EnrichSettings:
    return EnrichSettings(
        dataset=str(dataset),
        features=FEATURES,
        oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&grouping=none&attempts=1",
        store=store_path,
        out=str(dataset.parent / "table"),
    )


def night(settings: EnrichSettings, **options: Any) -> dict[str, Any]:
    return enrich_with(settings, **options).to_json()


def missing(settings: EnrichSettings) -> int:
    table = pd.read_parquet(Path(str(settings.out)) / "labels.parquet")
    return int(table[["cat", "dog"]].isna().sum().sum())


def whole(store_path: str) -> None:
    with Store.open(store_path) as store:
        assert check(store).problems == []


@pytest.mark.parametrize("fault", ["prose", "refusal"])
def test_the_next_night_asks_again(server: FakeOpenAI, enriching: EnrichSettings, store_path: str, fault: str) -> None:
    """With another patience, too: how often a question is asked is not part of who is asked."""
    server.script(LABELS, [None, *[fault] * 5])
    night(enriching.model_copy(update={"oracle": f"{enriching.oracle}&asks=1"}))
    assert missing(enriching) == 5
    assert night(enriching.model_copy(update={"oracle": f"{enriching.oracle}&asks=8"}))["paid_calls"] == 5
    assert missing(enriching) == 0
    assert night(enriching)["paid_calls"] == 0
    whole(store_path)


def test_every_night_tries_again_what_stays_refused(
    server: FakeOpenAI, enriching: EnrichSettings, store_path: str
) -> None:
    server.abilities.forbidden = "number 3:"
    night(enriching)
    assert missing(enriching) == 2
    for _ in range(2):
        before = len(server.requests)
        summary = night(enriching)
        assert (summary["paid_calls"], summary["filled"], len(server.requests) - before) == (2, 0, 2)
    server.abilities.forbidden = ""
    assert night(enriching)["paid_calls"] == 2
    assert missing(enriching) == 0
    whole(store_path)


def test_a_run_that_is_resumed_does_not_ask_again_what_it_found_unusable_itself(
    server: FakeOpenAI, enriching: EnrichSettings, store_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.abilities.forbidden = "number 3:"
    with monkeypatch.context() as patch:
        patch.setattr(written_summary, "write_table", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            night(enriching)
    asked = len(server.requests)
    assert night(enriching)["paid_calls"] == 0
    assert len(server.requests) == asked
    assert night(enriching)["paid_calls"] == 2
    whole(store_path)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_nor_one_that_left_a_partial_table(server: FakeOpenAI, enriching: EnrichSettings, store_path: str) -> None:
    """The server goes away in mid-run: what was found is a version of the table, and the same command goes on."""
    server.abilities.forbidden = "number 0:"
    server.answers_left = 20
    one_by_one = enriching.model_copy(update={"oracle": f"{enriching.oracle}&concurrency=1&retry_delay=0.01"})
    with pytest.raises(OracleLost):
        night(one_by_one)
    server.answers_left = None
    asked = len(server.requests)
    night(one_by_one)
    sent = [request.json() for request in server.requests[asked:]]
    assert sent
    assert not any("number 0:" in str(body) for body in sent)
    night(one_by_one)
    assert sum("number 0:" in str(request.json()) for request in server.requests[asked:]) == 2
    whole(store_path)


@pytest.mark.parametrize(("refused", "fails"), [(32, True), (17, True), (16, False)])
def test_a_night_of_which_most_answers_are_unusable_fails_once_its_table_is_written(
    server: FakeOpenAI, enriching: EnrichSettings, store_path: str, refused: int, fails: bool
) -> None:
    settings = enriching.model_copy(update={"oracle": f"{enriching.oracle}&asks=1&concurrency=1"})
    server.script(LABELS, ["refusal"] * refused)
    line = f"{refused} of 32 answers could not be used"
    if fails:
        with pytest.raises(AnswersUnusable) as caught:
            night(settings)
        status, message = explain(caught.value)
        assert status == 1
        assert message.startswith(line)
        assert str(settings.out) in message
        assert "--retry-unusable" in message
    else:
        night(settings)
    written = EnrichSummary.read(Path(str(settings.out)))
    assert written.unusable is not None
    assert written.unusable.lines()[0].startswith(line)
    assert missing(settings) == refused
    whole(store_path)


def test_a_failed_night_that_prefect_tries_again_fails_again_for_nothing_and_the_next_night_asks_again(
    server: FakeOpenAI, enriching: EnrichSettings, store_path: str
) -> None:
    server.abilities.forbidden = "number"
    with pytest.raises(AnswersUnusable):
        night(enriching, run_id="tonight")
    asked = len(server.requests)
    for _ in range(2):  # as often as the deployment does
        with pytest.raises(AnswersUnusable, match="32 of 32"):
            night(enriching, run_id="tonight")
    assert len(server.requests) == asked
    server.abilities.forbidden = ""
    assert night(enriching, run_id="tomorrow")["paid_calls"] == 32
    assert missing(enriching) == 0
    whole(store_path)


def test_what_a_discovery_could_not_read_is_asked_again_on_request_alone(
    server: FakeOpenAI, dataset: Path, store_path: str
) -> None:
    settings = DiscoverSettings(
        dataset=str(dataset),
        oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&attempts=1",
        queries=5,
        store=store_path,
        out=str(dataset.parent / "run"),
    )
    server.abilities.forbidden = "number 3:"
    first = run_discovery(prepare(settings), run_id="first")
    server.abilities.forbidden = ""
    assert run_discovery(prepare(settings), run_id="second").crowd.ledger.paid_calls == 0
    retrying = settings.model_copy(update={"retry_unusable": True})
    third = run_discovery(prepare(retrying), run_id="third")
    assert third.crowd.ledger.paid_calls > 0
    assert (first.label_table().value < 0).any()
    assert not (third.label_table().value < 0).any()
    assert run_discovery(prepare(settings), run_id="fourth").label_table().columns == third.label_table().columns
    whole(store_path)
