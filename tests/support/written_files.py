"""What was written below some folders, for tests that look for what must be nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def written_files(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file with its content. What is removed meanwhile, as databases do with their journals, is not written."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            for path in (Path(place) / name for name in names):
                with suppress(FileNotFoundError):
                    if path.is_file():
                        yield path, path.read_bytes()
