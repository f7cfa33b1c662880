"""Reads a data set: examples from the rows that can be used, reasons for the others, and the remaining columns."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from twothirds.sources.dataset import (
    Dataset,
    Example,
    Quarantined,
    Truth,
    digest_of_content,
    digest_of_examples,
    read_bytes,
)
from twothirds.sources.errors import DatasetError, Unreadable, Vanished
from twothirds.sources.files.location import is_url
from twothirds.sources.find import ACCEPTED, find_rows, find_truth, name_of
from twothirds.sources.pictures.images import problem_of
from twothirds.sources.printable import quoted
from twothirds.sources.rows import ANY, Columns, Row, Rows
from twothirds.sources.truth import read_truth

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int | None], None]  # rows done, rows in all where that is known

THREADS = min(4, os.cpu_count() or 1)
ROWS_TOGETHER = 32  # at most, for one thread: handing over a small file takes longer than reading it


def load_dataset(spec: str, columns: Columns = ANY, *, progress: Progress | None = None) -> Dataset:
    """All of a data set: a folder of images or texts, a table, an archive, or an fsspec URL of one of these.

    Raises DatasetError if there is no data set, nothing in it can be read, or the truth beside it does not fit.
    """
    examples: list[Example] = []
    quarantined: list[Quarantined] = []
    remarks: list[str] = []
    for found in iter_examples(spec, columns, progress=progress, remark=remarks.append):
        if isinstance(found, Example):
            examples.append(found)
        else:
            quarantined.append(found)
    if not examples:
        raise DatasetError(_nothing_readable(spec, quarantined))
    return Dataset(
        name=name_of(spec),
        spec=spec,
        examples=tuple(examples),
        quarantined=tuple(quarantined),
        truth=_truth_of(spec, examples, quarantined),
        digest=digest_of_examples(examples),
        columns=columns,
        remarks=tuple(remarks),
    )


def iter_examples(
    spec: str,
    columns: Columns = ANY,
    *,
    progress: Progress | None = None,
    known: Callable[[str], bool] = lambda _: False,
    wanted: Callable[[str], bool] = lambda _: True,
    remark: Callable[[str], None] = lambda _: None,
) -> Iterator[Example | Quarantined]:
    """The rows of a data set in order, as a stream: only a few are in memory at a time.

    A picture whose digest is `known` to be readable is not decoded again, which takes most of the time. Rows whose id
    is not `wanted` are skipped unread. `remark` is called with what people should know about how it was read."""
    yield from examples_in(find_rows(spec, columns), progress=progress, known=known, wanted=wanted, remark=remark)


def examples_in(
    source: Rows,
    *,
    progress: Progress | None = None,
    known: Callable[[str], bool] = lambda _: False,
    wanted: Callable[[str], bool] = lambda _: True,
    remark: Callable[[str], None] = lambda _: None,
) -> Iterator[Example | Quarantined]:
    """The same of rows that are listed already, which can be read once."""
    ids: set[str] = set()
    for done, found in enumerate(_examine_all(source, known, wanted), 1):
        if progress is not None:
            progress(done, None if source.total is None else max(source.total, done))
        if isinstance(found, Quarantined):
            yield found
        elif found.id in ids:
            yield Quarantined(found.id, "duplicate id: the first one is kept")
        else:
            ids.add(found.id)
            yield found
    for line in source.remarks:
        remark(line)


def _examine_all(
    source: Rows, known: Callable[[str], bool], wanted: Callable[[str], bool]
) -> Iterator[Example | Quarantined]:
    """In the order of the rows. Pictures are read and decoded in threads, a few rows ahead of the consumer: files of
    this machine in parts that grow from one row, so that the first one comes at once; others wait for the network."""
    waiting: deque[Future[list[Example | Quarantined]] | list[Example | Quarantined]] = deque()
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="examine")
    part, together = list[Row](), 1

    def start() -> None:
        nonlocal part
        if part:
            waiting.append(pool.submit(_examine_part, part, known, source.home))
            part = []

    try:
        for row in filter(lambda row: wanted(row.name), source.rows):
            if row.image is None or row.content is not None or is_url(row.image):
                start()
                examine = partial(_examine_part, [row], known, source.home)
                waiting.append(examine() if row.image is None else pool.submit(examine))
            else:
                part.append(row)
                if len(part) >= together:
                    start()
                    together = min(2 * together, ROWS_TOGETHER)
            while len(waiting) > 4 * THREADS:
                yield from _result(waiting.popleft())
        start()
        while waiting:
            yield from _result(waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def vanished(examples: Sequence[Example]) -> list[Quarantined]:
    """Those whose picture is gone, has changed since they were read, or cannot be opened."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="examine") as pool:
        return [found for found in pool.map(_vanished, examples) if found is not None]


def _vanished(example: Example) -> Quarantined | None:
    try:
        bad = problem_of(example.image_bytes()) if example.image is not None else None
    except Vanished as problem:
        bad = str(problem)
    return None if bad is None else Quarantined(example.id, bad)


def _result(found: Future[list[Example | Quarantined]] | list[Example | Quarantined]) -> list[Example | Quarantined]:
    return found.result() if isinstance(found, Future) else found


def _examine_part(rows: Sequence[Row], known: Callable[[str], bool], home: str | None) -> list[Example | Quarantined]:
    return [_examine(row, known, home) for row in rows]


def _examine(row: Row, known: Callable[[str], bool], home: str | None) -> Example | Quarantined:
    if row.problem is not None:
        return Quarantined(row.name, row.problem)
    if row.image is None:
        if row.text is None:
            raise ValueError(f"row {row.name!r} has neither text nor image nor problem")
        return Example(row.name, digest_of_content(row.text, None), text=row.text)
    try:
        content = row.content if row.content is not None else read_bytes(row.image, home)
    except Unreadable as problem:
        return Quarantined(row.name, str(problem))
    digest = digest_of_content(row.text, content)
    bad = None if known(digest) else problem_of(content)
    if bad is not None:
        return Quarantined(row.name, bad)
    return Example(row.name, digest, text=row.text, image=row.image, home=home)


def _nothing_readable(spec: str, quarantined: list[Quarantined]) -> str:
    if not quarantined:
        return f"data set {quoted(spec)} has no rows: {ACCEPTED}"
    more = f", and {len(quarantined) - 1} more" if len(quarantined) > 1 else ""
    return f"nothing in data set {quoted(spec)} can be read: {quarantined[0]}{more}"


def _truth_of(spec: str, examples: list[Example], quarantined: list[Quarantined]) -> Truth | None:
    location = find_truth(spec)
    if location is None:
        return None
    return read_truth(location, [example.id for example in examples], {bad.id for bad in quarantined})


def read_metadata(dataset: Dataset, only: Collection[str] | None = None) -> pd.DataFrame:
    """The other columns of the table: one row per example (those that are in `only`), in their order, indexed by id.
    A folder of classes without a metadata table has the column `label`."""
    import pandas as pd

    ids = [example.id for example in dataset.examples if only is None or example.id in only]
    wanted = set(ids)
    found: dict[str, dict[str, object]] = {}
    for row in find_rows(dataset.spec, dataset.columns).rows:
        if row.problem is None and row.name in wanted and row.name not in found:
            found[row.name] = dict(row.extra)
    rows = [{"id": name, **found.get(name, {})} for name in ids]
    return pd.DataFrame(rows).set_index("id")
