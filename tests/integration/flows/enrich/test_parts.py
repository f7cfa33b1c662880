"""Parts of one enrichment: together they write the table, and say of it, what one run over all of it would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from flows.enrich.summary import told
from models.oracle import OracleLost
from sources import load
from sources.dataset import read_bytes
from store import Store
from tests.support.fake_openai import FakeOpenAI
from tests.support.growing_worlds import World, night, table
from tests.support.stored_answers import every_answer

OF_THE_RUN = ("settings", "seconds", "finished_at", "shards")
PARTS = ("2/3", "1/3", "3/3")


@pytest.fixture
def worlds(tmp_path: Path) -> tuple[World, World]:
    return World(tmp_path / "whole", 60), World(tmp_path / "parts", 60)


def said(world: World) -> dict[str, Any]:
    """enrich.json, without what belongs to the run."""
    summary = json.loads((world.folder / "out" / "enrich.json").read_text(encoding="utf-8"))
    return {key: value for key, value in summary.items() if key not in OF_THE_RUN}


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


def test_they_say_what_one_run_over_the_same_growth_says(worlds: tuple[World, World]) -> None:
    few = "red: It is red.; round: It is round."
    for world, parts in zip(worlds, ([None], PARTS), strict=True):
        night(world, features=few)
        grow(world)
        for part in parts:
            night(world, shard=part)
    whole, joined = map(said, worlds)
    assert joined == whole
    names = ("added", "changed", "renamed", "gone", "left_out_count")
    assert [whole[name] for name in names] == [50, 4, 6, 8, 25]
    assert len(whole["left_out"]) == len(whole["ids"]["added"]) == 20
    assert whole["turned_over"]["red"] > 0
    assert whole["new_features"] == ["heavy"]
    assert [one["feature"] for one in whole["drift"] if one["moved"]] == ["red"]
    assert table(worlds[1]).sort_index().equals(table(worlds[0]).sort_index())


def test_a_night_without_news_changes_nothing(worlds: tuple[World, World]) -> None:
    for world, parts in zip(worlds, ([None], PARTS), strict=True):
        night(world)
        for part in parts:
            night(world, shard=part)
    assert said(worlds[1]) == said(worlds[0])
    assert said(worlds[1])["version"] == 1


def test_a_part_says_for_which_others_the_table_waits(worlds: tuple[World, World]) -> None:
    whole, world = worlds
    night(whole)
    first = night(world, shard="2/3")
    assert first["waits_for"] == ["1/3", "3/3"]
    assert "part 2/3 is kept; the table is written with 1/3 and 3/3" in told(first)
    assert night(world, shard="1/3")["waits_for"] == ["3/3"]
    assert not (world.folder / "out" / "labels.parquet").exists()
    last = night(world, shard="3/3")
    assert (last["added"], last["paid_calls"], last["rows"], last["shards"]) == (60, 180, 60, 3)
    assert "waits_for" not in last
    assert table(world).sort_index().equals(table(whole).sort_index())
    assert list((world.folder / "out" / "parts").iterdir()) == []


def test_parts_of_another_meaning_are_not_joined(worlds: tuple[World, World]) -> None:
    whole, world = worlds
    for part in PARTS[:2]:
        night(world, shard=part, features="red: It is red.")
    assert night(world, shard="3/3")["waits_for"] == ["1/3", "2/3"]
    for part in PARTS[:2]:
        night(world, shard=part)
    night(whole)
    assert table(world).sort_index().equals(table(whole).sort_index())
    assert list((world.folder / "out" / "parts").iterdir()) == [], "what the first attempt left is gone too"


def test_rows_that_are_gone_keep_no_labels_of_an_earlier_voter(worlds: tuple[World, World]) -> None:
    for world, parts in zip(worlds, ([None], PARTS), strict=True):
        night(world)
        world.texts.pop("e000005")
        world.write()
        for part in parts:
            night(world, shard=part, votes=3, backfill=True)
        assert table(world).loc["e000005", list(world.traits)].isna().all()
    assert said(worlds[1]) == said(worlds[0])


def test_a_budget_that_is_used_up_ends_a_version_and_the_next_night_goes_on(worlds: tuple[World, World]) -> None:
    whole, world = worlds
    night(whole)
    stopped = [night(world, shard=part, budget="0.1") for part in PARTS][-1]
    assert (stopped["stopped_because"], stopped["partial"], stopped["version"]) == ("budget", True, 1)
    assert "raise --budget" in stopped["message"]
    assert stopped["paid_calls"] == 100
    done = [night(world, shard=part, budget="0.1") for part in PARTS][-1]
    assert (done["stopped_because"], done["version"], done["paid_calls"]) == ("done", 2, 80)
    labels = [table(one)[list(one.traits)].sort_index() for one in worlds]
    assert labels[0].equals(labels[1])


def test_a_part_whose_server_dies_leaves_the_table_alone_and_the_same_command_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 24)
    with FakeOpenAI() as server:
        modest = "price=1,1&labels_per_request=4&grouping=feature&attempts=1&concurrency=1"
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&{modest}"
        first = night(world, shard="1/3", oracle=oracle)
        server.answers_left = 3
        with pytest.raises(OracleLost) as told_so:
            night(world, shard="2/3", oracle=oracle)
        assert "\n" not in str(told_so.value)
        assert "part 2/3 is not complete and the table is as it was: the same command goes on" in str(told_so.value)
        assert not (world.folder / "out" / "labels.parquet").exists()
        server.answers_left = None
        with Store.open(str(world.folder / "store.sqlite")) as store:
            kept = sum(one.kind == "label" for one in every_answer(store)) - first["paid_calls"]
        second = night(world, shard="2/3", oracle=oracle)
        assert 0 < kept == second["cached_calls"] == 3 * second["added"] - second["paid_calls"]
        last = night(world, shard="3/3", oracle=oracle)
    assert (last["added"], last["stopped_because"]) == (24, "done")
    assert table(world)[list(world.traits)].notna().all(axis=None)
    assert first["added"] + second["added"] < 24


def test_a_part_reads_its_own_pictures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        Image.new("RGB", (8, 8 + number)).save(tmp_path / f"{number}.png")
    read: list[str] = []

    def read_and_tell(image: str, home: str | None) -> bytes:
        read.append(Path(image).name)
        return read_bytes(image, home)

    monkeypatch.setattr(load, "read_bytes", read_and_tell)
    found = list(load.iter_examples(str(tmp_path), wanted=lambda name: name in ("3.png", "7.png")))
    assert sorted(read) == sorted(one.id for one in found) == ["3.png", "7.png"]
