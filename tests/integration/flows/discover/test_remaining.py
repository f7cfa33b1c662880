"""The plan of a discovery that pays by the token: a working set is compared, everything else is labelled at the end,
all features of an example together."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest

from tests.support.fake_openai import CHAT, DECISIONS, Abilities, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, texts_table
from tests.support.fake_openai.mind import read_page
from twothirds.flows.cli.options import read_options
from twothirds.flows.discover.findings import StopReason
from twothirds.flows.discover.outcome import Outcome
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import WORKING_SET, DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.oracle import MICRO, Traits
from twothirds.models.prices import parse_price
from twothirds.store import Store

PRICE = "0.15,0.60"
EXAMPLES = WORKING_SET + 30
QUERIES = 5


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return texts_table(tmp_path, EXAMPLES)


def oracle(server: FakeOpenAI, more: str = "") -> str:
    return f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}{more}"


def discovered(server: FakeOpenAI, dataset: Path, name: str = "run", **changes: Any) -> Outcome:
    given: dict[str, Any] = {
        "oracle": oracle(server),
        "queries": QUERIES,
        "store": str(dataset.parent / "store.sqlite"),
    }
    settings = DiscoverSettings(dataset=str(dataset), out=str(dataset.parent / name), **(given | changes))
    return run_discovery(prepare(settings), run_id=str(uuid4()))


def labels_of(dataset: Path, name: str = "run") -> pd.DataFrame:
    return pd.read_csv(dataset.parent / name / "labels.csv", index_col="id").sort_index(axis=1)


def truth(dataset: Path, columns: Any) -> pd.DataFrame:
    texts = pd.read_csv(dataset, index_col="id")["text"]
    return pd.DataFrame({name: texts.str.contains(name).astype(int) for name in columns})


def booked(dataset: Path) -> int:
    with Store.open(str(dataset.parent / "store.sqlite")) as opened:
        assert opened.check.problems() == []
        return sum(line.paid + line.unknown for line in opened.costs.lines())


def labels_asked(server: FakeOpenAI) -> list[tuple[int, int]]:
    """Examples and features of each request for labels."""
    pages = [read_page(body["messages"]) for body in server.bodies(CHAT)]
    return [(len(page.examples), len(page.features)) for page in pages if page.asks_labels]


def test_a_working_set_is_compared_and_all_are_labelled_in_whole_rows(server: FakeOpenAI, dataset: Path) -> None:
    outcome = discovered(server, dataset)
    assert (outcome.settings.elicit_on, outcome.settings.label_rest) == (WORKING_SET, True)
    assert len(outcome.rows) == WORKING_SET
    labels = labels_of(dataset)
    assert set(labels) == set(WORDS)
    assert labels.equals(truth(dataset, labels.columns))
    asked = labels_asked(server)
    assert {features for _, features in asked} == {len(WORDS)}
    assert sum(examples for examples, _ in asked) == EXAMPLES, "each is sent once"
    assert booked(dataset) == outcome.crowd.ledger.cost == server.spent(parse_price(PRICE))


@pytest.mark.parametrize(
    "changes",
    [
        {"oracle": "FREE"},
        {"oracle": "PAID&grouping=none"},  # nothing is saved by rows
        {"oracle": "PAID&grouping=feature"},
        {"strategy": "adaptive-triple"},  # the paper's
        {"elicit_on": EXAMPLES},
    ],
)
def test_all_are_compared_where_rows_save_nothing_or_it_was_said(
    server: FakeOpenAI, dataset: Path, changes: dict[str, Any]
) -> None:
    free = oracle(server).replace(PRICE, "0,0")
    texts = {"oracle": changes.get("oracle", "PAID").replace("PAID", oracle(server)).replace("FREE", free)}
    prepared = prepare(
        DiscoverSettings(dataset=str(dataset), store=str(dataset.parent / "s.sqlite"), **changes | texts)
    )
    assert len(prepared.rows) == EXAMPLES
    assert not prepared.remaining
    assert not prepared.settings.label_rest


def test_above_five_thousand_the_others_are_labelled_on_request_only() -> None:
    def planned(n: int, **changes: Any) -> tuple[int | None, bool]:
        labels = Traits("paid", shares_rows=True)
        settings = DiscoverSettings(dataset="d", oracle="openai:m", **changes).resolved(n, labels)
        return settings.elicit_on, settings.label_rest

    assert planned(WORKING_SET) == (None, False)
    assert planned(5_000) == (WORKING_SET, True)
    assert planned(5_001) == (WORKING_SET, False)
    assert planned(5_001, label_rest=True) == (WORKING_SET, True)
    assert planned(5_001, strategy="tagging") == (2_000, False)
    assert planned(400, elicit_on=50) == (50, False)
    assert planned(400, target="species") == (None, False)


def test_what_questions_find_is_labelled_together_and_an_example_is_sent_once(
    server: FakeOpenAI, dataset: Path
) -> None:
    outcome = discovered(server, dataset)
    found = len(outcome.progress.findings)
    assert found > 1
    asked = labels_asked(server)
    assert {features for _, features in asked} == {found}
    assert sum(examples for examples, _ in asked) == EXAMPLES


def test_a_run_goes_on_as_it_began(server: FakeOpenAI, dataset: Path) -> None:
    def resumed(config: Path) -> Outcome:
        return run_discovery(prepare(read_options({"config": str(config)}, DiscoverSettings)), run_id=str(uuid4()))

    first = discovered(server, dataset)
    again = resumed(dataset.parent / "run" / "run.json")
    assert (again.settings, again.profile) == (first.settings, first.profile)
    assert again.crowd.ledger.cost == 0 < first.crowd.ledger.cost


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("way", "votes"),
    [
        *[("chat", 3), ("decisions", 1), ("batch", 1)],
        *(pytest.param(way, votes, marks=SLOW) for way, votes in (("chat", 1), ("decisions", 3), ("batch", 3))),
    ],
)
def test_labels_are_the_same_whatever_the_plan(server: FakeOpenAI, dataset: Path, way: str, votes: int) -> None:
    """For an oracle whose answer does not depend on what is asked beside it."""
    server.abilities = Abilities(decisions=way == "decisions")
    patient = oracle(server, "&batch_poll=0.01&batch_wait=60")
    batch = {"oracle": patient, "provider_batch": way == "batch", "votes": votes}
    discovered(server, dataset, "plan", **batch)
    whole = discovered(server, dataset, "whole", **batch | {"elicit_on": EXAMPLES})
    by_feature = batch | {"oracle": f"{patient}&grouping=feature", "elicit_on": 12, "label_rest": True}
    discovered(server, dataset, "columns", **by_feature)
    assert {kind: server.count(kind) > 1 for kind in (DECISIONS,)} == {DECISIONS: way == "decisions"}
    assert not whole.remaining
    plan = labels_of(dataset, "plan")
    for name in ("whole", "columns"):
        other = labels_of(dataset, name)
        shared = plan.columns.intersection(other.columns)
        assert len(shared) >= 3
        assert plan[shared].equals(other[shared])
    assert plan.equals(truth(dataset, plan.columns))


def test_an_enrichment_with_the_features_found_asks_nothing_again(server: FakeOpenAI, dataset: Path) -> None:
    discovered(server, dataset)
    before = server.count(CHAT)
    settings = EnrichSettings(
        dataset=str(dataset),
        features=str(dataset.parent / "run"),
        oracle=oracle(server),
        store=str(dataset.parent / "store.sqlite"),
        out=str(dataset.parent / "enriched"),
    )
    assert enrich_with(settings).added == EXAMPLES
    assert server.count(CHAT) == before


def test_a_budget_that_ends_among_the_others_leaves_what_was_labelled_and_is_taken_up(
    server: FakeOpenAI, dataset: Path
) -> None:
    small = oracle(server, "&labels_per_request=5&concurrency=1")  # one row of five features at a time
    compared = discovered(server, dataset, oracle=small, elicit_on=WORKING_SET)
    budget = Decimal(compared.crowd.ledger.cost + 900) / 1_000_000
    short = discovered(server, dataset, oracle=small, budget=budget)
    assert short.progress.stopped is StopReason.BUDGET
    assert short.crowd.ledger.cost <= 900
    rows = [short.dataset.examples[row].id for row in short.rows]
    partial = labels_of(dataset)
    assert partial.loc[rows].notna().all(axis=None)
    known = partial.drop(index=rows).notna()
    assert known.any(axis=None)
    assert not known.all(axis=None)
    done = discovered(server, dataset, oracle=small, budget=Decimal(1))
    assert done.progress.stopped is StopReason.QUERIES
    assert labels_of(dataset).equals(truth(dataset, partial.columns))
    assert booked(dataset) == server.spent(parse_price(PRICE))
    assert sum(examples * features for examples, features in labels_asked(server)) == partial.size  # none twice


def test_a_server_that_goes_down_among_the_others_leaves_what_was_labelled(server: FakeOpenAI, dataset: Path) -> None:
    rows = oracle(server, "&labels_per_request=5&concurrency=1&attempts=1")
    discovered(server, dataset, "whole", oracle=rows, store=str(dataset.parent / "other.sqlite"))
    requests = server.count(CHAT)
    server.requests.clear()
    server.answers_left = requests - 12
    outcome = discovered(server, dataset, oracle=rows)
    assert outcome.progress.stopped is StopReason.UNAVAILABLE
    partial = labels_of(dataset)
    assert 0 < int(partial.isna().any(axis=1).sum()) <= 30
    server.answers_left = None
    assert discovered(server, dataset, oracle=rows).progress.stopped is StopReason.QUERIES
    assert labels_of(dataset).equals(truth(dataset, partial.columns))


@pytest.mark.parametrize("way", ["labeller", "spot_check", "escalate"])
def test_a_mixed_crowd_labels_the_others_in_rows_too(server: FakeOpenAI, dataset: Path, way: str) -> None:
    columns = truth(dataset, WORDS)
    columns.to_csv(dataset.parent / "truth.csv")
    mixed: dict[str, dict[str, Any]] = {
        "labeller": {"oracle": "simulated", "labeller": oracle(server)},
        "spot_check": {"spot_check": 0.05, "people": "simulated"},
        "escalate": {"escalate": 0.1, "people": "simulated", "votes": 3},
    }
    outcome = discovered(server, dataset, **mixed[way])
    assert len(outcome.rows) == WORKING_SET
    labels = labels_of(dataset)
    assert (25, labels.shape[1]) in labels_asked(server)
    assert labels.shape[1] > 2
    assert labels.equals(columns[labels.columns])
    if way == "spot_check":
        assert json.loads((dataset.parent / "run" / "run.json").read_text())["people"]["checked"] > 0


def test_the_cost_of_questions_and_labels_is_all_that_was_paid(server: FakeOpenAI, dataset: Path) -> None:
    outcome = discovered(server, dataset)
    summary = outcome.summary()
    assert sum(summary.booked_usd.values()) == pytest.approx(outcome.crowd.ledger.cost / MICRO)
    comparisons = sum(answer.cost for _, answer in outcome.progress.asked)
    checks = sum(answer.cost for finding in outcome.progress.findings for answer in finding.checks)
    assert summary.booked_usd["questions"] == pytest.approx((comparisons + checks) / MICRO)
    assert all(usd > 0 for usd in summary.booked_usd.values())
