"""Examples that are a picture and a text: models and people see both, and every result keeps both."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.support.fake_openai import CHAT, FakeModel, FakeOpenAI
from tests.support.fake_openai.mind import COLOURS, read_page
from tests.support.heard import Heard
from tests.support.input_forms import archive
from tests.support.review_site import running_site
from twothirds.flows.compare.preparation import prepare_comparison
from twothirds.flows.compare.settings import CompareSettings
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.oracle import Feature, Label
from twothirds.reports.export.formats import export_run
from twothirds.reports.finished_run import Run
from twothirds.sources import load_dataset
from twothirds.store import Store

FRUITS = ("apple", "pear", "plum")


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(FakeModel([*FRUITS, *COLOURS])) as running:
        yield running


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Every colour with every fruit, in columns of other names; the last two rows are the same."""
    lines = ["No;Caption;File"]
    for number, (colour, fruit) in enumerate([(one, other) for one in ("red", "blue", "green") for other in FRUITS]):
        Image.new("RGB", (40, 30), COLOURS[colour]).save(tmp_path / f"{colour}.png")
        lines.append(f"{number};drawing of a {fruit};{colour}.png")
    lines.append("copy;drawing of a plum;green.png")
    (tmp_path / "fruit.csv").write_text("\n".join(lines))
    return tmp_path / "fruit.csv"


COLUMNS = {"id_column": "No", "text_column": "Caption", "image_column": "File"}


def settings(server: FakeOpenAI, table: Path, folder: Path, **changes: Any) -> DiscoverSettings:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1"
    places = {"store": str(folder / "store.sqlite"), "out": str(folder / "run")}
    return DiscoverSettings.model_validate(
        {"dataset": str(table), "oracle": oracle, "queries": 6, **places, **COLUMNS, **changes}
    )


def test_a_model_sees_both_and_the_copy_is_labelled_once(server: FakeOpenAI, table: Path, tmp_path: Path) -> None:
    heard = Heard()
    run_discovery(prepare(settings(server, table, tmp_path), heard.stream), run_id="one")
    assert "one example has the same content as another: each content is labelled once" in heard.said
    run = Run(tmp_path / "run")
    names = set(run.features["name"])
    assert names & set(FRUITS), "nobody can tell fruits apart without the text"
    assert names & set(COLOURS), "nor colours without the picture"
    assert (run.labels.loc["8"] == run.labels.loc["copy"]).all()
    asked: Counter[tuple[str | None, str, str]] = Counter()
    for page in (read_page(body["messages"]) for body in server.bodies(CHAT)):
        drawn = [one for one in page.examples if one.text and "drawing" in one.text]
        assert all(one.pictures for one in drawn)
        names_asked = [feature["name"] for feature in page.features.values()]
        asked.update((one.text, one.pictures[0], name) for one in drawn for name in names_asked)
    assert len(asked) > 9
    assert max(asked.values()) == 1


def test_resuming_costs_nothing_and_the_run_knows_its_columns(server: FakeOpenAI, table: Path, tmp_path: Path) -> None:
    run_discovery(prepare(settings(server, table, tmp_path)), run_id="one")
    before = server.count(CHAT)
    run_discovery(prepare(settings(server, table, tmp_path)), run_id="two")
    assert server.count(CHAT) == before
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {name: kept["settings"][name] for name in COLUMNS} == COLUMNS
    page = Run(tmp_path / "run").report().path.read_text(encoding="utf-8")  # reads the data set by what run.json says
    assert 'data-picture="0"' in page
    assert "drawing of a apple" in page
    assert "One example has the same content as another" in page
    assert "10 texts and pictures" in page


def test_exports_keep_the_text_and_the_picture(server: FakeOpenAI, table: Path, tmp_path: Path) -> None:
    run_discovery(prepare(settings(server, table, tmp_path, queries=2)), run_id="one")
    run = Run(tmp_path / "run")
    data = load_dataset(str(table), settings(server, table, tmp_path).columns)
    export_run(run, ["huggingface", "jsonl"], data, tmp_path / "exported")
    [parquet] = (tmp_path / "exported").rglob("*.parquet")
    first = pq.read_table(parquet).to_pylist()[0]
    assert first["text"] == "drawing of a apple"
    assert Image.open(io.BytesIO(first["image"]["bytes"])).size == (40, 30)


def test_people_see_both(table: Path, tmp_path: Path) -> None:
    data = load_dataset(str(table), settings_columns())
    with Store.open(str(tmp_path / "people.sqlite")) as store, running_site(store) as site:
        site.ask([Label(Feature("ripe"), data.examples[0])])
        visitor = site.visitor("ann")
        page = visitor.get().text
        assert "drawing of a apple" in page
        media = f"/media/{data.examples[0].digest}/small"
        assert media in page
        assert visitor.client.get(media).headers["content-type"] == "image/webp"


def settings_columns() -> Any:
    return DiscoverSettings(dataset="x", oracle="simulated", **COLUMNS).columns


def test_an_archive_of_both_is_enriched_and_the_second_night_asks_nothing(server: FakeOpenAI, tmp_path: Path) -> None:
    written = io.BytesIO()
    Image.new("RGB", (40, 30), COLOURS["red"]).save(written, "PNG")
    spec = archive(tmp_path / "fruit.tar", {"1.png": written.getvalue(), "1.txt": b"a pear", "2.txt": b"an apple"})
    chosen = EnrichSettings(
        dataset=spec,
        oracle=f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1",
        features="red: is red; pear: shows a pear",
        store=str(tmp_path / "store.sqlite"),
        out=str(tmp_path / "table"),
    )
    enrich_with(chosen)
    labels = pd.read_parquet(next((tmp_path / "table").glob("*.parquet"))).set_index("id")
    assert labels[["red", "pear"]].to_dict("index") == {"1": {"red": 1, "pear": 1}, "2": {"red": 0, "pear": 0}}
    before = server.count(CHAT)
    assert enrich_with(chosen).to_json()["paid_calls"] == 0
    assert server.count(CHAT) == before


def test_comparing_and_a_contrastive_model_that_does_not_read(table: Path, tmp_path: Path) -> None:
    heard = Heard()
    chosen = CompareSettings(
        dataset=str(table),
        oracles=("contrastive", "human"),
        features="red: is red",
        store=str(tmp_path / "s"),
        **COLUMNS,
    )
    prepared = prepare_comparison(chosen, heard.stream)
    assert [one.text is not None and one.image is not None for one in prepared.dataset.examples] == [True] * 10
    assert "contrastive looks at pictures only: the texts of 10 examples are not shown to it" in heard.said
