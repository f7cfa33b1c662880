"""Discovers named, labelled features in a data set.

    from twothirds.flows.api import discover

    run = discover("datasets/faces", oracle="contrastive")

The parts of the package are the folders of the clone, to which the links beside this file lead."""

import os
import signal
import sys

if sys.argv[:1] == ["-m"]:  # `python -m twothirds` is being imported: nothing has begun, so a signal just ends it
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            _number, lambda number, _frame: os._exit(128 + number)
        )  # until twothirds.flows.cli.signals listens
