"""Everything that can happen to the rows of a data set between two nights."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from tests.support.growing_worlds import World, night, table
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.reports.run.files import RunError
from twothirds.sources import load
from twothirds.sources.dataset import read_bytes


def grow(world: World) -> None:
    """New rows that are all red, and everything else that can happen to rows."""
    texts = world.texts
    new = set(world.add(50))
    for number in range(4):
        texts[f"r{number:06}"] = texts.pop(f"e{number:06}")
        texts[f"e{number + 10:06}"] = f"rewritten {number}"
        del texts[f"e{number + 20:06}"]
    texts["e000030"], texts["e000031"] = texts["e000031"], texts["e000030"]
    texts |= {f"e{number:06}": " " for number in range(35, 60)}
    world.write()
    truth = pd.read_csv(world.folder / "truth.csv").set_index("id")
    truth.loc[[name for name in texts if name in new or texts[name].startswith("rewritten")], "red"] = 1
    truth.to_csv(world.folder / "truth.csv")


def test_the_summary_counts_every_kind_of_change(tmp_path: Path) -> None:
    world = World(tmp_path, 60)
    night(world, features="red: It is red.; round: It is round.")
    grow(world)
    night(world)
    lines = EnrichSummary.read(world.folder / "out").lines()
    assert "4 rows are no longer in the data set; their labels were kept" in lines
    whole = json.loads((world.folder / "out" / "enrich.json").read_text(encoding="utf-8"))
    names = ("added", "changed", "renamed", "copies", "gone", "left_out_count")
    assert [whole[name] for name in names] == [50, 4, 6, 0, 4, 25]
    assert len(whole["left_out"]) == len(whole["ids"]["added"]) == 20
    assert whole["turned_over"]["red"] > 0
    assert whole["new_features"] == ["heavy"]
    assert [one["feature"] for one in whole["drift"] if one["moved"]] == ["red"]


def test_rows_that_are_gone_keep_no_labels_of_an_earlier_voter(tmp_path: Path) -> None:
    world = World(tmp_path, 60)
    night(world)
    world.texts.pop("e000005")
    world.write()
    night(world, votes=3, backfill=True)
    assert table(world).loc["e000005", list(world.traits)].isna().all()


def test_only_the_wanted_pictures_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        Image.new("RGB", (8, 8 + number)).save(tmp_path / f"{number}.png")
    read: list[str] = []

    def read_and_tell(image: str, home: str | None) -> bytes:
        read.append(Path(image).name)
        return read_bytes(image, home)

    monkeypatch.setattr(load, "read_bytes", read_and_tell)
    found = list(load.iter_examples(str(tmp_path), wanted=lambda name: name in ("3.png", "7.png")))
    assert sorted(read) == sorted(one.id for one in found) == ["3.png", "7.png"]


def test_a_damaged_summary_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "enrich.json").write_text('{"rows": "many"}', encoding="utf-8")
    with pytest.raises(RunError, match="is damaged"):
        EnrichSummary.read(tmp_path)
