"""The discoveries that can be watched, with the examples that they show."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from cachetools import LRUCache
from starlette.exceptions import HTTPException

from reports.live import LiveRun
from reports.run import LIVE
from sources import Columns, Dataset, DatasetError, Example, load_dataset
from studio.runs import Shelf

OPEN_DATASETS = 4


class Watched:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._datasets: LRUCache[str, Dataset | None] = LRUCache(OPEN_DATASETS)
        self._lock = threading.Lock()

    def live(self, key: str) -> LiveRun:
        folder = self._shelf.folder(key)
        if folder is None or not (folder / LIVE).is_file():
            raise HTTPException(404)
        return LiveRun(folder / LIVE)

    def examples(self, begun: dict[str, Any]) -> Sequence[Example] | None:
        """None where the data set cannot be read: pages do without pictures then."""
        settings = {name: begun.get("settings", {}).get(name) for name in NAMES}
        name = json.dumps(settings, sort_keys=True)
        with self._lock:
            if name not in self._datasets:
                try:
                    self._datasets[name] = load_dataset(str(settings["dataset"]), Columns.of(settings))
                except DatasetError:
                    self._datasets[name] = None
            found: Dataset | None = self._datasets[name]
        return found.examples if found else None


NAMES = ("dataset", "id_column", "text_column", "image_column")
