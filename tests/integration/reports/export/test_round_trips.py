"""Every export is read back and equals the labels; unknown stays empty; hostile names do no harm."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.support.run_folders import HOSTILE, make_run, random_matrix
from twothirds.reports.curation.log import plan_change, record_change
from twothirds.reports.export.formats import FORMATS, NEED_IMAGES, export_run
from twothirds.reports.finished_run import Run
from twothirds.reports.run.files import RunError
from twothirds.reports.run.folder import STARTS_A_FORMULA, restored
from twothirds.sources.load import load_dataset

FILE_NAMES = [name.replace("/", "")[:200] + ".png" for name in HOSTILE]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with hostile file names and features, some named like columns of the exports, and its exports."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "pictures").mkdir()
    names = [*FILE_NAMES, *(f"plain {number}.png" for number in range(30))]
    rng = np.random.default_rng(0)
    for name in names:
        Image.fromarray(rng.integers(256, size=(8, 8, 3)).astype(np.uint8)).save(folder / "pictures" / name)
    ids = [example.id for example in load_dataset(str(folder / "pictures")).examples]
    assert sorted(ids) == sorted(names)
    features = [*HOSTILE, "id", "file_name", "image", "text", "label"]
    run = make_run(
        folder / "run", str(folder / "pictures"), ids, features, random_matrix(len(features), len(ids), unknown=0.1)
    )
    export_run(run, ["all"], load_dataset(str(folder / "pictures")))
    return run


def labels_in(table: pd.DataFrame, run: Run) -> pd.DataFrame:
    """The label columns of an exported table in the form of `run.labels`."""
    found = table.set_index("id")[list(run.labels.columns)].astype("Int8")
    found.index = found.index.astype(run.labels.index.dtype)
    return found


def tidy(table: pd.DataFrame, run: Run) -> pd.DataFrame:
    wide = table.pivot(index="id", columns="feature", values="label")
    found = wide.reindex(index=run.labels.index, columns=run.labels.columns).astype("Int8")
    return found.set_axis(run.labels.columns, axis=1).set_axis(run.labels.index, axis=0)


def read_csv(path: Path) -> pd.DataFrame:
    texts = {"id": str, "feature": str}
    return restored(pd.read_csv(path, keep_default_na=False, na_values={"label": [""]}, dtype=texts))


def wide_csv(path: Path) -> pd.DataFrame:
    table = restored(pd.read_csv(path, dtype=str, keep_default_na=False))
    return table.set_index(["id"]).replace("", None).reset_index()


READERS: dict[str, Callable[[Path, Run], pd.DataFrame]] = {
    "wide.parquet": lambda path, run: labels_in(pd.read_parquet(path), run),
    "wide.csv": lambda path, run: labels_in(wide_csv(path), run),
    "tidy.parquet": lambda path, run: tidy(pd.read_parquet(path), run),
    "tidy.csv": lambda path, run: tidy(read_csv(path), run),
    "labels.jsonl": lambda path, run: labels_in(
        pd.DataFrame(
            [{"id": row["id"], **row["labels"]} for row in map(json.loads, path.read_text("utf-8").splitlines())]
        ),
        run,
    ),
    "imagefolder/metadata.csv": lambda path, run: labels_in(wide_csv(path), run),
    "imagefolder-parquet/metadata.parquet": lambda path, run: labels_in(pd.read_parquet(path), run),
    "huggingface/data/*.parquet": lambda path, run: labels_in(pd.read_parquet(path), run),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_an_export_read_back_equals_the_labels_and_unknown_stays_empty(name: str, exported: Run) -> None:
    (path,) = (exported.folder / "export").glob(name)
    found = READERS[name](path, exported)
    pd.testing.assert_frame_equal(found, exported.labels)
    assert found.isna().to_numpy().sum() == (exported.findings.matrix == -1).sum() > 0


def test_there_is_a_reader_here_for_every_format() -> None:
    tested = {name.split("/")[0] for name in READERS} | {
        "README.md",
        "features.csv",
        "doubtful.csv",
        "tree.json",
        "tree.dot",
    }
    tested |= {"label-studio", "fiftyone"}  # in test_annotation_tools.py
    assert len(tested) == len(FORMATS)


def test_no_cell_of_any_table_begins_like_a_formula(exported: Run) -> None:
    tables = [*exported.folder.rglob("*.csv")]
    assert len(tables) == 7
    for path in tables:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                assert not [cell for cell in row if cell.startswith(STARTS_A_FORMULA)], path.name


def test_the_run_folder_itself_is_read_back_with_its_names(exported: Run) -> None:
    run = Run(exported.folder)
    assert run.features["name"].tolist() == [*HOSTILE, "id", "file_name", "image", "text", "label"]
    assert run.labels.columns.tolist() == run.features["column"].tolist()


def test_pictures_are_copied_byte_for_byte_under_harmless_names(exported: Run) -> None:
    folder = exported.folder / "export" / "imagefolder"
    table = restored(pd.read_csv(folder / "metadata.csv", dtype=str, keep_default_na=False))
    source = Path(exported.summary.settings["dataset"])
    for name, copied in zip(table["id"], table["file_name"], strict=True):
        assert re.fullmatch(r"images/[0-9a-f]{16}/\d{6}\.png", copied)
        assert (folder / copied).read_bytes() == (source / name).read_bytes()
    (parquet,) = (exported.folder / "export" / "huggingface" / "data").iterdir()
    embedded = pd.read_parquet(parquet)
    image_column = embedded["image"]
    for name, cell in zip(embedded["id"], image_column, strict=True):
        assert cell["bytes"] == (source / name).read_bytes()


def test_the_card_tells_where_the_labels_come_from_and_shows_names_as_text(exported: Run) -> None:
    card = (exported.folder / "export" / "README.md").read_text(encoding="utf-8")
    assert str(exported.folder.parent) not in card
    for said in ("simulated salience", "prompts", "cost", "doubtful", "no person checked them", "0000000000000000"):
        assert said in card
    body = card.split("---", 2)[2]
    assert not re.search(r"(?<!\\)<", body)
    rows = [line for line in body.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(exported.findings.found)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 8 for row in rows)


def test_doubtful_labels_are_listed_with_their_votes_and_a_column_to_fill(exported: Run) -> None:
    table = restored(pd.read_csv(exported.folder / "export" / "doubtful.csv", keep_default_na=False, dtype=str))
    wanted = {
        (exported.findings.ids[row], feature.name)
        for feature in exported.findings.found
        for row in np.flatnonzero(feature.doubtful)
    }
    assert set(zip(table["id"], table["feature"], strict=True)) == wanted
    assert set(table["corrected"]) == {""}
    unknown = table[table["label"] == ""]
    assert (unknown["why"] == "undecided").all()
    assert len(unknown) == (exported.findings.matrix == -1).sum()


def test_exports_use_the_curated_features(tmp_path: Path) -> None:
    ids = [f"t{number}" for number in range(20)]
    pd.DataFrame({"id": ids, "text": ids}).to_csv(tmp_path / "t.csv", index=False)
    run = make_run(tmp_path / "run", str(tmp_path / "t.csv"), ids, ["a", "b", "c"], random_matrix(3, 20))
    run = record_change(run, plan_change(run, "rename", {"name": "b", "to": "bee"}))
    run = record_change(run, plan_change(run, "drop", {"names": ["a"]}))
    export_run(run, ["wide-parquet,jsonl,huggingface"], load_dataset(str(tmp_path / "t.csv")), tmp_path / "out")
    for name in ("wide.parquet", "huggingface/data/*.parquet"):
        (path,) = (tmp_path / "out").glob(name)
        assert set(pd.read_parquet(path).columns) - {"text"} == {"id", "bee", "c"}
    first = json.loads((tmp_path / "out" / "labels.jsonl").read_text().splitlines()[0])
    assert first["text"] == "t0"
    assert list(first["labels"]) == ["bee", "c"]


def test_texts_have_no_imagefolder_and_all_leaves_it_out(tmp_path: Path) -> None:
    ids = [f"t{number}" for number in range(12)]
    pd.DataFrame({"id": ids, "text": ids}).to_csv(tmp_path / "t.csv", index=False)
    run = make_run(tmp_path / "run", str(tmp_path / "t.csv"), ids, ["a"], random_matrix(1, 12))
    dataset = load_dataset(str(tmp_path / "t.csv"))
    with pytest.raises(RunError, match="has texts"):
        export_run(run, ["imagefolder"], dataset)
    written = {path.name for path in export_run(run, ["all"], dataset)}
    assert not written & NEED_IMAGES
    assert "huggingface" in written


def test_an_export_of_vanished_examples_says_which(tmp_path: Path) -> None:
    ids = [f"t{number}" for number in range(12)]
    pd.DataFrame({"id": ids[:5], "text": ids[:5]}).to_csv(tmp_path / "t.csv", index=False)
    run = make_run(tmp_path / "run", str(tmp_path / "t.csv"), ids, ["a"], random_matrix(1, 12))
    with pytest.raises(RunError, match="'t5' is not in the data set any more"):
        export_run(run, ["huggingface"], load_dataset(str(tmp_path / "t.csv")))
    assert not list((run.folder / "export").iterdir())
