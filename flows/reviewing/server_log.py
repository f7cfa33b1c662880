"""How the review page's server logs: lines may quote a visitor, so control characters are escaped."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Any

from sources import printable_lines

INTERVAL_SECONDS = 60.0
MOST_OF_A_KIND = 5  # in that time
MAX_KINDS = 1000


class FewOfAKind(logging.Filter):
    """Lets a few records of each kind through a minute: visitors must not be able to fill the disk with the log."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._began = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        if time.monotonic() - self._began > INTERVAL_SECONDS or len(self._seen) > MAX_KINDS:
            self._seen, self._began = Counter(), time.monotonic()
        error = record.exc_info[0] if record.exc_info else None
        kind = record.name, record.levelno, str(record.msg)[:80], error
        self._seen[kind] += 1
        if self._seen[kind] == MOST_OF_A_KIND:
            record.msg = f"{record.msg} (others like this one are not logged for up to a minute)"
        return self._seen[kind] <= MOST_OF_A_KIND


class PrintableFormatter(logging.Formatter):
    """What servers and libraries log may quote a visitor or a file, in tracebacks above all."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"printable": {"()": PrintableFormatter, "format": "%(levelname)s: %(message)s"}},
    "filters": {"few": {"()": FewOfAKind}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "printable", "filters": ["few"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}
