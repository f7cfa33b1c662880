"""Exports keep what the data set has of its own, hold the chosen features, and tell no path of the machine."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.support.run_folders import make_run, random_matrix
from twothirds.reports.export.formats import FORMATS, export_run
from twothirds.reports.export.origins import Marks
from twothirds.reports.finished_run import Run
from twothirds.reports.run import RunError
from twothirds.sources.load import load_dataset

COUNT = 30


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two folders of pictures, each a class."""
    rng = np.random.default_rng(0)
    for number in range(COUNT):
        folder = tmp_path / "pets" / ("big cats" if number % 2 else "dogs")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(256, size=(8, 8, 3)).astype(np.uint8)).save(folder / f"{number:02d}.png")
    return tmp_path / "pets"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    table = pd.DataFrame({"id": [f"t{row}" for row in range(COUNT)], "text": [f"text {row}" for row in range(COUNT)]})
    table["weight"], table["heavy"] = np.arange(COUNT) / 2, np.arange(COUNT) > 9
    table["note"] = [None if row == 3 else f"a\rb{row}" for row in range(COUNT)]
    table.to_parquet(tmp_path / "texts.parquet", index=False)
    return tmp_path / "texts.parquet"


def run_of(source: Path, folder: Path, names: tuple[str, ...] = ("round", "weight", "red"), seed: int = 0) -> Run:
    ids = [example.id for example in load_dataset(str(source)).examples]
    return make_run(folder, str(source), ids, names, random_matrix(len(names), len(ids), seed=seed))


def test_own_columns_are_in_every_table(texts: Path, tmp_path: Path) -> None:
    run = run_of(texts, tmp_path / "run")
    export_run(run, ["wide-parquet,wide-csv,jsonl,huggingface"], load_dataset(str(texts)), tmp_path / "out")
    given = pd.read_parquet(texts).set_index("id")
    (parquet,) = (tmp_path / "out" / "huggingface" / "data").iterdir()
    for path in (tmp_path / "out" / "wide.parquet", parquet):
        made = pd.read_parquet(path).set_index("id")
        assert [name for name in made if name not in ("text",)] == [
            *given.columns[1:],
            "round",
            "weight (feature)",
            "red",
        ]
        assert made["weight"].tolist() == given["weight"].tolist()
        assert made["heavy"].tolist() == given["heavy"].tolist()
        assert made["note"].isna().sum() == 1
    rows = [json.loads(line) for line in (tmp_path / "out" / "labels.jsonl").read_text().splitlines()]
    assert rows[3]["columns"] == {"weight": 1.5, "heavy": False, "note": None}
    assert set(rows[3]["labels"]) == {"round", "weight (feature)", "red"}


