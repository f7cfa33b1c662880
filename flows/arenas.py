"""Threads share two arenas of memory: with one for each, what threads that come and go have freed stays taken."""

from __future__ import annotations

import ctypes
import os

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's mallopt
ARENAS = 2


def share_arenas() -> None:
    """For all threads that are yet to begin, where the C library is glibc and the user has not set it otherwise."""
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl and macOS have no arenas to share
        mallopt(_ARENA_MAX, ARENAS)
