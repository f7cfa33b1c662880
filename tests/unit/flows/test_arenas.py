"""How many arenas the C library keeps for threads that live at once."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

COUNTED = """
import ctypes, sys, threading
from flows.arenas import share_arenas
if sys.argv[1] == "shared":
    share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(17)
def work():
    libc.malloc(1000)
    together.wait()
    together.wait()
for _ in range(16):
    threading.Thread(target=work).start()
together.wait()
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
together.wait()
"""


def arenas(how: str, path: Path) -> int:
    subprocess.run([sys.executable, "-c", COUNTED, how, str(path)], check=True)
    return path.read_text().count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no arenas here")
def test_threads_share_two_arenas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert arenas("as it comes", tmp_path / "before.xml") > 4
    assert arenas("shared", tmp_path / "after.xml") <= 2
    monkeypatch.setenv("MALLOC_ARENA_MAX", "7")
    assert arenas("shared", tmp_path / "as the user wants.xml") == 7
