"""Figures of runs for Prometheus: what the books say, on both databases, with nothing in them that is not for all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.fake_openai import FakeOpenAI
from tests.support.growing_worlds import World, night
from twothirds.flows.cli.app import main
from twothirds.flows.endings import ENDINGS
from twothirds.store import Sample, Store, render
from twothirds.store.metrics import METRICS

ROOT = Path(__file__).parents[3]
LINE = re.compile(r'^twothirds_(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)$')


def parsed(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Every line is a sample or says what one is."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in text.splitlines():
        if not line.startswith("# HELP ") and not line.startswith("# TYPE "):
            sample = LINE.match(line)
            assert sample, line
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2]))
            found.setdefault(sample[1], []).append((labels, float(sample[3])))
    return found


def total(found: dict[str, list[tuple[dict[str, str], float]]], metric: str, **chosen: str) -> float:
    return sum(value for labels, value in found[metric] if chosen.items() <= labels.items())


def test_the_figures_are_those_of_the_books(tmp_path: Path, store_url: str) -> None:
    world = World(tmp_path / "world", 20)
    oracle = "simulated?price=0.001&refuse=0.2"
    first = night(world, store=store_url, oracle=oracle)
    world.add(5)
    second = night(world, store=store_url, oracle=oracle)
    with Store.open(store_url) as store:
        found = parsed(render(store.metrics.samples()))
        booked = store.costs.lines()
    assert total(found, "questions_total", source="asked") == sum(one.paid_calls for one in booked)
    assert total(found, "questions_total", source="kept") == sum(one.cached_calls for one in booked)
    dollars = first["cost_usd"] + second["cost_usd"]
    assert total(found, "cost_dollars_total") == pytest.approx(dollars)
    assert len(found["run_active"]) == 2
    assert total(found, "run_active") == 0
    unusable = [one["unusable"] for one in (first, second)]
    refused = sum(one["unusable_comparisons"] + one["unusable_labels"] for one in unusable)
    assert total(found, "unusable_answers_total") == refused > 0
    assert len(found["drift_moved_features"]) == 2
    [(labels, _)] = found["last_success_timestamp_seconds"]
    assert labels == {"flow": "enrich", "dataset": "world"}


def test_requests_are_timed_and_nothing_private_is_exported(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    world = World(tmp_path / "world", 6)
    oracle = "openai:gpt-4o-mini?price=0.15,0.60&concurrency=1&retry_delay=0.01"
    night(world, oracle=oracle, store=str(tmp_path / "store.sqlite"), features="red: It is red.", budget="1")
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        text = render(store.metrics.samples())
    found = parsed(text)
    assert total(found, "request_seconds_count") == total(found, "request_seconds_bucket", le="+Inf") > 0
    assert total(found, "tokens_total", direction="input") > 0
    assert total(found, "retries_total") == 0
    for private in ("secret", server.base_url, str(tmp_path), "text of number", "It is red", str(dataset)):
        assert private not in text


def test_hostile_names_stay_in_their_quotes() -> None:
    text = render([Sample("exit_status", {"dataset": 'a"} 1\nb\\ \x1b[31m{'}, 3)])
    assert total(parsed(text), "exit_status") == 3
    assert "\x1b" not in text


def test_a_nightly_command_writes_its_file_however_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twothirds.prom"
    words = ["enrich", str(tmp_path / "gone"), "--features", "red", "--oracle", "simulated", "--log", "json"]
    store = ["--store", str(tmp_path / "store.sqlite")]
    assert main([*words, *store, "--metrics", str(file)]) == 5
    assert total(parsed(file.read_text()), "exit_status", flow="enrich", dataset="gone") == 5
    assert oct(file.stat().st_mode)[-3:] == "644"
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == [file.name]
    [line] = map(json.loads, capsys.readouterr().err.splitlines()[-1:])
    assert (line["level"], line["status"]) == ("error", 5)
    assert line["message"].startswith("there is no data set")
    assert main([*words, *store, "--metrics", str(tmp_path / "no" / "x.prom")]) == 2


def test_the_dashboard_shows_every_figure_and_no_other() -> None:
    board = json.loads((ROOT / "docs" / "grafana.json").read_text())
    shown = set(re.findall(r"twothirds_(\w+?)(?=[^\w])", json.dumps(board)))
    named = {one.removesuffix("_bucket") for one in shown}
    hidden = {"run_ended_timestamp_seconds"}
    assert named == set(METRICS) - hidden
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_page_names_every_event_of_the_alerts() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    for event in (*(one.event for one in ENDINGS), "twothirds.drift.moved", "twothirds.answers.refused"):
        assert f"`{event}`" in page
