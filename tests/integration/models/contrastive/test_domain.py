"""The shipped model says of pictures that are no drawn faces that its answers about them mean nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.faces_model.evaluate import as_examples
from benchmarks.faces_model.face import held_out_faces
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models.contrastive import ContrastiveOracle
from twothirds.models.contrastive.domain import Domain
from twothirds.models.oracle import OracleUnavailable, Unlike
from twothirds.reports import Run
from twothirds.sources import load_dataset

ROOT = Path(__file__).parents[4]
FACES, FLAGS = (str(ROOT / "datasets" / name) for name in ("faces", "flags"))


@pytest.fixture(scope="module")
def oracle() -> ContrastiveOracle:
    return ContrastiveOracle()


def test_drawn_faces_are_known_and_other_pictures_are_not(oracle: ContrastiveOracle, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    (tmp_path / "noise").mkdir()
    for number in range(20):
        noise = Image.fromarray(rng.integers(256, size=(120, 120, 3)).astype(np.uint8))
        noise.save(tmp_path / "noise" / f"{number}.png")
    (tmp_path / "held out").mkdir()
    held_out = as_examples(held_out_faces()[-100:], tmp_path / "held out")
    shares = {
        name: found.outside / found.of
        for name, found in (
            ("faces", oracle.prepare(load_dataset(FACES).examples)),
            ("held out", oracle.prepare(held_out)),
            ("flags", oracle.prepare(load_dataset(FLAGS).examples)),
            ("noise", oracle.prepare(load_dataset(str(tmp_path / "noise")).examples)),
        )
    }
    assert shares["faces"] <= 0.03
    assert shares["held out"] <= 0.03
    assert shares["flags"] >= 0.95
    assert shares["noise"] >= 0.95


def test_a_model_without_a_domain_or_with_that_of_other_weights_says_nothing(tmp_path: Path) -> None:
    assert Domain.read(tmp_path, "abc") is None
    made = Domain.fitted("cats", np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32))
    made.write(tmp_path, {"weights": "abc"})
    assert Domain.read(tmp_path, "other") is None
    assert Domain.read(tmp_path, "abc") is not None


def test_a_few_strange_pictures_by_chance_are_no_warning() -> None:
    assert Unlike(5, 100, "drawn faces", "contrastive:faces").warning == ""
    assert "6 of 100 pictures do not look like drawn faces" in Unlike(6, 100, "drawn faces", "x").warning
    assert Unlike().warning == ""
    assert (Unlike() + Unlike(3, 4, "cats", "x") + Unlike(1, 4, "cats", "x")).outside == 4


def test_texts_are_refused_before_anything_is_asked(oracle: ContrastiveOracle) -> None:
    with pytest.raises(OracleUnavailable, match="is a text"):
        oracle.prepare(load_dataset(str(ROOT / "datasets" / "zoo")).examples)


def test_the_warning_is_in_run_json_the_report_and_enrich_json(tmp_path: Path) -> None:
    where = {"store": str(tmp_path / "s.sqlite"), "oracle": "contrastive"}
    settings = DiscoverSettings(dataset=FLAGS, queries=2, out=str(tmp_path / "run"), **where)
    run_discovery(prepare(settings), run_id="flags")
    run = Run(tmp_path / "run")
    (warning,) = run.summary.warnings
    assert "do not look like drawn faces" in warning
    assert warning in run.report().path.read_text(encoding="utf-8")
    enriching = EnrichSettings(dataset=FLAGS, features="red top", out=str(tmp_path / "table"), **where)
    summary = enrich_with(enriching)
    assert summary.warnings
    assert "do not look like drawn faces" in summary.lines()[1]


def test_faces_bring_no_warning(tmp_path: Path) -> None:
    settings = DiscoverSettings(
        dataset=FACES, queries=1, oracle="contrastive", store=str(tmp_path / "s.sqlite"), out=str(tmp_path / "run")
    )
    run_discovery(prepare(settings), run_id="faces")
    assert Run(tmp_path / "run").summary.warnings == []
