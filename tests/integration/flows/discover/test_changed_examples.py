"""Pictures and texts that change on disk while a run is on: no answer is kept under the digest of another content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from tests.support.fake_openai import FakeModel, FakeOpenAI
from tests.support.fake_openai.mind import COLOURS, Page
from tests.support.stored_answers import every_answer
from tests.support.tiny_models import save_tiny_llava
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.batches import LabelledBatch, Labeller
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models import LabelBatch
from twothirds.sources.dataset import digest_of_content
from twothirds.store import Store

NAMES = list(COLOURS)
N = 16


class Pictures:
    """Of one colour each; changed, each has the next colour."""

    def __init__(self, folder: Path) -> None:
        self.folder = self.spec = folder / "pictures"
        self.folder.mkdir()
        self.colour_of: dict[str, str] = {}  # by digest, whatever was ever there

    def write(self, shift: int = 0) -> None:
        for number in range(N):
            colour, path = NAMES[(number + shift) % len(NAMES)], self.folder / f"{number}.png"
            Image.new("RGB", (40 + number, 30), COLOURS[colour]).save(path)
            self.colour_of[hashlib.sha256(path.read_bytes()).hexdigest()] = colour


class Texts:
    """Lines of a table that name one colour each; changed, each names the next."""

    def __init__(self, folder: Path) -> None:
        self.spec = folder / "texts.csv"
        self.colour_of: dict[str, str] = {}

    def write(self, shift: int = 0) -> None:
        texts = [f"number {number} is {NAMES[(number + shift) % len(NAMES)]}" for number in range(N)]
        new = self.spec.with_suffix(".new")
        new.write_text("id,text\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts)))
        os.replace(new, self.spec)
        self.colour_of |= {digest_of_content(text, None): text.split()[-1] for text in texts}


World = Pictures | Texts


class Disturbed(FakeModel):
    """Sees to it that everything changes while the first question is answered."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__()
        self._change: Callable[[], None] | None = change

    def compare(self, page: Page) -> dict[str, Any]:
        self._disturb()
        return super().compare(page)

    def label(self, page: Page) -> dict[str, Any]:
        self._disturb()
        return super().label(page)

    def _disturb(self) -> None:
        change, self._change = self._change, None
        if change is not None:
            change()


@pytest.fixture(params=[Pictures, Texts])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    made: World = request.param(tmp_path)
    made.write()
    return made


def places(server: FakeOpenAI, folder: Path) -> dict[str, str]:
    modest = "concurrency=1&labels_per_request=2&attempts=1"  # so that little is read ahead
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&{modest}"
    return {"oracle": oracle, "store": str(folder / "store.sqlite"), "out": str(folder / "out")}


def assert_every_answer_is_about_its_content(folder: Path, world: World) -> set[str]:
    """The examples that were labelled."""
    asked = set()
    with Store.open(str(folder / "store.sqlite")) as store:
        for one in every_answer(store):
            if one.kind == "label":
                true = world.colour_of[one.question["example"]] == one.question["feature"][0]
                assert one.answer["verdict"] == ("yes" if true else "no")
                asked.add(one.question["example"])
    return asked


def test_a_discovery(world: World, tmp_path: Path) -> None:
    old = set(world.colour_of)
    with FakeOpenAI(Disturbed(lambda: world.write(shift=1))) as server:
        chosen = {"dataset": str(world.spec), "queries": 3, **places(server, tmp_path)}
        outcome = run_discovery(prepare(DiscoverSettings.model_validate(chosen)), run_id="first")
        if isinstance(world, Pictures):
            assert "has changed since the data set was read: run again" in outcome.progress.message
        else:
            assert outcome.progress.queries == 3, "texts were read whole, and are asked about as they were"
        assert assert_every_answer_is_about_its_content(tmp_path, world) <= old
        again = run_discovery(prepare(DiscoverSettings.model_validate(chosen)), run_id="second")
    assert again.progress.queries == 3
    new = set(world.colour_of) - old
    assert assert_every_answer_is_about_its_content(tmp_path, world) & new == new


def test_an_enrichment(world: World, tmp_path: Path) -> None:
    old = set(world.colour_of)
    features = "; ".join(f"{name}: It is {name}." for name in NAMES)
    with FakeOpenAI(Disturbed(lambda: world.write(shift=1))) as server:
        chosen = {"dataset": str(world.spec), "features": features, **places(server, tmp_path)}
        settings = EnrichSettings.model_validate(chosen)
        summary = enrich_with(settings).to_json()
        assert (summary["stopped_because"], summary["added"] + summary["left_out_count"]) == ("done", N)
        assert (summary["left_out_count"] > N / 2) == isinstance(world, Pictures), "texts were read whole"
        assert len(assert_every_answer_is_about_its_content(tmp_path, world) & old) > 0
        enrich_with(settings)
    assert_every_answer_is_about_its_content(tmp_path, world)
    table = pd.read_parquet(tmp_path / "out" / "labels.parquet")
    right = [NAMES[(number + 1) % len(NAMES)] for number in range(N)]
    table.index = pd.Index(table["id"].str.removesuffix(".png").astype(int))
    assert list(map(str, table.sort_index()[NAMES].astype(bool).idxmax(axis=1))) == right


@pytest.fixture(params=["openai", "contrastive", "vlm"])
def oracle(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with FakeOpenAI() as server:
        if request.param == "openai":
            yield f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,1&labels_per_request=3&grouping=feature"
        elif request.param == "vlm":
            yield f"vlm:{save_tiny_llava(tmp_path / 'llava')}?price_per_hour=1&seconds_per_label=1"
        else:
            yield "contrastive"


def test_what_changes_or_goes_after_it_was_read_is_left_to_the_next_night(oracle: str, tmp_path: Path) -> None:
    """Whoever looks at pictures: all others are labelled at once, and nothing is booked for those that were not."""
    world = Pictures(tmp_path)
    world.write()
    settings = EnrichSettings(
        dataset=str(world.spec),
        features="; ".join(NAMES[:3]),
        oracle=oracle,
        store=str(tmp_path / "store.sqlite"),
        out=str(tmp_path / "out"),
    )

    def disturbed(labeller: Labeller, batch: LabelBatch) -> Future[LabelledBatch]:
        Image.new("RGB", (9, 9), "white").save(world.folder / "3.png")
        (world.folder / "12.png").unlink()
        marked: Future[LabelledBatch] = Future()
        marked.set_result(labeller(batch))
        return marked

    summary = enrich_with(settings, submit=disturbed).to_json()
    assert (summary["added"], summary["left_out_count"], summary["partial"]) == (N - 2, 2, False)
    reasons = {one["id"]: one["reason"] for one in summary["left_out"]}
    assert "has changed since the data set was read" in reasons["3.png"]
    assert "cannot be read any more (missing file)" in reasons["12.png"]
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        asked = {one.question["example"] for one in every_answer(store) if one.kind == "label"}
        assert len(asked) == (0 if oracle == "contrastive" else N - 2)  # whose labels are computed, not kept
        assert sum(row.unknown_calls for row in store.costs.lines()) == 0
        assert {row["status"] for row in store.runs.overview()} == {"done"}
    again = enrich_with(settings).to_json()
    assert (again["added"], again["unchanged"], again["paid_calls"]) == (1, N - 2, 3)
    table = pd.read_parquet(tmp_path / "out" / "labels.parquet")
    assert set(table["id"]) == {f"{number}.png" for number in range(N)} - {"12.png"}
