"""Predicted labels where other parts meet them: a paid model server, people, PostgreSQL, a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.fake_openai import CHAT, Abilities
from tests.support.fake_openai.lifelike import Failings, LifelikeServer
from tests.support.growing_worlds import TellingWorld, night, table
from tests.support.people import TruthfulPerson
from tests.support.postgres import PostgresServer
from twothirds.models import AnswersPending
from twothirds.models.prices import parse_price
from twothirds.sources import load_dataset
from twothirds.store import Store

pytestmark = pytest.mark.usefixtures("sampling_number")

ROWS = 760
PRICE = parse_price("0.15,0.60,0.075")
ROOT = Path(__file__).resolve().parents[4]
KILLED = """
import json, sys
import twothirds.store.runs
from pathlib import Path
from tests.integration.flows.enrich.test_predicted_joints import world_of
from tests.support.growing_worlds import night
from tests.support.killed import kill_after
kill_after(int(sys.argv[2]))
twothirds.store.runs.new_sampling_number = lambda: "1"
print(json.dumps(night(world_of(Path(sys.argv[1])), agree=0.9)))
"""


def world_of(folder: Path) -> TellingWorld:
    return TellingWorld(folder, ROWS)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TellingWorld:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return world_of(tmp_path / "world")


def agreement(world: TellingWorld) -> dict[str, float]:
    """Of the predicted labels with the truth, by trait."""
    labels, true = table(world), pd.read_csv(world.folder / "truth.csv").set_index("id")
    found = {}
    for trait in world.traits:
        if f"{trait} (source)" in labels:
            here = labels[f"{trait} (source)"] == "predicted"
            found[trait] = float((labels[trait] == true[trait])[here].mean())
    return found


def test_with_a_lifelike_server_the_books_agree_and_what_is_predicted_is_not_sent(world: TellingWorld) -> None:
    habits = Failings(label_noise=0.01, slow=0.0)
    with LifelikeServer(load_dataset(world.spec), habits, price=PRICE) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075&retry_delay=0.01"
        whole = night(world, oracle=oracle, out=str(world.folder / "whole"), store=str(world.folder / "whole.sqlite"))
        full, asked = server.spent(PRICE), server.labels_asked
        summary = night(world, oracle=oracle, agree=0.9)
        spent = server.spent(PRICE) - full
        again = night(world, oracle=oracle, agree=0.9)
        assert server.spent(PRICE) - full == spent
    assert summary["predicted_labels"] > ROWS
    assert again["paid_calls"] == 0
    # Rows of a matrix that come back as prose are asked again: a few more than the labels that were wanted.
    assert server.labels_asked - asked < 1.3 * (3 * ROWS - summary["predicted_labels"])
    assert spent < 0.85 * full
    assert summary["cost_usd"] == pytest.approx(spent / 1e6, abs=2e-4)  # but for a probe, that `whole` may have paid
    assert whole["predicted_labels"] == 0
    assert all(share >= 0.88 for share in agreement(world).values())  # with the truth; the promise is the server's 0.9


def test_people_are_waited_for_a_few_times_and_never_asked_what_is_predicted(world: TellingWorld) -> None:
    stops, most, summary = 0, 9, dict[str, Any]()
    with Store.open(str(world.folder / "store.sqlite")) as store:
        person = TruthfulPerson(store.queue, "Ada", load_dataset(world.spec))
        asked = 0
        for _ in range(most + 2):
            try:
                summary = night(world, oracle="human", features="red: It is red.", agree=0.9)
                break
            except AnswersPending:
                stops += 1
            while answered := person.answer_page():
                asked += answered
    assert 2 <= stops <= most
    assert summary["predicted_labels"] + asked == ROWS
    assert summary["predicted_labels"] > 0
    assert agreement(world)["red"] >= 0.9


def test_on_postgresql_the_certificate_is_the_same(world: TellingWorld, postgres: PostgresServer) -> None:
    first = night(world, agree=0.9)
    address = postgres.fresh_schema()
    second = night(world, agree=0.9, store=address, out=str(world.folder / "other"))
    assert second["certificates"] == first["certificates"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(world.folder / "other" / "labels.parquet").set_index("id"), table(world)
    )


@pytest.mark.slow
def test_killed_for_good_it_goes_on_with_the_same_sample_classifiers_and_certificate(
    world: TellingWorld, tmp_path: Path
) -> None:
    undisturbed = night(world, agree=0.9)
    other = world_of(tmp_path / "other")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache 2"), "PYTHONPATH": str(ROOT)}

    def started(enough: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(other.folder), str(enough)]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def kept() -> int:
        with Store.open(str(other.folder / "store.sqlite")) as store:
            return sum(line.paid_calls for line in store.costs.lines())

    # Requests answered at the same moment are kept together: how much the first kill leaves to learn is chance.
    learned = undisturbed["paid_calls"] - sum(told["certificate"]["sampled"] for told in undisturbed["certificates"])
    for enough, among in ((learned // 3, range(1, learned + 1)), (learned + 1, range(learned + 1, 10**9))):
        assert started(enough - kept()).returncode == -signal.SIGKILL
        assert kept() in among  # while it learns, then while it certifies
        assert not (other.folder / "out" / "labels.parquet").exists()
    resumed = json.loads(started(10**9).stdout)
    assert resumed["certificates"] == undisturbed["certificates"]
    pd.testing.assert_frame_equal(table(other), table(world))
    with Store.open(str(other.folder / "store.sqlite")) as store:
        assert not store.check.problems()
    assert kept() == undisturbed["paid_calls"]


def test_a_cheaper_chat_model_tells_its_probabilities_and_is_certified_by_them(tmp_path: Path) -> None:
    world = world_of(tmp_path / "world")
    # With few errors answers alone certify nearly everything, and with many nothing is certified.
    with LifelikeServer(load_dataset(world.spec), Failings(label_noise=0.06, slow=0.0), price=PRICE) as server:
        cheap = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60,0.075&retry_delay=0.01"
        plain = night(world, cheap=cheap, agree=0.9, out=str(tmp_path / "plain"))
        sent = len(server.requests)
        with_logprobs = night(world, cheap=f"{cheap}&logprobs=true", agree=0.9)
    bodies = [request.json() for request in server.requests[sent:] if request.path == CHAT]
    assert all(body["logprobs"] is True and body["top_logprobs"] == 5 for body in bodies)
    assert not any("logprobs" in request.json() for request in server.requests[:sent] if request.body)
    assert with_logprobs["predicted_labels"] > plain["predicted_labels"] > 0
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert not store.check.problems()


def test_a_server_that_refuses_logprobs_is_asked_without(tmp_path: Path) -> None:
    world = TellingWorld(tmp_path / "world", 20)
    abilities = Abilities(unsupported=("logprobs", "top_logprobs"))
    with LifelikeServer(load_dataset(world.spec), Failings(slow=0.0), price=PRICE, abilities=abilities) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60&retry_delay=0.01&logprobs=true"
        assert night(world, oracle=oracle)["stopped_because"] == "done"
