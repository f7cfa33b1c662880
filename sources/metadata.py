"""The columns of a data set that are neither id nor content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sources.find import find_rows

if TYPE_CHECKING:
    import pandas as pd


def read_metadata(spec: str, ids: Sequence[str]) -> pd.DataFrame:
    """One row per id, in order, indexed by id. A folder of classes without a metadata table has the column `label`."""
    import pandas as pd

    wanted = set(ids)
    found: dict[str, dict[str, object]] = {}
    for row in find_rows(spec).rows:
        if row.problem is None and row.name in wanted and row.name not in found:
            found[row.name] = dict(row.extra)
    rows = [{"id": name, **found.get(name, {})} for name in ids]
    return pd.DataFrame(rows).set_index("id")
