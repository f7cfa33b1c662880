"""A large table and a few new rows: what is asked, how soon, and what stays as it is."""

from __future__ import annotations

import time
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.growing_worlds import World
from twothirds.flows.enrich.batches import LabelledBatch, Labeller
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models import AnswersPending, LabelBatch
from twothirds.reports.versions import VersionedTable, read_table, write_table
from twothirds.sources.dataset import Example, Quarantined, digest_of_content
from twothirds.sources.load import iter_examples

ROWS, NEW = 10_000, 10
PAID = "simulated?price=0.001"


def fill(world: World, out: Path) -> None:
    """As if all its rows had been labelled by the same oracle before."""
    table_schema = read_table(out).table_schema
    table = VersionedTable(table_schema, list(world.texts))
    digests = b"".join(bytes.fromhex(digest_of_content(text, None)) for text in world.texts.values())
    table.digests = np.frombuffer(digests, np.uint8).reshape(-1, 32).copy()
    table.versions = np.ones(len(world.texts), np.int32)
    table.labels = np.array([world.truth(name) for name in world.texts], np.int8)
    write_table(out, table)


def test_ten_new_rows_among_ten_thousand_are_asked_about_at_once_and_nothing_else_is(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 3)
    out = tmp_path / "out"
    settings = EnrichSettings(
        dataset=world.spec, features=world.features, oracle=PAID, store=str(tmp_path / "store.sqlite"), out=str(out)
    )
    enrich_with(settings)
    world.add(ROWS - 3)
    fill(world, out)
    before = pq.read_table(out / "labels.parquet")
    new = world.add(NEW)
    asked: list[LabelBatch] = []
    started, first = time.process_time(), []  # of the processor: others may be using it, too

    def submit(labeller: Labeller, batch: LabelBatch) -> Future[LabelledBatch]:
        first.append(time.process_time() - started)
        asked.append(batch)
        done: Future[LabelledBatch] = Future()
        done.set_result(labeller(batch))
        return done

    summary = enrich_with(settings, submit=submit).to_json()
    assert [example.id for batch in asked for example in batch.examples] == new
    assert (summary["paid_calls"], summary["cached_calls"]) == (NEW * len(world.traits), 0)
    assert first[0] < 5
    after = pq.read_table(out / "labels.parquet")
    assert after.slice(0, ROWS).equals(before)
    assert after.num_rows == ROWS + NEW


@pytest.mark.parametrize(("oracle", "patience"), [(PAID, 0.0), (PAID, 600.0), ("simulated", 0.0), ("human", 0.0)])
def test_the_first_questions_wait_for_few_others_unless_people_answer_or_labels_are_computed(
    tmp_path: Path, oracle: str, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twothirds.flows.enrich.update.PATIENCE", patience)
    world = World(tmp_path / "world", 1000)
    sizes: list[int] = []

    def submit(labeller: Labeller, batch: LabelBatch) -> Future[LabelledBatch]:
        sizes.append(len(batch.examples) * len(batch.features))
        done: Future[LabelledBatch] = Future()
        done.set_result(labeller(batch))
        return done

    out = tmp_path / "out"
    settings = EnrichSettings(
        dataset=world.spec, features=world.features, oracle=oracle, store=str(tmp_path / "store.sqlite"), out=str(out)
    )
    with pytest.raises(AnswersPending) if oracle == "human" else nullcontext():
        enrich_with(settings, submit=submit)
    assert sum(sizes) == 1000 * len(world.traits)
    if oracle != PAID or patience:
        assert len(sizes) == 1, "what is read in no time shares its requests"
    else:
        assert sizes[:3] == [66, 258, 1026]  # whole examples of three labels
        assert read_table(out).ids == list(world.texts)


def test_pictures_that_were_readable_before_are_not_decoded_again(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    (found,) = iter_examples(str(tmp_path))
    assert isinstance(found, Quarantined)
    (trusted,) = iter_examples(str(tmp_path), known=lambda _: True)
    assert isinstance(trusted, Example)
