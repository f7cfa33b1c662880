"""The benchmark of features that are found twice: what it counts, on what, and when it fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import BENCHMARKS, PAGE, page_of, sections_of
from benchmarks.discovery import duplicates
from benchmarks.discovery.duplicates import Tally, as_dataset, discovered, tally_of
from sources import load_dataset
from tests.support.fake_openai import Habits
from tests.support.fake_openai.lifelike import LifelikeMind
from tests.support.run_folders import make_run

MATRIX = "animal,can_fly,is big,lives in water,weight\n" + "".join(
    f"a{number},{number % 2},{number // 2 % 2},{number // 4 % 2},{number / 7}\n" for number in range(24)
)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (tmp_path / "animals.csv").write_text(MATRIX, encoding="utf-8")
    return tmp_path / "animals.csv"


def test_repeats_and_mistakes_are_found_by_what_the_server_means(matrix: Path, tmp_path: Path) -> None:
    with as_dataset(str(matrix)) as source:
        dataset = load_dataset(source)
        mind = LifelikeMind(dataset, Habits())
        assert dataset.truth is not None
        fly, big, water = dataset.truth.matrix.T
        other = np.where(np.arange(24) < 6, 1 - fly, fly)  # so wrong that it looks like another feature
        names = ["can fly", "is big", "fly can", "lives in water"]
        meant = ["it can fly", "is big", "can fly", "lives in water"]
        ids = [example.id for example in dataset.examples]
        run = make_run(tmp_path / "run", source, ids, names, np.array([fly, big, other, water]), definitions=meant)
        features = run.features
        features["distinct"] &= features["name"] != "lives in water"
        features["twin"] = ["same as is big" if name == "lives in water" else "" for name in features["name"]]
        features.to_csv(run.folder / "features.csv", index=False)
        found = tally_of(type(run)(run.folder), mind, asked=3, labels=96)
    assert found == Tally(counted=3, repeated=1, different=3, mistaken=1, asked=3, labels=96)


def test_a_matrix_becomes_texts_with_its_yes_no_columns_as_truth(matrix: Path) -> None:
    with as_dataset(str(matrix)) as source:
        dataset = load_dataset(source)
        assert dataset.truth is not None
        assert list(dataset.truth.columns) == ["can fly", "is big", "lives in water"]
        assert len({example.digest for example in dataset.examples}) == 24
        assert not any("fly" in str(example.text) for example in dataset.examples)
    with as_dataset("datasets/zoo") as same:
        assert same == "datasets/zoo"


def test_a_discovery_is_counted_from_end_to_end(matrix: Path, tmp_path: Path) -> None:
    with as_dataset(str(matrix)) as source:
        found = discovered(source, Habits(slow=0.0), seed=0, queries=2, folder=tmp_path)
    assert 0 < found.counted <= found.different <= 3
    assert (found.repeated, found.mistaken) == (0, 0)
    assert found.labels >= 24 * found.counted


@pytest.mark.parametrize(
    ("each", "passes"),
    [
        (Tally(counted=30, repeated=1, different=100, mistaken=1), True),
        (Tally(counted=30, repeated=2, different=100, mistaken=0), False),
        (Tally(counted=30, repeated=0, different=100, mistaken=2), False),
    ],
)
def test_it_fails_where_too_many_are_repeated_or_mistaken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], matrix: Path, each: Tally, passes: bool
) -> None:
    monkeypatch.setattr(duplicates, "measured", lambda *_, **__: each)
    if passes:
        duplicates.main([str(matrix)])
    else:
        with pytest.raises(SystemExit, match="1 in 30"):
            duplicates.main([str(matrix)])
    printed = capsys.readouterr().out
    runs = 3 * len(duplicates.HABITS)  # zoo, faces and the matrix
    assert f"| all | {each.repeated * runs} of {30 * runs}:" in printed


def test_the_page_of_figures_keeps_the_sections_that_are_measured_by_hand() -> None:
    sections = sections_of(PAGE.read_text(encoding="utf-8"))
    by_hand = [title for title in sections if title not in BENCHMARKS]
    assert by_hand
    again = sections_of(page_of(sections | {"The same feature twice": "new"}))
    assert again == sections | {"The same feature twice": "new"}
    assert [title for title in again if title in sections] == list(sections)