def test_a_lone_carriage_return_stays_in_its_cell(texts: Path, tmp_path: Path) -> None:
    run = run_of(texts, tmp_path / "run")
    export_run(run, ["wide-csv"], load_dataset(str(texts)), tmp_path / "out")
    with (tmp_path / "out" / "wide.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 1 + COUNT
    assert len({len(row) for row in rows}) == 1
    assert len(pd.read_csv(tmp_path / "out" / "wide.csv")) == COUNT


def test_class_folders_are_kept(pictures: Path, tmp_path: Path) -> None:
    run = run_of(pictures, tmp_path / "run", ("label", "red"))
    export_run(run, ["imagefolder"], load_dataset(str(pictures)), tmp_path / "out")
    table = pd.read_csv(tmp_path / "out" / "imagefolder" / "metadata.csv")
    assert list(table.columns) == ["file_name", "id", "label", "label (feature)", "red"]
    assert set(table["label"]) == {"big cats", "dogs"}
    for row in table.itertuples():
        folder = "big-cats" if row.label == "big cats" else "dogs"
        assert re.fullmatch(rf"images/[0-9a-f]+/{folder}/\d+\.png", str(row.file_name))
        assert (tmp_path / "out" / "imagefolder" / str(row.file_name)).is_file()
    export_run(run, ["all"], load_dataset(str(pictures)), tmp_path / "out")
    export_run(run, ["all"], load_dataset(str(pictures)), tmp_path / "out")  # replaces what it wrote


def test_nothing_that_is_made_to_be_published_tells_a_local_path(pictures: Path, tmp_path: Path) -> None:
    run = run_of(pictures, tmp_path / "run")
    oracle: dict[str, Any] = {
        "kind": "vlm",
        "model": str(tmp_path / "my" / "model"),
        "parameters": {"f": str(tmp_path)},
        "prompts": "",
    }
    run.summary.__dict__["oracle"] = type(run.summary.oracle)(**oracle)
    export_run(run, [name for name in FORMATS if name != "doubtful"], load_dataset(str(pictures)), tmp_path / "out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) > 5 * COUNT // 2
    for path in files:
        assert str(tmp_path).encode() not in path.read_bytes(), path
    assert "pets, 30 examples" in (tmp_path / "out" / "README.md").read_text()


def test_marks_choose_features(texts: Path, tmp_path: Path) -> None:
    matrix = random_matrix(4, COUNT, unknown=0)
    matrix[0], matrix[1] = np.arange(COUNT) % 2, np.arange(COUNT) % 2  # a feature and its twin
    matrix[2] = np.arange(COUNT) == 0  # rare
    matrix[3] = np.arange(COUNT) < 12
    ids = [f"t{row}" for row in range(COUNT)]
    run = make_run(tmp_path / "run", str(texts), ids, ["odd", "uneven", "first", "early"], matrix, divided=0)

    def names(**chosen: list[str]) -> list[str]:
        export_run(run, ["tidy-parquet"], None, tmp_path / "out", say=lambda _: None, marks=Marks(**chosen))
        return list(dict.fromkeys(pd.read_parquet(tmp_path / "out" / "tidy.parquet")["feature"]))

    assert names() == ["odd", "uneven", "first", "early"]
    assert names(only=["interesting"]) == ["odd", "uneven", "early"]
    assert names(only=["interesting,distinct"]) == ["odd", "early"]
    assert names(without=["duplicates"]) == ["odd", "first", "early"]
    table = pd.read_csv(run.folder / "features.csv", keep_default_na=False)
    table["consistent"] = [True, True, True, False]
    table.to_csv(run.folder / "features.csv", index=False)
    run = Run(run.folder)
    assert names() == ["odd", "uneven", "first"]
    assert names(with_=["doubtful"]) == ["odd", "uneven", "first", "early"]
    assert names(only=["interesting"], with_=["doubtful"]) == ["odd", "uneven", "early"]
    assert names(without=["doubtful", "duplicates"]) == ["odd", "first"]
    with pytest.raises(RunError, match="--with 'divided' is no mark"):
        names(with_=["divided"])
    with pytest.raises(RunError, match="--only 'pretty' is no mark"):
        names(only=["pretty"])
    with pytest.raises(RunError, match="--without 'distinct' is no mark"):
        names(without=["distinct"])


def test_no_format_holds_a_doubtful_feature_unless_it_is_asked_for(pictures: Path, tmp_path: Path) -> None:
    ids = [example.id for example in load_dataset(str(pictures)).examples]
    names = ["plain one", "xyzzyfeature"]
    matrix = random_matrix(2, len(ids), unknown=0)
    run = make_run(tmp_path / "run", str(pictures), ids, names, matrix, divided=0)
    table = pd.read_csv(run.folder / "features.csv", keep_default_na=False)
    table["consistent"] = [True, False]
    table.to_csv(run.folder / "features.csv", index=False)
    run, dataset = Run(run.folder), load_dataset(str(pictures))

    def holding(**chosen: list[str]) -> tuple[set[str], list[str]]:
        said: list[str] = []
        out = tmp_path / f"out{len(chosen)}"
        paths = export_run(run, list(FORMATS), dataset, out, marks=Marks(**chosen), say=said.append)
        files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
        found = {str(file.relative_to(out)) for file in files if _mentions(file, "xyzzyfeature")}
        assert any(_mentions(file, "plain one") for file in files)
        return found, said

    left, said = holding()
    cards = {name for name in left if name.endswith("README.md")}
    assert left - cards == {"doubtful.csv"}, "the list of labels to put right has them"
    assert all("1 doubtful feature, contradicted" in (tmp_path / "out0" / card).read_text() for card in cards)
    assert len(cards) >= 2
    assert said == [
        "1 doubtful feature, contradicted by the labels of the examples asked about: xyzzyfeature; left out of this "
        "export, unless it has --with doubtful"
    ]
    everything, said = holding(with_=["doubtful"])
    assert {"wide.parquet", "wide.csv", "tidy.csv", "labels.jsonl", "features.csv", "tree.json"} <= everything
    assert not said


def _mentions(file: Path, word: str) -> bool:
    if file.suffix == ".parquet":
        table = pd.read_parquet(file)
        return word in table.columns or ("feature" in table and word in set(table["feature"]))
    return word.encode() in file.read_bytes()
