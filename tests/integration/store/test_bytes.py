"""What paid labels take of the disk, twenty to a request; `python -m benchmarks store` measures more."""

from __future__ import annotations

from pathlib import Path

from benchmarks.store import PER_REQUEST, PRICE, SCOPE, begin, size_of, work
from store import Store
from store.schema import charges, packed_keys, packs
from tests.integration.store.test_packed import rows

MOST_BYTES = 120
LABELS = 5_120


def test_a_paid_label_takes_at_most_120_bytes_and_is_booked_like_any_other(tmp_path: Path) -> None:
    url = str(tmp_path / "store.sqlite")
    with Store.open(url) as store:
        begin(store, "first")
    empty = size_of(url)
    work(url, 0, LABELS // PER_REQUEST)
    assert (size_of(url) - empty) / LABELS <= MOST_BYTES
    with Store.open(url) as store:
        assert rows(store, charges, packs, packed_keys) == [0, LABELS // PER_REQUEST, LABELS]
        assert store.runs.spent(SCOPE) == (PRICE * LABELS, 0)
        (line,) = store.costs.lines()
        assert (line.paid_calls, line.requests) == (LABELS, LABELS // PER_REQUEST)
        assert store.check.problems() == []
