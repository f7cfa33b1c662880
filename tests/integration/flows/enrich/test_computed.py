"""Labels that cost nothing and can be computed again: the same as asked, and none of them in the store."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.support.asking import ask
from twothirds.flows.enrich.batches import Resources
from twothirds.flows.enrich.flow import enrich_with, run_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.contrastive import Vectors
from twothirds.models.contrastive.embeddings import Embedder
from twothirds.models.contrastive.oracle import SHIPPED, ContrastiveOracle
from twothirds.models.oracle import Feature, Label, OracleError, Verdict
from twothirds.sources import Example
from twothirds.sources.load import load_dataset
from twothirds.store import Store

NAMES = ("headwear", "winter hat", "wide-brimmed hat")
DATASET = SHIPPED.parents[1] / "datasets" / "faces"


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    folder = tmp_path / "faces"
    folder.mkdir()
    for path in sorted((DATASET / "images").glob("*.png"))[:12]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def oracle() -> ContrastiveOracle:
    return ContrastiveOracle()


def night(faces: Path, store_url: str, features: str = "; ".join(NAMES), **changed: Any) -> dict[str, Any]:
    about = {"dataset": str(faces), "features": features, "oracle": "contrastive", "store": store_url}
    settings = EnrichSettings(**(about | {"out": str(faces.parent / "out")} | changed))
    return enrich_with(settings).to_json()


def labels(faces: Path) -> pd.DataFrame:
    return pd.read_parquet(faces.parent / "out" / "labels.parquet").set_index("id")


@pytest.mark.parametrize("votes", [1, 3])
def test_labels_are_those_that_asking_gives_and_the_store_has_a_number_only(
    faces: Path, store_url: str, oracle: ContrastiveOracle, votes: int
) -> None:
    summary = night(faces, store_url, votes=votes)
    examples = load_dataset(str(faces)).examples
    for name in NAMES:
        said = np.zeros(len(examples))
        for voter in range(votes):
            answers = ask(oracle, [Label(Feature(name), example, voter) for example in examples])
            said += [1 if answer.verdict is Verdict.YES else -1 for answer in answers]
        assert labels(faces)[name].loc[[one.id for one in examples]].astype(int).tolist() == (said > 0).tolist()
    with Store.open(store_url) as store:
        assert store.requests.count() == 0
        assert [(line.kind, line.paid_calls) for line in store.costs.lines()] == [("computed", summary["paid_calls"])]
        assert store.check.problems() == []
    if votes == 1:
        assert summary["paid_calls"] == len(examples) * len(NAMES)


def test_a_feature_that_the_model_does_not_understand_is_refused_and_reported(faces: Path, store_url: str) -> None:
    summary = night(faces, store_url, "headwear; xylophone quartets")
    assert labels(faces)["xylophone quartet"].isna().all()
    assert labels(faces)["headwear"].notna().all()
    assert summary["unusable"]["unusable_labels"] == 12
    assert "does not know" in summary["unusable"]["reasons"][0]["reason"]


def test_pictures_that_cannot_be_read_are_left_out_for_the_reason_that_reading_gives(
    faces: Path, store_url: str
) -> None:
    whole = sorted(faces.iterdir())
    (faces / "broken.png").write_bytes(whole[0].read_bytes()[:400])
    (faces / "empty.png").write_bytes(b"")
    summary = night(faces, store_url)
    read = {one.id: one.reason for one in load_dataset(str(faces)).quarantined}
    assert {one["id"]: one["reason"] for one in summary["left_out"]} == read
    assert set(read) == {"broken.png", "empty.png"}
    assert (summary["added"], set(labels(faces).index)) == (12, {path.name for path in whole})
    assert night(faces, store_url)["unchanged"] == 12


def test_a_folder_in_which_no_picture_can_be_read_leaves_an_empty_table(faces: Path, store_url: str) -> None:
    for path in faces.iterdir():
        path.write_bytes(path.read_bytes()[:400])
    summary = night(faces, store_url)
    assert (summary["added"], len(summary["left_out"])) == (0, 12)


def test_a_model_that_was_loaded_ahead_labels_the_same(faces: Path, store_url: str) -> None:
    night(faces, store_url)
    alone = labels(faces)
    about = {"features": "; ".join(NAMES), "oracle": "contrastive", "store": store_url}
    settings = EnrichSettings(dataset=str(faces), out=str(faces.parent / "ahead"), **about)
    resources = Resources()
    resources.load_ahead(settings)
    enrich_with(settings, resources=resources)
    ahead = pd.read_parquet(faces.parent / "ahead" / "labels.parquet").set_index("id")
    assert ahead[list(NAMES)].equals(alone[list(NAMES)])
    resources.load_ahead(settings)  # after the run has closed it: opened anew
    assert isinstance(resources.oracle_and_store(settings)[0], ContrastiveOracle)
    resources.close()


def test_pictures_that_were_looked_at_ahead_need_the_model_no_more(
    faces: Path, store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    looked_at: list[int] = []
    original = Embedder.images

    def images(self: Embedder, examples: Sequence[Example]) -> Vectors:
        looked_at.append(len(examples))
        return original(self, examples)

    monkeypatch.setattr(Embedder, "images", images)
    about = {"features": "; ".join(NAMES), "oracle": "contrastive", "store": store_url}
    settings = EnrichSettings(dataset=str(faces), out=str(faces.parent / "out"), **about)
    resources = Resources()
    resources.load_ahead(settings)
    assert sum(looked_at) == 12
    assert enrich_with(settings, resources=resources).to_json()["added"] == 12
    assert sum(looked_at) == 12
    resources.load_ahead(settings)  # the run has begun: nothing is done ahead of it
    assert sum(looked_at) == 12
    resources.close()


@pytest.mark.parametrize(("runner", "ahead"), [("threads", 1), ("dask", 0)])
def test_a_model_is_loaded_ahead_where_it_will_label(
    faces: Path, store_url: str, monkeypatch: pytest.MonkeyPatch, runner: str, ahead: int
) -> None:
    begun: list[EnrichSettings] = []
    monkeypatch.setattr(Resources, "load_ahead", lambda _self, settings: begun.append(settings))
    monkeypatch.setattr("twothirds.flows.enrich.flow.run_flow", lambda *_, **__: None)
    about = {"features": "; ".join(NAMES), "oracle": "contrastive", "store": store_url, "runner": runner}
    run_enrichment(EnrichSettings(dataset=str(faces), out=str(faces.parent / "out"), **about))
    for thread in threading.enumerate():
        if thread.name == "load":
            thread.join()
    assert len(begun) == ahead


def test_what_is_wrong_with_a_model_is_reported_when_it_is_used(faces: Path, store_url: str) -> None:
    about = {"features": "; ".join(NAMES), "oracle": f"contrastive:{faces / 'nowhere'}", "store": store_url}
    settings = EnrichSettings(dataset=str(faces), out=str(faces.parent / "out"), **about)
    resources = Resources()
    resources.load_ahead(settings)
    with pytest.raises(OracleError, match="nowhere"):
        enrich_with(settings, resources=resources)
