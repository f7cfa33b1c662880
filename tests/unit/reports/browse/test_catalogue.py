"""What matches, how many would, and in which order: against pandas, for any choice."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.browsed_runs import NAMES, browsed_run
from twothirds.discovery import UNKNOWN
from twothirds.reports.browse.catalogue import MARKS, MOST_VALUES, OF_A_FEATURE, BrowseChoice, ExampleCatalogue
from twothirds.reports.browse.columns import browsed_columns, cell_text, natural_order
from twothirds.reports.finished_run import Run
from twothirds.reports.run.attributes import Attribute, Value


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return browsed_run(tmp_path_factory.mktemp("browsed") / "runs" / "people", pictures=False)


@pytest.fixture(scope="module")
def table(run: Run) -> pd.DataFrame:
    return pd.read_csv(run.folder.parents[1] / "people.csv", dtype=str, keep_default_na=False).set_index("id")


@pytest.fixture(scope="module")
def catalogue(run: Run, table: pd.DataFrame) -> ExampleCatalogue:
    columns = browsed_columns(table.drop(columns="text"), (), run.findings.ids)
    return ExampleCatalogue(run.findings, list(table["text"]), columns)


def chosen(text: str) -> BrowseChoice:
    return BrowseChoice.of(parse_qsl(text, keep_blank_values=True))


def ids_of(catalogue: ExampleCatalogue, text: str) -> list[str]:
    found = catalogue.find(chosen(text), 0, 1_000)
    assert found["matching"] == len(found["places"])
    return [catalogue.ids[place] for place in found["places"]]


facets = st.one_of(
    st.tuples(st.sampled_from(OF_A_FEATURE), st.sampled_from(NAMES)),
    st.tuples(st.just("any"), st.sampled_from(MARKS)),
    st.tuples(st.just("is.place"), st.sampled_from(["garden", "studio"])),
    st.tuples(st.just("empty.place"), st.just("1")),
    st.tuples(st.just("from.age"), st.integers(20, 50).map(str)),
    st.tuples(st.just("q"), st.sampled_from(["note-1", "GARDEN", "studios note", "zebra"])),
)


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(facets, max_size=4))
def test_what_matches_is_what_each_facet_leaves(
    run: Run, catalogue: ExampleCatalogue, table: pd.DataFrame, pairs: list[tuple[str, str]]
) -> None:
    marks = {one.name: one.by_name for one in catalogue.features}
    words = next((value for key, value in pairs if key == "q"), "").lower().split()
    keep = np.ones(len(catalogue.ids), bool)
    for key, value in pairs:
        if key in OF_A_FEATURE:
            keep &= marks[value][key]
        elif key == "any":
            keep &= np.any([marks[name][value] for name in NAMES], axis=0)
    places = {value for key, value in pairs if key == "is.place"} | {"" for key, _ in pairs if key == "empty.place"}
    if places:
        keep &= table["place"].isin(places).to_numpy()
    low = [float(value) for key, value in pairs if key == "from.age"][-1:]
    if low:
        keep &= (pd.to_numeric(table["age"]) >= low[0]).to_numpy()
    searched = (table.index + "\n" + table["text"]).str.lower()
    keep &= np.array([all(word in text for word in words) for text in searched])
    choice = BrowseChoice.of(pairs)
    found = catalogue.find(choice, 0, 1_000)
    assert found["places"] == np.flatnonzero(keep).tolist() == catalogue.matching(choice)
    for mark, name in {(mark, name) for mark, name in choice.features if mark in ("doubtful", "corrected")}:
        count = found["features"][NAMES.index(name)][OF_A_FEATURE.index(mark)]
        assert count == keep.sum(), "what is chosen counts what matches"
    assert run.findings.ids == catalogue.ids


@settings(max_examples=40, deadline=None)
@given(pairs=st.lists(facets, max_size=3), name=st.sampled_from(NAMES), mark=st.sampled_from(OF_A_FEATURE))
def test_a_count_is_what_would_match(
    catalogue: ExampleCatalogue, pairs: list[tuple[str, str]], name: str, mark: str
) -> None:
    before = catalogue.find(BrowseChoice.of(pairs))
    sides = ("yes", "no", "unknown")
    others = [(key, of) for key, of in pairs if of != name or (key != mark and not (mark in sides and key in sides))]
    after = catalogue.find(BrowseChoice.of([*others, (mark, name)]))
    assert before["features"][NAMES.index(name)][OF_A_FEATURE.index(mark)] == after["matching"]


def test_values_are_counted_the_frequent_first_and_found_by_a_part(
    catalogue: ExampleCatalogue, table: pd.DataFrame
) -> None:
    place, age, drawn, source = catalogue.find(chosen(""))["columns"]
    assert dict(place["values"]) == table["place"][table["place"] != ""].value_counts().to_dict()
    assert place["empty"] == (table["place"] == "").sum()
    assert sum(age["bins"]) + age["empty"] == len(table)
    assert len(drawn["values"]) == MOST_VALUES
    assert drawn["more"] == table["drawn by"].nunique() - MOST_VALUES
    found = catalogue.find(chosen("look.drawn+by=drawer+1&is.drawn+by=Drawer+3"))["columns"][2]
    assert all("drawer 1" in value.lower() or value == "Drawer 3" for value, _ in found["values"])
    assert "Drawer 3" in dict(found["values"]), "what is chosen stays in sight"
    assert all("secret" not in value for value, _ in source["values"])


def test_a_range_holds_its_ends_and_leaves_out_what_has_no_number(
    catalogue: ExampleCatalogue, table: pd.DataFrame
) -> None:
    ages = pd.to_numeric(table["age"]).dropna()
    low, high = ages.quantile([0.25, 0.75], interpolation="nearest")
    assert ids_of(catalogue, f"from.age={low}&to.age={high}") == ages[ages.between(low, high)].index.tolist()


def test_examples_are_sorted_and_what_has_no_value_comes_last(catalogue: ExampleCatalogue, table: pd.DataFrame) -> None:
    ages = pd.to_numeric(table["age"])
    for reverse in (False, True):
        order = ages.sort_values(kind="stable", ascending=not reverse, na_position="last")
        text = "sort=column.age" + ("&reverse=1" if reverse else "")
        assert [table["age"][one] for one in ids_of(catalogue, text)] == [table["age"][one] for one in order.index]
    assert ids_of(catalogue, "sort=id") == sorted(table.index, key=natural_order)
    assert ids_of(catalogue, "reverse=1") == table.index.tolist()[::-1]
    assert ids_of(catalogue, "sort=column.nothing") == table.index.tolist()


def test_the_most_doubtful_come_first_and_a_person_leaves_no_doubt(run: Run, catalogue: ExampleCatalogue) -> None:
    glasses = next(one for one in catalogue.features if one.name == "glasses")
    found = catalogue.find(chosen("sort=doubt.glasses"), 0, 1_000)
    doubts = glasses.doubts[found["places"]]
    assert (np.diff(doubts[doubts >= 0].astype(int)) <= 0).all()
    assert set(glasses.doubts[list(run.findings.found[1].corrected)].tolist()) == {0}
    assert set(glasses.doubts[glasses.by_name["unknown"]].tolist()) == {100}
    scores = glasses.scores[catalogue.find(chosen("sort=score.glasses"), 0, 1_000)["places"]].astype(int)
    assert (np.diff(scores[scores >= 0]) <= 0).all()


def test_the_nearest_differ_in_the_fewest_features(run: Run, catalogue: ExampleCatalogue) -> None:
    matrix, row = run.findings.matrix, 7
    found = catalogue.find(chosen(f"sort=near.{catalogue.ids[row]}"), 0, 1_000)
    unknown = (matrix == UNKNOWN) | (matrix[:, [row]] == UNKNOWN)
    apart = (0.5 * unknown + (~unknown & (matrix != matrix[:, [row]]))).sum(axis=0)
    assert (np.diff(apart[found["places"][1:]]) >= 0).all()
    assert (found["places"][0], found["notes"][0]) == (row, "itself")
    assert found["notes"][1].endswith(f"of {len(NAMES)}")


def test_the_nearest_by_embedding_are_the_most_alike(run: Run) -> None:
    vectors = np.random.default_rng(0).normal(size=(len(run.findings.ids), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[9] = 0
    catalogue = ExampleCatalogue(run.findings, [None] * len(vectors), [], lambda: vectors)
    places = catalogue.find(chosen(f"sort=embedding.{catalogue.ids[3]}"), 0, 1_000)["places"]
    assert places[0] == 3
    assert places[-1] == 9, "what is not embedded comes last"
    assert (np.diff((vectors @ vectors[3])[places[:-1]]) <= 1e-6).all()


def test_what_an_old_link_names_is_reported(catalogue: ExampleCatalogue) -> None:
    found = catalogue.find(chosen("yes=moustache&is.place=moon&from.height=3&yes=hat"))
    assert found["ignored"] == ["moustache", "height", "place: moon"]


def test_attributes_are_columns_whose_values_keep_their_order(run: Run) -> None:
    codes = np.array([0, 2, 1, UNKNOWN] * 15)
    shade = Attribute("place", "", (Value("light"), Value("dark")), codes)
    table = pd.DataFrame({"place": ["a"] * 60}, index=run.findings.ids)
    first, second = browsed_columns(table, [shade], run.findings.ids)
    assert (first.name, first.values) == ("place", ("light", "dark", "none of these"))
    assert second.name == "place (column)"
    catalogue = ExampleCatalogue(run.findings, [None] * 60, [first, second])
    assert dict(catalogue.find(chosen(""))["columns"][0]["values"]) == {"light": 15, "dark": 15, "none of these": 15}
    assert catalogue.find(chosen("is.place=dark&is.place=light"))["matching"] == 30


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (None, ""),
        (math.nan, ""),
        (pd.NA, ""),
        (pd.NaT, ""),
        ("  ", ""),
        (True, "True"),
        (3.0, "3"),
        (1234567.5, "1234567.5"),
        (b"abc", "3 bytes"),
        ({"a": [1, 2]}, '{"a": [1, 2]}'),
        ("https://u:p@example.org/x?token=abc", "https://example.org/x?token=***"),
    ],
)
def test_cells_are_shown_as_texts_without_secrets(cell: Any, shown: str) -> None:
    assert cell_text(cell) == shown


def test_a_column_is_numbers_only_where_all_of_it_is(tmp_path: Path) -> None:
    del tmp_path
    ids = [str(number) for number in range(20)]
    table = pd.DataFrame(
        {"few": ["1", "2"] * 10, "many": ids, "mixed": [*ids[:-1], "n/a"], "none": [None] * 20}, index=ids
    )
    few, many, mixed = browsed_columns(table, (), ids)
    assert (few.numbers is None, many.numbers is None, mixed.numbers is None) == (True, False, True)
    assert few.values == ("1", "2")
    assert mixed.values[:3] == ("0", "1", "2"), "in natural order"
    part = many.among(np.array([3, 5]))
    assert part.span == (3, 5)
    assert mixed.among(np.array([2, 19])).values == ("2", "n/a")


def test_hostile_addresses_are_read_as_far_as_they_go() -> None:
    choice = chosen("from.age=nan&to.age=1e999&from.=1&is.=&any=everything&yes=&sort=column&reverse=yes&look.a=b&=x")
    assert choice.ranges == {"": (1.0, math.inf)}
    assert choice.any == ()
    assert choice.reverse is False
