"""Whether this process is asked to end: nothing more is sent then, and what is under way is waited for a moment."""

from __future__ import annotations

import threading

stopping = threading.Event()
