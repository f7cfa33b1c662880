"""Folders and captions of real pictures are a truth by written rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.clip import nearest_folder
from benchmarks.stamps import LEAST, Stamp, folders_of, has_truth, having, read_stamps, write_stamps

STAMPS = [
    Stamp("animals/birds/crow.png", "A crow."),
    Stamp("animals/birds/cartoon/duck.png", "A duck on two skis."),
    Stamp("animals/cats/cat.png", "A cat that looks at birds."),
    Stamp("town/light.png", "A traffic light."),
    Stamp("food/fruit/cherry_mirror.png", ""),
]


def test_a_name_holds_where_all_its_words_are_in_folders_and_caption() -> None:
    assert having(STAMPS, "bird").tolist() == [True, True, True, False, False]
    assert having(STAMPS, "traffic light").tolist() == [False, False, False, True, False]
    assert having(STAMPS, "fruit-other").tolist() == [False, False, False, False, True]
    assert has_truth(STAMPS, "bird")
    assert not has_truth(STAMPS, "cat"), "fewer than three pictures"


def test_photographs_are_captioned_and_in_no_folder_of_drawings() -> None:
    assert [stamp.is_photograph for stamp in STAMPS] == [True, False, True, True, False]


def test_a_data_set_has_the_folders_as_truth_and_no_captions(tmp_path: Path) -> None:
    source = tmp_path / "source"
    paths = [f"{kind}/{number}.png" for kind in ("birds", "cats") for number in range(LEAST)]
    for path in [*paths, "rare/one.png"]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(b"")
        (source / path).with_suffix(".txt").write_text("A crow.\nde.utf8=Eine Krähe.\n", encoding="utf-8")
    stamps = read_stamps(source)
    assert {stamp.caption for stamp in stamps} == {"A crow."}
    written = write_stamps(stamps, source, tmp_path / "data")
    assert not list(written.rglob("*.txt"))
    truth = pd.read_csv(written / "truth.csv")
    assert list(truth) == ["id", "birds", "cats"], "a folder of one picture is no feature"
    assert truth["birds"].sum() == LEAST


def test_the_nearest_folder_of_labels_has_the_best_balanced_accuracy() -> None:
    stamps = [Stamp(f"{kind}/{number}.png", "") for kind in ("birds", "cats", "dogs") for number in range(LEAST)]
    labels = np.arange(3 * LEAST) < LEAST
    assert nearest_folder(labels, folders_of(stamps)) == ("birds", 1.0)
    labels[0] = False
    assert nearest_folder(labels, folders_of(stamps)) == ("birds", (1 - 1 / LEAST + 1) / 2)
