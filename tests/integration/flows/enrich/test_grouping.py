"""How labels travel: one picture with all features in one request costs a fraction of one request per label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.fake_openai.mind import COLOURS
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings

FEATURES = [*COLOURS, *(f"thing number {number}" for number in range(20 - len(COLOURS)))]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(FakeModel(tuple(FEATURES))) as running:
        yield running


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(12):
        colour = list(COLOURS.values())[number % len(COLOURS)]
        Image.new("RGB", (256 + number, 256), colour).save(folder / f"{number}.png")
    return folder


def enriched(server: FakeOpenAI, pictures: Path, name: str, options: str) -> tuple[dict[str, Any], pd.DataFrame]:
    out = pictures.parent / name
    table = pictures.parent / "features.csv"
    pd.DataFrame({"name": FEATURES, "definition": [f"The picture shows {one}." for one in FEATURES]}).to_csv(table)
    settings = EnrichSettings(
        dataset=str(pictures),
        features=str(table),
        oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&{options}",
        store=str(pictures.parent / f"{name}.sqlite"),
        out=str(out),
    )
    summary = enrich_with(settings).to_json()
    return summary, pd.read_parquet(out / "labels.parquet").set_index("id")[FEATURES].sort_index()


def test_one_picture_with_all_features_is_cheaper(server: FakeOpenAI, pictures: Path) -> None:
    alone, labels_alone = enriched(server, pictures, "alone", "grouping=none")
    together, labels_together = enriched(server, pictures, "together", "grouping=auto")
    assert labels_together.equals(labels_alone)
    assert set(labels_alone.to_numpy().ravel()) == {0, 1}
    labels = labels_alone.size
    each = [summary["cost_usd"] / labels for summary in (alone, together)]
    assert each[0] > 1.5 * each[1], "this server counts no tiles: the price is that of words"
