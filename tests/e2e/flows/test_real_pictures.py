"""A real model and real pictures through the whole path: CLIP's tower with names names features of Tux Paint's stamps,
and its vectors predict labels.

`make test-slow` fetches the tower and the pictures (tests/install_clip.sh). The names with their vectors are in no
package: TWOTHIRDS_CLIP_NAMES says where names.txt and vectors.npy are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.clip import PARTS, Parts, Workplace, area_under_curve, discovered, predict
from benchmarks.stamps import has_truth, having, read_stamps

FOLDER = Path(os.environ.get("TWOTHIRDS_CLIP", PARTS))
NAMES = Path(os.environ.get("TWOTHIRDS_CLIP_NAMES", FOLDER))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.xdist_group("real pictures"),
    pytest.mark.skipif(not (FOLDER / "tower.onnx").exists(), reason="CLIP's tower is not here: tests/install_clip.sh"),
    pytest.mark.skipif(not (FOLDER / "stamps").exists(), reason="the stamps are not here: tests/install_clip.sh"),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    parts = Parts(FOLDER / "tower.onnx", FOLDER / "stamps", NAMES / "names.txt", NAMES / "vectors.npy")
    return Workplace.of(tmp_path_factory.mktemp("stamps"), parts, read_stamps(parts.stamps))


def test_vectors_of_the_tower_predict_folders_as_well_as_promised(work: Workplace) -> None:
    counted = predict(work, str(work.parts.tower), 0.95, "leave")
    assert counted.predicted > 1_000
    assert counted.right >= 0.95 * counted.predicted
    assert counted.right > counted.commoner, "no better than the commoner answer of each"


@pytest.mark.skipif(not (NAMES / "vectors.npy").exists(), reason="no vectors of names: set TWOTHIRDS_CLIP_NAMES")
def test_features_that_a_real_model_names_are_true_of_real_pictures(work: Workplace) -> None:
    named = discovered(work, "auto", 20)
    told = [feature for feature in named.features if feature.truth is not None]
    assert told, "not one feature is in the folders or captions"
    assert sum(feature.area for feature in told) / len(told) > 0.8
    assert sum(feature.balanced for feature in told) / len(told) > 0.65
    every = [name for name in work.parts.names.read_text(encoding="utf-8").splitlines() if has_truth(work.stamps, name)]
    areas = [area_under_curve(found, having(work.stamps, name)) for name, found in work.chances(every).items()]
    assert sum(areas) / len(areas) > 0.8, "of all names that have a truth, found or not"
