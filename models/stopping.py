"""Set by a signal handler when the process is to end: nothing more is sent then, and answers in flight are drained."""

from __future__ import annotations

import threading

stopping = threading.Event()  # of the process, as signals are; a module without imports, for the handler loads early
