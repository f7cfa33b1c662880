"""The browser's answers over a real server: columns, marks, exports, discoveries under way, what is refused."""

from __future__ import annotations

import base64
import fcntl
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.support.browsed_runs import NAMES, browsed_run, table_of
from tests.support.made import write_film
from tests.support.review_site import Visitor
from tests.support.run_folders import make_run, random_matrix
from tests.support.studio_site import StudioSite, own_studio
from twothirds.models.contrastive.vector_file import VectorFile
from twothirds.reports.finished_run import Run
from twothirds.sources.load import load_dataset


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return browsed_run(tmp_path / "runs" / "people", pictures=False)


@pytest.fixture
def site(run: Run, studio: StudioSite) -> StudioSite:
    del run
    return studio


@pytest.fixture
def editor(site: StudioSite) -> Visitor:
    return site.staff("Ann", "editor")


def asked(editor: Visitor, address: str, *pairs: tuple[str, object]) -> Any:
    reply = editor.client.get(f"{address}?{urlencode(pairs)}")
    assert reply.status_code == 200, reply.text
    return reply.json()


def bits(rows: list[int], count: int) -> str:
    packed = np.packbits(np.isin(np.arange(count), rows), bitorder="little")
    return base64.urlsafe_b64encode(packed.tobytes()).decode().rstrip("=")


def test_the_first_page_and_the_next_ones_come_from_the_server(site: StudioSite, run: Run, editor: Visitor) -> None:
    address = f"/runs/{site.key(run)}/browse"
    about = asked(editor, f"{address}/about")
    assert [one["name"] for one in about["columns"]] == ["place", "age", "drawn by", "source"]
    assert [one["name"] for one in about["features"]] == NAMES
    assert (about["total"], about["texts"], about["pictured"], about["embedded"]) == (60, True, False, False)
    first = asked(editor, f"{address}/found", ("count", 25))
    after = asked(editor, f"{address}/found", ("start", 25), ("count", 1_000))
    ids = [one["id"] for one in (*first["tiles"], *after["tiles"])]
    assert ids == run.findings.ids
    assert len(first["tiles"]) == 25
    assert first["live"] == ""


def test_what_is_invited_sees_no_secret_of_an_address(site: StudioSite, run: Run, editor: Visitor) -> None:
    address = f"/runs/{site.key(run)}/browse"
    for path in ("about", "found?count=60", "example?row=3"):
        assert "secret" not in editor.client.get(f"{address}/{path}").text
    editor.get(address)
    reply = editor.post(f"{address}/export", {"kind": "parquet", "rows": bits([0, 1], 60)})
    assert pd.read_parquet(io.BytesIO(reply.content))["source"].tolist() == [f"https://example.org/{n}" for n in (0, 1)]


def test_a_selection_is_exported_as_ids_and_as_parquet(site: StudioSite, run: Run, editor: Visitor) -> None:
    address, rows = f"/runs/{site.key(run)}/browse", [1, 7, 59]
    editor.get(address)
    reply = editor.post(f"{address}/export", {"kind": "ids", "rows": bits(rows, 60)})
    assert reply.text.splitlines() == [run.findings.ids[row] for row in rows]
    assert "attachment" in reply.headers["content-disposition"]
    reply = editor.post(f"{address}/export", {"kind": "parquet", "rows": bits(rows, 60)})
    table = pd.read_parquet(io.BytesIO(reply.content)).set_index("id")
    assert table.index.tolist() == [run.findings.ids[row] for row in rows]
    labels = run.labels.iloc[rows]
    for name in NAMES:
        pd.testing.assert_series_equal(table[name].astype("Int8"), labels[name].astype("Int8"), check_names=False)
    assert table["glasses (by)"].fillna("").tolist() == ["Ann", "", ""]
    own = pd.read_csv(run.folder.parents[1] / "people.csv", keep_default_na=False).set_index("id")
    assert table["drawn by"].tolist() == own.loc[table.index, "drawn by"].tolist()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"kind": "ids", "rows": ""}, 422),
        ({"kind": "ids", "rows": "ü"}, 422),
        ({"kind": "ids", "rows": "AAAA"}, 422),
        ({"kind": "zip", "rows": "Bw"}, 422),
        ({"kind": "ids", "rows": "_" * 200}, 200),
        ({"kind": "ids", "rows": "A" * 200_000}, 413),
    ],
)
def test_what_is_no_selection_is_refused(
    site: StudioSite, run: Run, editor: Visitor, fields: dict[str, str], status: int
) -> None:
    editor.get(f"/runs/{site.key(run)}/browse")
    assert editor.post(f"/runs/{site.key(run)}/browse/export", fields).status_code == status


