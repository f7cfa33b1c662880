"""The first moments of `python -m flows`: while its parts are imported nothing has begun, so a signal just ends it."""

import os
import signal
from types import FrameType


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, _end)  # until flows.cli.signals listens
