"""Owners of requests: processes, and whether they are dead."""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from pathlib import Path

_MARK = "process"
_ENDED = {"Z", "X"}  # ended, but not yet collected by its parent


def new_owner() -> str:
    """A unique name that tells in which process it was made."""
    process = os.getpid()
    _state, started = _status(process) or ("", "0")
    return "/".join([_MARK, _machine(), str(process), started, uuid.uuid4().hex[:16]])


def is_dead(owner: str) -> bool:
    """Whether the owner is certainly dead: a process of this machine, since its last boot, that no longer runs."""
    fields = owner.split("/")
    if len(fields) != 5:
        return False
    mark, machine, process, started, _ = fields
    if mark != _MARK or machine != _machine() or not process.isdecimal() or started == "0":
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # it exists and belongs to another user
    status = _status(int(process))
    return status is not None and (status[0] in _ENDED or status[1] != started)


@cache
def _machine() -> str:
    """Host, boot and process namespace: only within the same three does a process number mean the same."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return f"{socket.gethostname()}~{uuid.uuid4().hex}"  # other processes cannot tell whether it lives
    return f"{socket.gethostname()}~{boot}~{namespace}".replace("/", "_")


def _status(process: int) -> tuple[str, str] | None:
    """State and start, in ticks since boot; None where that cannot be read."""
    try:
        line = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = line.rpartition(")")[2].split()
    return fields[0], fields[19]
