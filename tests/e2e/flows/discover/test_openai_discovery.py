"""A whole discovery on pictures against an OpenAI-compatible server, as it is typed; its costs and its secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from flows.__main__ import main
from flows.estimate import LIKELY
from models.prices import Price, parse_price
from tests.support.fake_openai import CHAT, FakeModel, FakeOpenAI
from tests.support.made import few_faces
from tests.support.slow import slow

KEY = "sk-marked-8c1f27d0"
PRICE = "0.10,0.40"
FEW = 30


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return few_faces(tmp_path_factory.mktemp("pictures") / "few", FEW)


@pytest.fixture
def server(faces: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    truth = pd.read_csv(faces / "truth.csv").set_index("id")
    mind = FakeModel(truth.columns)
    for row in pd.read_csv(faces / "metadata.csv").itertuples():
        traits = [trait for trait in truth.columns if truth.at[row.id, trait] == 1]
        mind.learn(traits, (faces / str(row.file_name)).read_bytes())
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeOpenAI(mind) as running:
        yield running


def discover(faces: Path, server: FakeOpenAI, folder: Path, *more: str, parameters: str = "") -> int:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}{parameters}"
    places = ["--store", str(folder / "store.sqlite"), "--out", str(folder / "run")]
    return main(["discover", str(faces), "--oracle", oracle, "--queries", "8", "--yes", *places, *more])


def price() -> Price:
    return parse_price(PRICE)


@pytest.mark.usefixtures("prefect_url")
@pytest.mark.parametrize("way", ["chat", *slow("provider-batch")])
def test_features_are_found_and_every_token_is_booked(
    faces: Path, server: FakeOpenAI, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    more = ["--provider-batch"] if way == "provider-batch" else []
    parameters = "&batch_poll=0.05" if more else ""
    assert discover(faces, server, tmp_path, *more, parameters=parameters) == 0
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["features"] >= 5
    assert summary["truth"]["mean_balanced_accuracy"] == 1.0
    paid = round(summary["cost_usd"] * 1e6)
    assert paid == pytest.approx(server.spent(price()), abs=len(server.book))  # each reply is rounded up once
    assert any(charge.path == "batch" for charge in server.book) == bool(more)
    asked = len(server.requests)
    assert discover(faces, server, tmp_path, *more, parameters=parameters) == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["paid_calls"] == 0
    assert not any(request.path == CHAT for request in server.requests[asked:])
    capsys.readouterr()


def test_an_estimate_sends_nothing_and_says_calls_tokens_and_dollars(
    faces: Path, server: FakeOpenAI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}"
    store = ["--store", str(tmp_path / "store.sqlite")]
    assert main(["estimate", str(faces), "--oracle", oracle, "--queries", "8", *store, "--json"]) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert server.requests == []
    each = FEW + 1  # labels, and whether it means what a known feature means
    assert estimate["calls"] == 8 * (1 + 3 * each), "up to three features a question"
    in_rows = 8 + FEW  # every picture once, with the features of all questions
    assert 0 < estimate["requests"] - in_rows <= 8 * 3 * LIKELY.doubted
    assert 0 < estimate["usd_about"] < estimate["usd"]
    assert estimate["input_tokens"] > estimate["output_tokens"] > 0
    assert main(["estimate", str(faces), "--oracle", oracle, "--queries", "2", *store]) == 0
    assert "tokens in" in capsys.readouterr().out


def test_a_key_on_the_command_line_is_refused_and_not_repeated(faces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", str(faces), "--oracle", f"openai:gpt-4o-mini?api_key={KEY}"]) == 2
    printed = capsys.readouterr()
    assert "OPENAI_API_KEY" in printed.err
    assert KEY not in printed.out + printed.err


def test_the_batch_api_is_for_those_who_have_one(faces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", str(faces), "--oracle", "simulated", "--provider-batch"]) == 2
    assert "--provider-batch is for openai:MODEL" in capsys.readouterr().err
