"""A discovery in which a local model answers everything, on a real store."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.tiny_models import save_tiny_llava
from twothirds.discovery.strategies import make_strategy
from twothirds.flows.discover.findings import Progress
from twothirds.flows.discover.loop import Asker, Limits, Loop
from twothirds.models.cached import CachedOracle
from twothirds.models.labelling import LabelBatch, collect_answers, collect_votes
from twothirds.models.ledger import RunLedger
from twothirds.models.local.oracle import LocalVlmConfig, LocalVlmOracle
from twothirds.models.oracle import Feature
from twothirds.sources.dataset import Example, picture_at
from twothirds.store import Store

RED_HAT = '{"name": "red hat", "definition": "A hat that is red.", "have": "A and B"}'


@pytest.fixture
def pictures(tmp_path: Path) -> list[Example]:
    examples = []
    for number, colour in enumerate(("red", "green", "blue", "white", "black", "yellow")):
        path = tmp_path / f"{colour}.png"
        Image.new("RGB", (40, 30 + number), colour).save(path)
        examples.append(picture_at(path, colour))
    return examples


def discover(folder: Path, store: Store, run: str, pictures: list[Example]) -> tuple[Progress, CachedOracle]:
    config = LocalVlmConfig(model=str(folder), max_new_tokens=8, least_mass=0.0, price_per_hour=36_000.0)
    store.runs.begin(run, "scope", name="t", flow="test", dataset="d", oracle="o", settings={})
    recorded = CachedOracle(LocalVlmOracle(config), RunLedger(store, run, "scope"))
    strategy = make_strategy("adaptive-triple", len(pictures), np.random.default_rng(0))
    asker = Asker(
        partial(collect_answers, recorded),
        lambda features: collect_votes(recorded, LabelBatch(pictures, features, 3)),
    )
    loop = Loop(strategy, pictures, Limits(2), asker)
    return loop.run(), recorded


def test_a_discovery_is_booked_and_run_again_for_nothing(tmp_path: Path, pictures: list[Example]) -> None:
    folder = save_tiny_llava(tmp_path / "speaker", says=RED_HAT)
    with Store.open(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        first, paying = discover(folder, store, "first", pictures)
        assert [finding.feature for finding in first.findings] == [Feature("red hat", "A hat that is red.")]
        assert store.runs.spent("scope") == (paying.ledger.cost, 0)
        assert paying.ledger.cost > 0
        again, repeating = discover(folder, store, "again", pictures)
    assert (repeating.ledger.paid_calls, repeating.ledger.cost) == (0, 0)
    assert [finding.labels.tolist() for finding in again.findings] == [f.labels.tolist() for f in first.findings]