@pytest.mark.parametrize(
    "query",
    [
        "start=-1&count=x",
        "count=99999999999999999999",
        "sort=near.nobody&sort=embedding.note-1",
        "from.age=nan&to.age=1e999&is.=&look.place=%00",
        "any=everything&yes=&no=%FF%FE",
        "sort=column.&reverse=2",
    ],
)
def test_no_question_breaks_the_server(site: StudioSite, run: Run, editor: Visitor, query: str) -> None:
    for path in ("found", "all", "example"):
        assert editor.client.get(f"/runs/{site.key(run)}/browse/{path}?{query}").status_code == 200
    assert asked(editor, f"/runs/{site.key(run)}/browse/example", ("row", 10**9)) is None
    assert editor.client.get(f"/runs/{site.key(run)}/browse/found?{'q=a&' * 2_000}").status_code == 422


def test_a_correction_counts_at_once(site: StudioSite, run: Run, editor: Visitor) -> None:
    key = site.key(run)
    before = asked(editor, f"/runs/{key}/browse/found", ("corrected", "hat"))
    editor.get(f"/runs/{key}/correct?which=all")
    fields = {"example": run.findings.ids[9], "feature": "hat", "label": "yes", "seen": "3"}
    assert editor.post(f"/runs/{key}/correct", fields).status_code == 303
    after = asked(editor, f"/runs/{key}/browse/found", ("corrected", "hat"), ("count", 9))
    assert (before["matching"], after["matching"]) == (0, 1)
    assert [one["id"] for one in after["tiles"]] == [run.findings.ids[9]]
    example = asked(editor, f"/runs/{key}/browse/example", ("id", run.findings.ids[9]))
    assert example["labels"][NAMES.index("hat")] == {
        "label": "yes",
        "words": "corrected by Ann",
        "doubtful": False,
        "contradicted": False,
    }


