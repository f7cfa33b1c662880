"""Decodes pictures of risky forms in a process (child.py) that ends itself when it takes too much time or memory."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from PIL import Image

from twothirds.sources.pictures.limits import TooCostly

CPU_SECONDS = 20  # for one picture
MEMORY_BYTES = 4 * 2**30  # of address space, with Python and its libraries
REQUEST = struct.Struct(">QI")  # bytes of the picture, longest side (0: any)
REPLY = struct.Struct(">?IIQ")  # decoded?, width, height, bytes of the pixels or of the reason
ROOT = Path(__file__).parents[3]


class Undecodable(Exception):
    """What the decoder said."""


class DecodingProcess:
    """Started when it is first needed, and again after it has ended. Safe to use from several threads."""

    def __init__(self, cpu_seconds: float = CPU_SECONDS, memory: int = MEMORY_BYTES) -> None:
        self._limits = cpu_seconds, memory
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def decode(self, content: bytes, longest_side: int | None) -> Image.Image:
        """The picture as `open_image` gives it. Raises TooCostly and Undecodable."""
        with self._lock:
            process = self._running()
            to, back = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
            try:
                to.write(REQUEST.pack(len(content), longest_side or 0) + content)
                to.flush()
                decoded, width, height, size = REPLY.unpack(exactly(back, REPLY.size))
                found = exactly(back, size)
            except (OSError, EOFError):
                self._process = None
                _end(process)
                seconds, memory = self._limits
                most = f"{seconds:g} s or {memory / 2**30:g} GB"
                raise TooCostly(f"takes more than {most} to decode: save it again") from None
        if not decoded:
            raise Undecodable(found.decode())
        return Image.frombytes("RGB", (width, height), found)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid():  # a process that was forked starts one of its own
            self._process = subprocess.Popen(
                [sys.executable, "-m", "twothirds.sources.pictures.child", *map(str, self._limits)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the program; this process ends with its input
            )
            self._owner = os.getpid()
            weakref.finalize(self, _end, self._process)
        return self._process


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.kill()
    process.wait()


def exactly(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError
    return found
