"""Data sets as the HuggingFace library keeps them: saved to disk, or on the hub as parts of Parquet files."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from typing import Any

from sources.errors import DatasetError, Unreadable
from sources.files import child, open_binary
from sources.printable import quoted

STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_PART = re.compile(r"(.+?)[-.]\d{3,6}-of-\d{3,6}(?:-[0-9a-f]+)?\.(?:parquet|arrow|jsonl|csv)(?:\.gz)?")


def splits_in(files: Sequence[str]) -> list[str]:
    """The splits of which the files are parts (`train-00000-of-00003.parquet`); none where one is no such part."""
    parts = [_PART.fullmatch(posixpath.basename(file)) for file in files]
    return list(dict.fromkeys(part[1] for part in parts if part)) if all(parts) else []


def parts_of_saved(spec: str, folder: str, files: Sequence[str]) -> list[str]:
    """The Arrow files of a data set that was saved to disk, in their order; none for any other folder."""
    if SPLITS in files:
        splits = [name for name in _read(child(folder, SPLITS)).get("splits", []) if f"{name}/{STATE}" in files]
        if len(splits) != 1:
            named = f"{spec.rstrip('/')}/{splits[0] if splits else 'train'}"
            raise DatasetError(f"{quoted(spec)} holds the splits {', '.join(splits)}: name one, as in {quoted(named)}")
        return _parts(child(folder, splits[0]), [file.removeprefix(f"{splits[0]}/") for file in files])
    return _parts(folder, files) if STATE in files and INFO in files else []


def _parts(folder: str, files: Sequence[str]) -> list[str]:
    listed = [entry.get("filename") for entry in _read(child(folder, STATE)).get("_data_files", [])]
    missing = next((name for name in listed if name not in files), None)
    if missing is not None or not listed:
        raise DatasetError(f"{quoted(folder)} lacks its part {missing!r}: save the data set again")
    return [child(folder, name) for name in listed]


def _read(location: str) -> dict[str, Any]:
    try:
        with open_binary(location) as file:
            content = json.loads(file.read(2**24))
    except (ValueError, Unreadable, OSError) as error:
        raise DatasetError(f"{quoted(location)} cannot be read ({error}): save the data set again") from None
    return content if isinstance(content, dict) else {}
