"""Tables that exist in Python only, kept as Parquet files, so that a run can be repeated and its report find them."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any

from twothirds.sources.errors import DatasetError

IMAGE = "image"


def keep_frame(data: Any, folder: Path, image_column: str | None = None) -> Path:
    """Write a pandas DataFrame, an Arrow table or a HuggingFace Dataset; the same content makes the same file."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f".{os.getpid()}.parquet"
    try:
        if hasattr(data, "to_parquet") and hasattr(data, "features"):  # a Dataset, whose pictures it writes along
            data.to_parquet(str(written))
        else:
            import pyarrow.parquet

            pyarrow.parquet.write_table(_arrow_table(data, image_column), written)
        target = folder / f"table-{hashlib.sha256(written.read_bytes()).hexdigest()[:12]}.parquet"
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)
    return target


def _arrow_table(data: Any, image_column: str | None) -> Any:
    import pandas as pd
    import pyarrow

    if isinstance(data, pyarrow.Table):
        return data
    if not isinstance(data, pd.DataFrame):
        kind = type(data).__name__
        raise DatasetError(
            f"a {kind} is no data set: give a path, a DataFrame, an Arrow table or a Dataset (one split)"
        )
    frame = data.reset_index() if any(name is not None for name in data.index.names) else data
    pictures = image_column or next((str(name) for name in frame.columns if str(name).lower() == IMAGE), None)
    columns = {str(name): frame[name] for name in frame.columns}
    if pictures in columns:
        columns[pictures] = columns[pictures].map(_storable, na_action="ignore")
    return pyarrow.Table.from_pandas(pd.DataFrame(columns), preserve_index=False)


def _storable(value: Any) -> Any:
    """Relative paths are relative to where Python runs now; a picture of Pillow becomes a PNG file."""
    if isinstance(value, (str, Path)):
        path = str(value)
        return path if "://" in path else os.path.abspath(path)
    if hasattr(value, "save") and hasattr(value, "convert"):
        written = io.BytesIO()
        value.save(written, "PNG")
        return written.getvalue()
    return value
