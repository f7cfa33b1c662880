"""What a store keeps, by kind, and removing raw replies and idle runs on both databases: answers and sums stay."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Clock
from tests.support.filled_stores import SCOPE, labels, recorded
from tests.support.made import texts
from tests.support.store_steps import begin
from twothirds.flows.cli.app import main
from twothirds.flows.cli.store_check import check
from twothirds.models import CachedOracle, Feature, Label, Oracle, Question, RunLedger
from twothirds.models.keys import QuestionKeys
from twothirds.models.oracle import Meter, Reply, Request
from twothirds.store import Store

DAY = 86_400


def reply_to(question: Question) -> str:
    """Long, and unlike others, as replies are."""
    digests = (sha256(f"{question.content} {number}".encode()).hexdigest() for number in range(32))
    return " ".join(digests)[:2_000]


class Wordy:
    """An oracle whose replies are long."""

    def __init__(self, inner: Oracle) -> None:
        self._inner, self.identity, self.traits = inner, inner.identity, inner.traits
        self.plan, self.prepare = inner.plan, inner.prepare

    def send(self, requests: Iterable[Request], meter: Meter) -> Iterator[Reply]:
        for reply in self._inner.send(requests, meter):
            long = {at: replace(answer, raw=reply_to(answer.question)) for at, answer in reply.answers.items()}
            yield replace(reply, answers=long)


def wordy(store: Store, first: int, last: int) -> None:
    """Keep answers with long replies."""
    plain = recorded(store)
    asking = CachedOracle(Wordy(plain.oracle), RunLedger(store, plain.ledger.run_id, SCOPE))
    assert len(list(asking.ask(labels(last)[first:]))) == last - first


def said(store: Store, last: int = 6) -> list[dict[str, Any]]:
    """The answers to the first questions, whether they are kept in rows of their own or with others."""
    keys = [QuestionKeys(recorded(store).identity).of(one) for one in labels(last)]
    found = store.requests.answers(keys)
    return [found[key] for key in keys]


def test_sizes_are_reported_by_kind(store: Store) -> None:
    before = store.housekeeping.sizes()
    wordy(store, 0, 6)
    after = store.housekeeping.sizes()
    assert set(after) >= {"answers", "runs", "people", "other"}
    assert after["answers"] > before["answers"]
    found = check(store)
    assert found.replies == 6
    assert "6 answers have raw replies" in found.size_line


def test_old_replies_go_and_everything_else_stays(store: Store, clock: Clock) -> None:
    wordy(store, 0, 6)
    clock.now += 100 * DAY
    wordy(store, 6, 12)
    before, cutoff = said(store, 12), clock.now - 90 * DAY
    pages = list(store.housekeeping.replies(cutoff))
    assert sum(map(len, pages)) == 6
    for page in pages:
        store.housekeeping.remove_replies(page)
        store.housekeeping.remove_replies(page)  # as when it is tried again
    after = said(store, 12)
    assert [one["raw"] for one in after] == [""] * 6 + list(map(reply_to, labels(12)[6:]))
    assert [one | {"raw": ""} for one in after] == [one | {"raw": ""} for one in before]
    assert not any(store.housekeeping.replies(cutoff))
    assert check(store).problems == []
    assert all(answer.cached for answer in recorded(store).ask(labels(12)))


def test_labels_that_share_a_request_lose_their_reply_and_nothing_else(store: Store, clock: Clock) -> None:
    features = [Feature(f"feature {number}", "It has it.") for number in range(5)]
    asked = [Label(feature, example) for example in texts(400)[:3] for feature in features]
    plain = recorded(store)
    asking = CachedOracle(Wordy(plain.oracle), RunLedger(store, plain.ledger.run_id, SCOPE))
    assert len(list(asking.ask(asked))) == 15
    clock.now += 100 * DAY
    pages = [page for page in store.housekeeping.replies(clock.now - 90 * DAY) if page]
    assert sum(map(len, pages)) == 15
    for page in pages:
        store.housekeeping.remove_replies(page)
        store.housekeeping.remove_replies(page)
    assert check(store).problems == []
    again = list(recorded(store).ask(asked))
    assert all(answer.cached and not answer.raw for answer in again)


def test_only_runs_that_did_nothing_go(store: Store, clock: Clock) -> None:
    wordy(store, 0, 6)
    for name in ("idle", "young"):
        store.runs.end(begin(store, name, "other scope"), "done", {})
        clock.now += 50 * DAY
    begin(store, "still running", "other scope")
    found = store.housekeeping.idle_runs(clock.now - 90 * DAY)
    assert [one["run_id"] for one in found] == ["idle"]
    store.housekeeping.remove_runs([one["id"] for one in found])
    assert len(store.runs.overview()) == 3
    assert not store.housekeeping.idle_runs(clock.now - 90 * DAY)
    assert check(store).problems == []


def test_the_command_shows_first_and_removes_with_yes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, archive = tmp_path / "store.sqlite", tmp_path / "removed.jsonl.gz"
    clock = Clock(1_600_000_000.0)
    with Store.open(str(path), clock=clock) as store:
        wordy(store, 0, 400)
    large, place = path.stat().st_size, ["--store", str(path)]
    assert main(["store", "prune", *place]) == 0
    shown = capsys.readouterr().out
    assert "400 raw replies older than 90 days, 0.8 MB" in shown
    assert "nothing was changed" in shown
    assert main(["store", "check", *place]) == 0
    assert "400 answers have raw replies" in capsys.readouterr().out
    assert main(["store", "prune", *place, "--yes", "--archive", str(archive)]) == 0
    assert "removed" in capsys.readouterr().out
    assert path.stat().st_size < large / 2
    assert main(["store", "check", *place]) == 0
    assert "raw replies" not in capsys.readouterr().out
    lines = [json.loads(line) for line in gzip.decompress(archive.read_bytes()).splitlines()]
    assert len(lines) == 400
    assert {one["reply"]["raw"] for one in lines} == set(map(reply_to, labels(400)))
    assert main(["store", "prune", *place, "--yes", "--archive", str(archive)]) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert main(["store", "prune", *place, "--older", "0"]) == 2