def test_examples_of_a_discovery_under_way_can_be_chosen_to_ask_about(site: StudioSite, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "live"
    folder.mkdir()
    settings = {"dataset": str(tmp_path / "people.csv")}
    begun = {"kind": "RunStarted", "run_id": "1", "name": "people", "settings": settings}
    (folder / "live.jsonl").write_text(json.dumps(begun) + "\n")
    from twothirds.studio.catalog import key_of

    editor, key = site.staff("Ann", "editor"), key_of(folder.resolve())
    address = f"/runs/{key}/browse"
    assert "has written no labels yet" in editor.get(address).text
    assert asked(editor, f"{address}/about")["finished"] is False
    assert asked(editor, f"{address}/found", ("is.place", "studio"), ("count", 3))["live"] == ""
    with (folder / "live.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = asked(editor, f"{address}/found", ("is.place", "studio"), ("count", 3))
    assert found["live"] == f"/runs/{key}/discovery"
    assert [one["id"] for one in found["tiles"]]
    assert editor.post(f"{address}/export", {"kind": "ids", "rows": "Bw"}).status_code == 200
    assert editor.post(f"{address}/export", {"kind": "parquet", "rows": "Bw"}).status_code == 422
    (tmp_path / "people.csv").unlink()
    (folder / "live.jsonl").write_text(json.dumps(begun | {"settings": settings | {"text_column": "text"}}) + "\n")
    reply = editor.client.get(f"{address}/about")
    assert reply.status_code == 422
    assert "cannot be read" in reply.text


def test_examples_are_alike_by_the_vectors_that_are_kept(store_cache: Path, tmp_path: Path) -> None:
    run = browsed_run(tmp_path / "runs" / "people", pictures=False)
    examples = load_dataset(str(tmp_path / "people.csv")).examples
    vectors = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = VectorFile(store_cache / "a-model.v1", 6)
    kept.add({one.digest: vector for one, vector in zip(examples, vectors, strict=True)})
    with own_studio(tmp_path) as site:
        editor, address = site.staff("Ann", "editor"), f"/runs/{site.key(run)}/browse"
        assert asked(editor, f"{address}/about")["embedded"] is True
        found = asked(editor, f"{address}/found", ("sort", f"embedding.{examples[4].id}"), ("count", 60))
    assert [one["place"] for one in found["tiles"]] == np.argsort(-(vectors @ vectors[4]), kind="stable").tolist()
    assert found["tiles"][0]["note"] == "1.00 alike"


@pytest.fixture
def store_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from twothirds.flows.settings import Environment

    folder = Environment.read().cache / "embeddings"
    assert str(tmp_path) in str(folder)
    return folder


SIZES = ("small-still", "large")  # in the grid, and of an example that is opened


def test_animations_rest_in_the_grid_and_move_when_opened(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    frames = [Image.new("RGB", (40, 20), colour) for colour in ("red", "blue", "green")]
    frames[0].save(tmp_path / "pictures" / "a.gif", save_all=True, append_images=frames[1:], duration=80, loop=0)
    frames[1].save(tmp_path / "pictures" / "b.png")
    write_film(tmp_path / "pictures" / "c.mp4", ["red"] * 3 + ["blue"] * 3)
    ids = ["a.gif", "b.png", "c.mp4"]
    run = make_run(tmp_path / "runs" / "gifs", str(tmp_path / "pictures"), ids, ["red"], random_matrix(1, 3))
    with own_studio(tmp_path) as site:
        editor, key = site.staff("Ann", "editor"), site.key(run)
        shown = [asked(editor, f"/runs/{key}/browse/example", ("row", row)) for row in range(3)]
        assert [(one["moves"], one["film"]) for one in shown] == [(True, False), (False, False), (False, True)]
        kinds = [editor.client.get(f"/runs/{key}/media/2/{size}").headers["content-type"] for size in SIZES]
        assert kinds == ["image/webp", "video/mp4"]
        for size, frames_there in zip(SIZES, (1, 3), strict=True):
            content = editor.client.get(f"/runs/{key}/media/0/{size}").content
            assert getattr(Image.open(io.BytesIO(content)), "n_frames", 1) == frames_there


def test_a_run_without_its_data_set_is_browsed_by_its_ids(site: StudioSite, run: Run, tmp_path: Path) -> None:
    (tmp_path / "people.csv").unlink()
    editor = site.staff("Ann", "editor")
    about = asked(editor, f"/runs/{site.key(run)}/browse/about")
    assert (about["columns"], about["texts"], about["pictured"]) == ([], False, False)
    assert asked(editor, f"/runs/{site.key(run)}/browse/found", ("q", "note-7"))["matching"] == 1


def test_a_run_without_features_is_browsed_by_its_columns(site: StudioSite, tmp_path: Path) -> None:
    ids = table_of(tmp_path / "other", 12, pictures=False)
    bare = make_run(tmp_path / "runs" / "bare", str(tmp_path / "other" / "people.csv"), ids, [], random_matrix(0, 12))
    found = asked(
        site.staff("Ann", "editor"), f"/runs/{site.key(bare)}/browse/found", ("sort", "doubt"), ("any", "doubtful")
    )
    assert (found["matching"], found["features"], found["any"]) == (0, [], [0] * 5)


@pytest.mark.parametrize(("file", "path"), [("run.json", ""), ("answers.jsonl", "/about"), ("answers.jsonl", "/found")])
def test_a_damaged_run_is_reported_in_one_line(
    site: StudioSite, run: Run, editor: Visitor, file: str, path: str
) -> None:
    (run.folder / file).write_text("nonsense")
    reply = editor.client.get(f"/runs/{site.key(run)}/browse{path}")
    assert (reply.status_code, file in reply.text) == (422, True)
