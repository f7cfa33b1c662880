"""How the review page's server logs: lines may quote a visitor, so control characters are escaped."""

from __future__ import annotations

import logging
from typing import Any

from sources import printable_lines


class PrintableFormatter(logging.Formatter):
    """What servers and libraries log may quote a visitor or a file, in tracebacks above all."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"printable": {"()": PrintableFormatter, "format": "%(levelname)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "printable"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}
