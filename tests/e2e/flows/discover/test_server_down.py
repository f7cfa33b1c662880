"""A model server that is down, from the start or from some moment on: one line, what was found is written, and the same
command goes on."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.support.comparisons import write_votes
from tests.support.fake_openai import BATCHES, CHAT, DECISIONS, LABELS, Abilities, FakeOpenAI, examples
from tests.support.slow import slow
from twothirds.flows.cli.app import main
from twothirds.flows.enrich.flow import nightly_flow
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.prefect_api.runs import Caller, run_flow
from twothirds.models.oracle import MICRO
from twothirds.models.prices import parse_price
from twothirds.store import Store
from twothirds.tasks.ask import label_batch

WORDS = list(examples.WORDS)
PRICE = "0.15,0.60"
WAYS = ["chat", *slow("decisions", "batch")]
Printed = pytest.CaptureFixture[str]


def openai(base_url: str) -> str:
    patience = "attempts=2&retry_delay=0.01&batch_poll=0.01&labels_per_request=4"
    return f"openai:gpt-4o-mini?base_url={base_url}&price={PRICE}&{patience}"


def places(folder: Path) -> list[str]:
    return ["--store", str(folder.with_suffix(".sqlite")), "--out", str(folder)]


def discover(dataset: Path, base_url: str, folder: Path, *more: str) -> int:
    terms = ["--queries", "6", "--strategy", "adaptive-triple", "--yes"]  # labels after each question: it dies there
    return main(["discover", str(dataset), "--oracle", openai(base_url), *terms, *places(folder), *more])


def the_only_error(printed: Printed) -> str:
    caught = printed.readouterr()
    [line] = [line for line in caught.err.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in caught.out + caught.err
    assert line == caught.err.splitlines()[-1]
    return line


def test_a_server_that_is_down_from_the_start_is_one_line_and_leaves_an_older_run_alone(
    dataset: Path, tmp_path: Path, capsys: Printed
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    with socket.socket() as deaf:  # it has a port, and nobody listens
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        assert discover(dataset, url, folder) == 4
    assert "cannot be reached" in (line := the_only_error(capsys))
    assert "check that the server runs" in line
    assert [path.name for path in folder.iterdir()] == ["run.json"]
    assert (folder / "run.json").read_text() == "{}"


@pytest.mark.usefixtures("prefect_url")
@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_dies_leaves_what_was_found_and_the_same_command_goes_on(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, capsys: Printed, way: str
) -> None:
    server.abilities = Abilities(decisions=way == "decisions")
    more = ["--provider-batch"] if way == "batch" else []
    assert discover(dataset, server.base_url, tmp_path / "whole", *more) == 0
    whole = json.loads((tmp_path / "whole" / "run.json").read_text())
    enough = len(server.requests) // 4  # before the last feature is found; the later half asks how far a batch is
    server.requests.clear()
    server.book.clear()
    server.batches.made.clear()
    server.answers_left = enough
    assert discover(dataset, server.base_url, tmp_path / "run", *more) == 6
    line = the_only_error(capsys)
    assert "check that the server runs" in line
    assert f"what was found so far is in {tmp_path / 'run'}, and the same command goes on from there" in line
    found = json.loads((tmp_path / "run" / "run.json").read_text())
    assert found["stopped_because"] == "oracle-unavailable"
    assert 0 < found["features"] < whole["features"]
    labels = pd.read_csv(tmp_path / "run" / "labels.csv")
    assert len(labels.columns) == 1 + found["features"]
    assert "the oracle could not be asked any more" in (tmp_path / "run" / "report.html").read_text()
    down = server.count(CHAT) + server.count(DECISIONS) + server.count(BATCHES)
    assert discover(dataset, server.base_url, tmp_path / "run", *more) == 6
    assert server.count(CHAT) + server.count(DECISIONS) + server.count(BATCHES) <= down + 40
    assert json.loads((tmp_path / "run" / "run.json").read_text())["features"] == found["features"]
    server.answers_left = None
    assert discover(dataset, server.base_url, tmp_path / "run", *more) == 0
    for name in ("labels.csv", "features.csv"):
        columns = ["name", "positives"] if name == "features.csv" else None
        expected, got = (pd.read_csv(tmp_path / folder / name) for folder in ("whole", "run"))
        pd.testing.assert_frame_equal(
            expected[columns] if columns else expected, got[columns] if columns else got, check_dtype=False
        )
    with Store.open(f"sqlite:///{tmp_path / 'run.sqlite'}") as store:
        spent, reserved = store.runs.spent(found["scope"])
    assert reserved == 0
    assert spent >= server.spent(parse_price(PRICE))
    capsys.readouterr()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the half minute for which an enrichment waits for a server to come back."""
    monkeypatch.setattr(label_batch, "retry_delay_seconds", [0, 0])


