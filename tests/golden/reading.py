"""Every file of a folder as plain data: labels as one string per feature, pages by their headings."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

MARKS = {"1": "1", "0": "0", "": "?", "1.0": "1", "0.0": "0", "True": "1", "False": "0", "<NA>": "?", "nan": "?"}
LARGE, HUGE = 8, 500  # rows of a table that is told column by column, or whose columns are told by their digests
VERDICTS = {"yes": "1", "no": "0"}


def files_of(folder: Path) -> dict[str, Any]:
    """By their paths, the folder's own name first."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder.parent).as_posix(): read(path) for path in found}


def read(path: Path) -> Any:
    if path.name.startswith("."):
        return "is there"
    if path.name == "answers.jsonl":
        return answers(_lines(path))
    if path.name == "live.jsonl":
        return events(_lines(path))
    reader = READERS.get(path.suffix)
    return reader(path) if reader else _digest(path.read_bytes())


def answers(lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Labels by feature and voter, everything else line by line."""
    labels: dict[str, list[dict[str, Any]]] = {}
    others = []  # than labels
    for line in lines:
        question = line["question"]
        if question["kind"] != "label":
            others.append(line)
            continue
        labels.setdefault(f"{question['feature']} by voter {question['voter']}", []).append(line)
    together = {name: _together(group) for name, group in labels.items()}
    examples = next((group["example"] for group in together.values()), "")
    for group in together.values():
        if group["example"] == examples:
            group["example"] = "each of the examples"
    return {"examples": examples, "labels": together, "others": others}


def events(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Their kinds in order, the fields of each kind, and the figures in full; the rest is in the other files. How often
    the count of other labels is told depends on the machine."""
    lines = [line for line in lines if line["kind"] != "Progressed" or line["figures"]]
    fields = {kind: sorted({name for line in lines if line["kind"] == kind for name in line}) for kind in _kinds(lines)}
    states = [line for line in lines if line["kind"] == "Progressed"]
    return {"fields": fields, "kinds": " ".join(line["kind"] for line in lines), "states": states}


def _kinds(lines: Iterable[dict[str, Any]]) -> set[str]:
    return {line["kind"] for line in lines}


def _together(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Field by field: of usage the sums, of raw replies a digest."""
    flat = [
        {key: value for side in ("question", "answer") for key, value in line[side].items()}
        | {key: value for key, value in line.items() if key not in ("question", "answer")}
        for line in lines
    ]
    together: dict[str, Any] = {}
    for key in dict.fromkeys(key for line in flat for key in line):
        values = [line.get(key) for line in flat]
        if key == "verdict":
            together[key] = _string(values)
        elif key == "example":
            together[key] = " ".join(map(str, values))
        elif key == "usage":
            together[key] = [sum(counts) for counts in zip(*values, strict=True)]
        elif key == "raw":
            together[key] = _digest("\n".join(map(str, values)).encode())
        else:
            together[key] = runs_of(values)
    return together


def runs_of(values: Sequence[Any]) -> Any:
    """One value where all are equal, else a list, or a text where many that follow one another are equal."""
    runs = [(value, len(list(group))) for value, group in groupby(values)]
    if len(runs) == 1:
        return values[0]
    if len(runs) > len(values) / 2 or any(isinstance(value, float) for value in values):
        return list(values)
    return ", ".join(f"{_short(value)} x{count}" if count > 1 else _short(value) for value, count in runs)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _string(verdicts: Sequence[Any]) -> Any:
    """1 for yes, 0 for no, where there is nothing else."""
    usual = all(verdict in VERDICTS for verdict in verdicts)
    return "".join(VERDICTS[verdict] for verdict in verdicts) if usual else runs_of(verdicts)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _text(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _csv(path: Path) -> dict[str, Any]:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    return _table(frame)


def _parquet(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    types = [str(field.type) for field in schema]
    frame = pq.read_table(path).to_pandas()
    return {"types": dict(zip(schema.names, types, strict=True))} | _table(frame.map(_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return _digest(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value if isinstance(value, str) else str(value)


def _table(frame: pd.DataFrame) -> dict[str, Any]:
    """A small one row by row, a larger one column by column; columns of labels as strings."""
    marked = [name for name in frame.columns if len(frame) > 2 and set(map(str, frame[name])) <= MARKS.keys()]
    labels = [name for name in marked if name != "seconds"]
    table: dict[str, Any] = {"columns": list(frame.columns), "rows": len(frame)}
    table["labels"] = {name: "".join(MARKS[str(value)] for value in frame[name]) for name in labels}
    others = frame[[name for name in frame.columns if name not in labels]].map(_number)
    if len(frame) > HUGE:
        return table | {"cells": {name: _digest("\n".join(map(str, others[name])).encode()) for name in others}}
    if len(frame) > LARGE:
        return table | {"cells": {name: runs_of(list(others[name])) for name in others}}
    rows = [{name: value for name, value in row.items() if value != ""} for row in others.to_dict("records")]
    return table | {"cells": rows}


def _number(value: Any) -> Any:
    """Fractions as numbers, so that they are compared as such."""
    try:
        return float(value) if isinstance(value, str) and "." in value else value
    except ValueError:
        return value


class _Headings(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self._inside = ""
        self._text: list[str] = []

    def handle_starttag(self, tag: str, _attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("title", "h1", "h2"):
            self._inside, self._text = tag, []

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside and tag:
            self.headings.append(f"{tag}: {' '.join(''.join(self._text).split())}")
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self._text.append(data)


def _page(path: Path) -> list[str]:
    """The title and the headings; titles inside drawings are left out."""
    parser = _Headings()
    parser.feed(path.read_text(encoding="utf-8"))
    titles = [heading for heading in parser.headings if heading.startswith("title: ")][:1]
    return titles + [heading for heading in parser.headings if not heading.startswith("title: ")]


def _digest(data: bytes) -> str:
    return f"{len(data)} bytes {base64.b16encode(hashlib.sha256(data).digest()[:6]).decode().lower()}"


READERS: dict[str, Callable[[Path], Any]] = {
    ".json": _json,
    ".geojson": _json,
    ".jsonl": _lines,
    ".csv": _csv,
    ".parquet": _parquet,
    ".html": _page,
    ".md": _text,
    ".dot": _text,
    ".txt": _text,
    ".py": _text,
}


def written(value: Any, width: int = 150) -> str:
    """As JSON with sorted keys; what fits stands on one line, so that a table has a line per row."""
    return f"{_written(value, 0, width)}\n"


def _written(value: Any, depth: int, width: int) -> str:
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if (depth > 1 and len(line) <= width) or not isinstance(value, dict | list) or not value:
        return line
    indent, end = " " * (depth + 1), " " * depth
    if isinstance(value, list):
        if not any(isinstance(one, dict | list) for one in value):
            return "[" + f",\n{indent}".join(_filled(value, width)) + "]"
        items = [_written(one, depth + 1, width) for one in value]
        return "[\n" + ",\n".join(indent + item for item in items) + f"\n{end}]"
    items = [
        f"{json.dumps(key, ensure_ascii=False)}: {_written(value[key], depth + 1, width)}" for key in sorted(value)
    ]
    return "{\n" + ",\n".join(indent + item for item in items) + f"\n{end}}}"


def _filled(values: Sequence[Any], width: int) -> list[str]:
    """As many on a line as fit."""
    lines: list[str] = []
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        if lines and len(lines[-1]) + len(text) + 2 <= width:
            lines[-1] += f", {text}"
        else:
            lines.append(text)
    return lines
