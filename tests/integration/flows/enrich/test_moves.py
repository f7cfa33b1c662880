"""Files that are renamed, copied and deleted between nights: one row for each example, and nothing is asked again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.growing_worlds import World, night, table
from twothirds.flows.enrich import summary as written_summary
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.reports.versions import nights_of
from twothirds.store import Store

MOVES = ("added", "changed", "renamed", "copies", "filled", "unchanged", "gone", "rows", "paid_calls")


class ContentWorld(World):
    """The truth is that of the content, whatever its name."""

    def truth(self, name: str) -> list[int]:
        drawn = np.random.default_rng([*self.texts[name].encode()]).integers(0, 2, len(self.traits))
        return [int(value) for value in drawn]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return ContentWorld(tmp_path / "world", 12)


def rename(world: World, old: str, new: str) -> None:
    world.texts[new] = world.texts.pop(old)
    world.write()


def moves(summary: dict[str, Any], *names: str) -> list[int]:
    return [summary[name] for name in names]


def assert_true(world: World) -> None:
    """Each example has its row, with the labels of its content."""
    labelled = table(world)[list(world.traits)].loc[list(world.texts)]
    assert labelled.to_numpy().tolist() == [world.truth(name) for name in world.texts]


def test_a_copy_is_a_row_of_its_own_with_the_same_labels(world: World) -> None:
    night(world)
    world.texts["a copy"] = world.texts["e000003"]
    world.write()
    summary = night(world)
    assert moves(summary, "renamed", "copies", "added", "gone", "paid_calls", "rows") == [0, 1, 0, 0, 0, 13]
    assert summary["ids"] == {"copies": ["a copy"]}
    assert EnrichSummary.read(world.folder / "out").lines()[0] == "1 copy, 12 unchanged; 13 rows"
    assert_true(world)
    assert moves(night(world), "renamed", "copies", "unchanged", "paid_calls", "version") == [0, 0, 13, 0, 2]


def test_of_ten_copies_one_is_deleted_and_none_is_renamed(world: World) -> None:
    world.texts |= {f"copy {number}": world.texts["e000003"] for number in range(9)}
    world.write()
    assert moves(night(world), "added", "rows") == [21, 21]
    del world.texts["e000003"]
    world.write()
    assert moves(night(world), "renamed", "copies", "gone", "rows", "paid_calls") == [0, 0, 1, 21, 0]
    world.texts["copy 9"] = world.texts["copy 0"]
    world.write()
    summary = night(world)
    assert moves(summary, "renamed", "copies", "gone", "rows", "paid_calls") == [1, 0, 0, 21, 0]
    assert_true(world)


def test_a_renamed_file_with_another_content_is_new_and_its_old_row_is_gone(world: World) -> None:
    night(world)
    rename(world, "e000003", "r000003")
    world.texts["r000003"] = "rewritten"
    world.write()
    assert moves(night(world), "added", "renamed", "gone", "rows", "paid_calls") == [1, 0, 1, 13, 3]
    assert moves(night(world, drop_gone=True), "gone", "dropped", "rows") == [1, 1, 12]
    assert_true(world)


def test_files_that_swap_names_or_take_each_others_are_renamed(world: World) -> None:
    night(world)
    texts = world.texts
    texts["e000001"], texts["e000002"] = texts["e000002"], texts["e000001"]
    rename(world, "e000005", "e000006")  # which is gone
    rename(world, "e000007", "r000007")
    texts["e000007"] = "new under an old name"
    world.write()
    summary = night(world)
    assert moves(summary, "renamed", "copies", "changed", "gone", "rows", "paid_calls") == [4, 0, 1, 0, 11 + 1, 3]
    assert summary["rows"] == len(world.texts)
    assert_true(world)


def test_a_row_moves_with_its_corrections_predictions_and_place_in_the_list_of_nights(world: World) -> None:
    night(world)
    before = table(world)
    rename(world, "e000003", "r000003")
    world.texts["a copy"] = world.texts["e000004"]
    del world.texts["e000008"]
    world.write()
    summary = night(world, drop_gone=True)
    assert moves(summary, "renamed", "copies", "gone", "dropped", "rows", "paid_calls") == [1, 1, 1, 1, 12, 0]
    assert (table(world).loc["r000003"] == before.loc["e000003"]).all(), "labels, and the version they are from"
    rows = pd.read_parquet(world.folder / "out" / "history" / "version=2" / "rows.parquet").set_index("id")["gone"]
    assert rows.to_dict() == {"r000003": False, "a copy": False, "e000003": True, "e000008": True}
    last = nights_of(world.folder / "out")[-1]
    assert (last.rows, last.gone, last.renamed, last.copies) == (2, 1, 1, 1)


def test_what_was_missing_is_asked_once_under_the_new_name(world: World) -> None:
    night(world, features="red: It is red.")
    rename(world, "e000003", "r000003")
    summary = night(world, backfill=True)
    assert moves(summary, "renamed", "filled", "gone", "rows", "paid_calls") == [1, 11, 0, 12, 24]
    assert_true(world)


def test_a_night_that_ends_early_moves_nothing_and_the_next_one_does(world: World) -> None:
    night(world)
    before = table(world)
    rename(world, "e000003", "r000003")
    rename(world, "e000005", "e000006")
    world.texts["a copy"] = world.texts["e000004"]
    world.add(20)
    stopped = night(world, "one", budget="0.01")
    assert stopped["stopped_because"] == "budget"
    assert moves(stopped, "renamed", "copies", "gone") == [0, 0, 0]
    there = table(world)
    assert (there.loc[before.index] == before).all(axis=None)
    assert not {"r000003", "a copy"} & set(there.index)
    summary = night(world, "two")
    assert moves(summary, "renamed", "copies", "gone", "rows") == [2, 1, 0, len(world.texts)]
    assert stopped["paid_calls"] + summary["paid_calls"] == 60
    assert_true(world)


def test_a_folder_of_which_every_file_is_renamed_takes_time_in_proportion(tmp_path: Path) -> None:
    seconds = []
    for rows in (500, 5_000):
        world = ContentWorld(tmp_path / str(rows), rows, ("red",))
        night(world, oracle="simulated")
        world.texts = {f"r{name}": text for name, text in world.texts.items()}
        world.write()
        started = time.process_time()
        assert moves(night(world, oracle="simulated"), "renamed", "gone", "rows") == [rows, 0, rows]
        seconds.append(time.process_time() - started)
    assert seconds[1] < 20 * seconds[0] + 1


def ids_in_history(world: World) -> set[str]:
    versions = sorted((world.folder / "out" / "history").glob("*"), key=lambda path: int(path.name.partition("=")[2]))
    rows = pd.concat([pd.read_parquet(path / "rows.parquet", partitioning=None) for path in versions])
    return set(rows.drop_duplicates("id", keep="last").query("not gone")["id"])


class Killed(BaseException):
    pass


@contextmanager
def killed_at(step: str) -> Iterator[None]:
    def kill(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(written_summary, step, kill)
        yield


IDS = st.integers(0, 9)
CHANGE = st.tuples(st.sampled_from(["rename", "copy", "delete", "rewrite", "swap", "add"]), IDS, IDS)


def change(world: World, kind: str, first: str, second: str, content: str) -> None:
    texts = world.texts
    if kind == "add":
        texts[first] = content
    if first not in texts:
        return
    if kind == "rename":
        texts[second] = texts.pop(first)
    elif kind == "copy":
        texts[second] = texts[first]
    elif kind == "delete" and len(texts) > 1:
        del texts[first]
    elif kind == "rewrite":
        texts[first] = content
    elif kind == "swap" and second in texts:
        texts[first], texts[second] = texts[second], texts[first]


PRICE = 1_000  # micro-dollars, of a question
NIGHT = st.tuples(st.lists(CHANGE, max_size=6), st.sampled_from(["", "", "write_table", "write_history", "budget"]))


@settings(max_examples=5, phases=[Phase.generate])  # to find a smaller case takes minutes
@given(nights=st.lists(NIGHT, min_size=2, max_size=3), drop_gone=st.booleans())
def test_over_random_nights_each_example_is_one_row_and_no_content_is_asked_twice(
    nights: list[tuple[list[tuple[str, int, int]], str]], *, drop_gone: bool
) -> None:
    with TemporaryDirectory() as folder:
        world = ContentWorld(Path(folder) / "world", 4, ("red", "round"))
        night(world)
        contents, number = set(world.texts.values()), 0
        for changes, ending in nights:
            for kind, first, second in changes:
                number += 1
                change(world, kind, f"e{first:06}", f"e{second:06}", f"content {number}")
            world.write()
            contents |= set(world.texts.values())
            if ending == "budget":
                night(world, drop_gone=drop_gone, budget="0.003")
            elif ending:
                with killed_at(ending):
                    night(world, drop_gone=drop_gone)
            summary = night(world, drop_gone=drop_gone)
            assert_true(world)
            rows = table(world)
            assert len(rows) == len(world.texts) + (0 if drop_gone else summary["gone"])
            assert ids_in_history(world) == set(rows.index)
        with Store.open(str(world.folder / "store.sqlite")) as store:
            assert sum(run.paid for run in store.costs.nights()) == 2 * PRICE * len(contents)
