"""What the benchmarks of discoveries count: features found, and features found twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import duplicates
from benchmarks.cases import Case, of_matrix, read_matrix
from benchmarks.duplicates import VoteCounts, as_dataset, tally_of
from benchmarks.strategies import ceiling, compare_strategies, found
from benchmarks.worlds import World
from tests.support.fake_openai import Failings
from tests.support.fake_openai.lifelike import LifelikeModel
from tests.support.run_folders import make_run
from twothirds.sources import load_dataset

MATRIX = "animal,can_fly,is big,lives in water,weight\n" + "".join(
    f"a{number},{number % 2},{number // 2 % 2},{number // 4 % 2},{number / 7}\n" for number in range(24)
)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    (tmp_path / "animals.csv").write_text(MATRIX, encoding="utf-8")
    return tmp_path / "animals.csv"


def test_a_feature_that_repeats_another_counts_once() -> None:
    columns = np.random.default_rng(0).integers(2, size=(60, 6)).astype(np.int8)
    twice = Case("twice", lambda _: World(np.hstack([columns, columns])))
    assert ceiling(twice) == 6
    assert found("adaptive-triple", twice, seeds=1)[0, 1] <= 6


def test_every_strategy_is_in_the_table_with_its_ratio_to_the_best_other(matrix: Path) -> None:
    table = compare_strategies("Strategies on matrices", [of_matrix(matrix)], seeds=1)
    [row] = table.rows
    assert row[:3] == ["animals", "24 × 3", 3]
    assert len(row) == len(table.columns)
    assert row[-2][1] == 1.0, "all find the three features"


def test_a_matrix_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"missing\.csv cannot be read .*give a CSV file"):
        read_matrix(tmp_path / "missing.csv")


def test_repeats_and_mistakes_are_found_by_what_the_server_means(matrix: Path, tmp_path: Path) -> None:
    with as_dataset(str(matrix)) as source:
        dataset = load_dataset(source)
        mind = LifelikeModel(dataset, Failings())
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
        vote_counts = tally_of(type(run)(run.folder), mind, asked=3, labels=96)
    assert vote_counts == VoteCounts(counted=3, repeated=1, different=3, mistaken=1, asked=3, labels=96)
    assert duplicates.row_of("all", vote_counts + vote_counts)[3:] == [6, 192]
