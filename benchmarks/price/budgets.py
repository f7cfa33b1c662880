"""What a budget of a few requests buys, beside a large one.

    python -m benchmarks.price.budgets [--requests 2 5 20 50] [--features 33]

Enrichments of the shipped faces against the lifelike server. A budget of N requests is N times what a request has cost
with a large budget. What the budget did not cover in the end is left unspent."""

from __future__ import annotations

import argparse
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

from benchmarks.cases import table
from benchmarks.machine import heading
from benchmarks.price.data import common_columns, feature_list
from flows.enrich.flow import enrich_with
from flows.enrich.settings import EnrichSettings
from models.prices import parse_price
from sources import load_dataset
from store import Store
from tests.support.fake_openai import Habits, LifelikeServer

FACES, PRICE, SEED = "datasets/faces", "0.15,0.60,0.075", 1  # gpt-4o-mini's
HEAD = ["budget, requests", "USD", "booked", "labels", "pictures sent", "labels per USD booked", "labels per USD of it"]


def bought(features: int, budget: Decimal) -> tuple[int, int, int, int]:
    """Labels, pictures sent, requests, and micro-dollars booked."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LifelikeServer(load_dataset(FACES), Habits(slow=0.0), price=parse_price(PRICE), seed=SEED) as server,
    ):
        place, store = Path(folder), f"{folder}/store.sqlite"
        feature_list(place / "features.csv", common_columns(Path(FACES) / "truth.csv", features))
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}&retry_delay=0.001"
        terms = {"oracle": oracle, "store": store, "out": f"{folder}/out", "budget": budget}
        enrich_with(EnrichSettings(dataset=FACES, features=str(place / "features.csv"), **terms))
        with Store.open(store) as kept:
            lines = kept.costs.lines()
            labels = sum(line.paid_calls for line in lines if line.kind == "label")
            booked = sum(line.paid + line.unknown for line in lines)
        summary = server.summary()
        assert summary["usd"] * 1e6 <= booked + 1, "all that was charged is booked"
        return labels, summary["pictures_sent"], summary["charged_requests"], booked


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.price.budgets")
    parser.add_argument("--requests", type=int, nargs="+", default=[2, 5, 20, 50])
    parser.add_argument("--features", type=int, default=33)
    chosen = parser.parse_args(arguments)
    print(heading(f"python -m benchmarks.price.budgets {' '.join(arguments)}".strip(), SEED))
    labels, sent, requests, spent = bought(chosen.features, Decimal(50))
    usual = labels / spent
    rows = [["large", "50", f"{spent / 1e6:.4f}", f"{labels:,}", f"{sent:,}", "100%", ""]]
    for count in chosen.requests:
        budget = round(spent / requests * count)
        labels, sent, _, booked = bought(chosen.features, Decimal(budget) / 1_000_000)
        assert booked <= budget
        shares = [labels / booked / usual if booked else 0.0, labels / budget / usual]
        amounts = [f"{budget / 1e6:.4f}", f"{booked / 1e6:.4f}", f"{labels:,}", f"{sent:,}"]
        rows.append([str(count), *amounts, *(f"{share:.0%}" for share in shares)])
    print(f"\n{table(HEAD, rows)}")


if __name__ == "__main__":
    main(sys.argv[1:])