@pytest.mark.usefixtures("prefect_url", "impatient")
def test_the_summary_of_an_enrichment_agrees_with_the_books_where_a_batch_was_tried_again(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, capsys: Printed
) -> None:
    oracle = openai(server.base_url).replace("attempts=2", "attempts=1") + "&grouping=feature&concurrency=1"
    wanted = ["--features", "; ".join(WORDS), "--oracle", oracle]
    server.script(LABELS, [*[None] * 5, "503", *[None] * 8, "cut"])  # the first requests are small
    assert main(["enrich", str(dataset), *wanted, *places(tmp_path / "table"), "--yes", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["stopped_because"], summary["added"]) == ("done", 16)
    assert (summary["paid_calls"], summary["cached_calls"]) == (16 * len(WORDS), 0), "each label was paid for once"
    with Store.open(f"sqlite:///{tmp_path / 'table.sqlite'}") as store:
        spent, reserved = store.runs.spent(store.runs.overview()[0]["scope"])
        booked = store.costs.lines("table")
    assert summary["unknown_calls"] == sum(row.unknown_calls for row in booked) == 1, "one request, cut in the middle"
    assert round(summary["cost_usd"] * MICRO) == sum(row.paid for row in booked)
    assert (round((summary["cost_usd"] + summary["unknown_usd"]) * MICRO), 0) == (spent, reserved)
    assert server.spent(parse_price(PRICE)) <= spent


@pytest.mark.usefixtures("prefect_url", "impatient")
def test_a_server_that_dies_in_an_enrichment_leaves_a_table_of_what_it_answered(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, capsys: Printed
) -> None:
    oracle = openai(server.base_url) + "&grouping=feature"
    wanted = ["--features", "; ".join(f"{word}: It is about a {word}." for word in WORDS), "--oracle", oracle]
    command = ["enrich", str(dataset), *wanted, *places(tmp_path / "table"), "--yes"]
    answered = len(WORDS) - 1  # so that no example has all its labels, whichever come first
    server.answers_left = 3 + answered  # whether it is there, what it can do, then labels of four examples each
    assert main(command) == 6
    line = the_only_error(capsys)
    assert f"what was found so far is in {tmp_path / 'table'}, and the same command goes on from there" in line
    summary = json.loads((tmp_path / "table" / "enrich.json").read_text())
    assert (summary["stopped_because"], summary["partial"], summary["cost_usd"] > 0) == (
        "oracle-unavailable",
        True,
        True,
    )
    partial = pd.read_parquet(tmp_path / "table" / "labels.parquet").set_index("id")
    assert partial[WORDS].notna().sum().sum() == answered * 4, "all that was answered, and nothing else"
    assert partial[WORDS].isna().any(axis=1).all()
    server.answers_left, paid = None, len(server.book)
    assert main(command) == 0
    assert len(server.book) - paid == 16 * len(WORDS) // 4 - answered, "what is missing is asked, and nothing twice"
    whole = pd.read_parquet(tmp_path / "table" / "labels.parquet").set_index("id")
    assert (len(whole), whole[WORDS].isna().sum().sum()) == (16, 0)
    known = partial[WORDS].notna()
    assert (whole.loc[partial.index, WORDS].where(known) == partial[WORDS]).where(known, True).all(axis=None)
    assert not json.loads((tmp_path / "table" / "enrich.json").read_text())["partial"]
    capsys.readouterr()


@pytest.mark.usefixtures("prefect_url")
def test_a_server_that_dies_in_a_comparison_leaves_a_page_that_says_what_is_missing(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, capsys: Printed
) -> None:
    ids = pd.read_csv(dataset)["id"]
    said = [
        (name, word, who, row % 2) for row, name in enumerate(ids) for word in WORDS for who in ("Ann", "Bob", "Eve")
    ]
    people = write_votes(tmp_path / "votes.csv", said)
    model_by_feature = openai(server.base_url) + "&grouping=feature"
    command = ["compare", str(dataset), "--oracles", model_by_feature, people, "--votes", "1,3", "--yes"]
    command += ["--comparisons", "2", "--draws", "100", *places(tmp_path / "compared")]
    server.answers_left = 3 + 2 + 5  # whether it is there, what it can do, comparisons, labels of four examples each
    assert main(command) == 6
    line = the_only_error(capsys)
    assert f"what was found so far is in {tmp_path / 'compared'}, and the same command goes on from there" in line
    content = json.loads((tmp_path / "compared" / "comparison.json").read_text())
    assert content["partial"]
    model, others = content["oracles"]
    assert (model["votes"], others["votes"]) == (20, 16 * len(WORDS) * 3)
    assert "cannot be reached" in model["stopped"]
    page = next((tmp_path / "compared").glob("*.html")).read_text()
    assert f"Partial: openai:gpt-4o-mini gave 20 of {16 * len(WORDS)} votes" in page
    server.answers_left = None
    assert main(command) == 0
    content = json.loads((tmp_path / "compared" / "comparison.json").read_text())
    assert (content["partial"], content["oracles"][0]["votes"]) == (False, 16 * len(WORDS))
    assert "Partial" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url", "impatient")
def test_a_nightly_flow_that_is_tried_again_goes_on_from_the_partial_table(
    server: FakeOpenAI, dataset: Path, tmp_path: Path
) -> None:
    settings = EnrichSettings(
        dataset=str(dataset),
        features="; ".join(WORDS),
        oracle=openai(server.base_url) + "&grouping=feature&concurrency=1",
        store=str(tmp_path / "table.sqlite"),
        out=str(tmp_path / "table"),
    )

    def come_back() -> None:
        while not (tmp_path / "table" / "enrich.json").exists():
            time.sleep(0.05)
        server.answers_left = None

    server.answers_left = 2 + 5
    threading.Thread(target=come_back, daemon=True).start()
    flow = nightly_flow.with_options(retry_delay_seconds=1)
    summary = run_flow(flow, settings, Caller()).to_json()
    assert (summary["stopped_because"], summary["version"], summary["rows"]) == ("done", 2, 16)
    with Store.open(f"sqlite:///{tmp_path / 'table.sqlite'}") as store:
        assert [run["status"] for run in store.runs.overview()] == ["done", "oracle-unavailable"]
        assert sum(row.paid_calls for row in store.costs.lines() if row.kind == "label") == 16 * len(WORDS)
