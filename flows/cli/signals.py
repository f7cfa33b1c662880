"""Ctrl-C, SIGTERM and SIGHUP: what came is kept, one line says how to go on, and the process ends within five seconds.

Other libraries replace signal handlers while they work, and wait as long as they like when they end. So a thread of our
own learns of the signal too, and ends the process when an orderly end takes too long. That loses nothing: what was
under way is booked as unknown, as after any crash."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

HUNG_UP, INTERRUPTED, TERMINATED = 129, 130, 143
GRACE_SECONDS = 4.3
_SIGNALS = {int(signal.SIGINT): INTERRUPTED, int(signal.SIGTERM): TERMINATED, int(signal.SIGHUP): HUNG_UP}
_LINE = "interrupted: every answer that came is kept; run the same command again to go on"


class Interruption:
    """What is known of a signal that asks this process to end."""

    def __init__(self) -> None:
        self.status = INTERRUPTED
        self._ending = threading.Lock()
        self._listening = self._noted = False

    def listen(self) -> None:
        """From now on a signal raises KeyboardInterrupt in the main thread, and starts the clock."""
        self._listening = True
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in _SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup has it ignored
                signal.signal(number, self._raise)
        sys.unraisablehook = _raise_again
        threading.Thread(target=self._wait, args=(reading,), name="interruption", daemon=True).start()

    def _raise(self, number: int, _frame: FrameType | None) -> None:
        self._note(number)
        raise KeyboardInterrupt

    def _note(self, number: int) -> None:
        if not self._noted:
            self._noted, self.status = True, _SIGNALS[number]
        if (
            "twothirds.models.stopping" in sys.modules
        ):  # else no oracle has been asked; importing it here would take too long
            sys.modules["twothirds.models.stopping"].stopping.set()

    def _wait(self, reading: int) -> None:
        while (number := os.read(reading, 1)[0]) not in _SIGNALS:
            pass
        self._note(number)
        time.sleep(GRACE_SECONDS)
        self.end()
        os._exit(self.status)

    def end(self) -> None:
        """Say how to go on, whoever comes first, and leave no process behind that was just being started."""
        if self._ending.acquire(blocking=False):
            print(_LINE, file=sys.stderr, flush=True)
            exec("")  # noqa: S102  # else Python ends by SIGINT if what was interrupted was run by another `exec`
            if self._listening:
                _end_children()

    def leave_at_once(self, status: int) -> None:
        """After an interruption, where a model computes in a thread: else torch aborts under a Python that ends."""
        if self._noted and "torch" in sys.modules:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(status)


def _raise_again(unraisable: sys.UnraisableHookArgs) -> None:
    """An interruption that came where nothing can be raised, as in a callback of fork, comes again a moment later."""
    if unraisable.exc_type is KeyboardInterrupt:
        later = threading.Timer(0.05, _thread.interrupt_main)
        later.daemon = True
        later.start()
    else:
        sys.__unraisablehook__(unraisable)


def _end_children() -> None:
    """Linux only; elsewhere children learn of the end by the pipes that close."""
    for listed in Path("/proc/self/task").glob("*/children"):
        for child in map(int, listed.read_text(encoding="ascii").split()):
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
