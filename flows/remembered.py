"""A small JSON file as a mapping: what was once found out, such as what a server can do. Losing it costs a probe."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from reports.run.folder import replace_file


class Remembered(MutableMapping[str, Any]):
    def __init__(self, path: Path) -> None:
        self._path = path

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, content: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a folder that cannot be written only means another probe
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, lambda file: file.write(json.dumps(content, indent=1)))

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._write({**self._read(), key: value})

    def __delitem__(self, key: str) -> None:
        content = self._read()
        del content[key]
        self._write(content)

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())
