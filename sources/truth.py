"""`truth.csv` beside a data set: an `id` column, then one column of 0, 1 or nothing per feature."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from twothirds.sources.dataset import Truth
from twothirds.sources.errors import DatasetError
from twothirds.sources.printable import quoted
from twothirds.sources.tables.records import Record, open_table

VALUES = {"0": 0, "1": 1, "": -1}


def read_truth(location: str, ids: Sequence[str], quarantined: Collection[str]) -> Truth:
    """The truth of the examples `ids`, in their order. Each must have a row; others only `quarantined` ones."""
    table = open_table(location)
    columns = _features(location, table.columns or ())
    row_of = {name: row for row, name in enumerate(ids)}
    import numpy as np

    matrix = np.full((len(ids), len(columns)), -1, dtype=np.int8)
    folders = tuple(name for name in quarantined if name.endswith("/"))  # links that are not followed
    unseen = set(ids)
    extra: set[str] = set()
    for name, values in _rows(location, table.records, columns):
        if name in unseen:
            unseen.remove(name)
            matrix[row_of[name]] = values
        elif name in row_of or name in extra:
            raise DatasetError(f"{quoted(location)} has two rows for id {name!r}: keep one")
        elif name in quarantined or name.startswith(folders):
            extra.add(name)
        else:
            where = f"{quoted(location)} has a row for id {name!r}"
            raise DatasetError(f"{where}, which the data set lacks: correct the id or delete the row")
    if unseen:
        missing = next(name for name in ids if name in unseen)
        more = f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
        where = f"{quoted(location)} has no row for example {missing!r}{more}"
        raise DatasetError(f"{where}: add it, or move the file away to do without truth")
    return Truth(columns, matrix)


def read_whole_truth(location: str) -> tuple[list[str], Truth]:
    """Every row of the file as it stands, with the ids in their order: for data sets that are not held in memory."""
    import numpy as np

    table = open_table(location)
    columns = _features(location, table.columns or ())
    ids: list[str] = []
    values = bytearray()
    for name, row in _rows(location, table.records, columns):
        ids.append(name)
        values += np.array(row, np.int8).tobytes()
    return ids, Truth(columns, np.frombuffer(values, np.int8).reshape(len(ids), len(columns)))


def _features(location: str, header: tuple[str, ...]) -> tuple[str, ...]:
    if "id" not in header:
        raise DatasetError(
            f"{quoted(location)} has no column 'id': its first line must be id and the names of features"
        )
    features = tuple(name for name in header if name != "id")
    if not features or "" in features:
        raise DatasetError(f"{quoted(location)} must name every feature in its first line, after id")
    return features


def _rows(location: str, records: Iterator[Record], columns: tuple[str, ...]) -> Iterator[tuple[str, list[int]]]:
    for record in records:
        if record.problem is not None:
            raise DatasetError(f"row {record.row} of {quoted(location)} {record.problem}: correct the row")
        name = record.cells["id"]
        yield name, [_value(location, name, column, record.cells[column]) for column in columns]


def _value(location: str, name: str, column: str, cell: str) -> int:
    value = VALUES.get(cell.strip())
    if value is None:
        raise DatasetError(
            f"{quoted(location)} says {cell!r} for {column!r} of id {name!r}: write 0, 1 or nothing where it is unknown"
        )
    return value
