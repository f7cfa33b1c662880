"""A store on a disk that fills up for real: a file system of four megabytes, in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def on_a_small_disk(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where `folder` is a disk of four megabytes, which is gone when the process ends."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = f"mount -t tmpfs -o size=4m tmpfs '{folder}' && exec \"$@\""
    command = ["unshare", "--mount", *user, "sh", "-c", mount, "sh", sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: a disk cannot be made small here")
    tried = on_a_small_disk(tmp_path, "-c", "")
    if tried.returncode != 0:
        pytest.skip(f"a disk cannot be made small here: {tried.stderr.strip()}")
    return tmp_path


def test_a_full_disk_is_one_line_loses_nothing_and_is_gone_once_there_is_space(small_disk: Path) -> None:
    """See `fill` in store_worker.py: it pays until nothing fits any more, looks, makes space and goes on."""
    url = str(small_disk / "store.sqlite")
    done = on_a_small_disk(small_disk, "-m", "tests.support.store_worker", "fill", url, "ballast")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert "free some space on its disk and run again" in said["error"]
    assert "\n" not in said["error"]
    assert said["acknowledged"] > 100
    assert said["lost"] == 0
    assert said["problems when full"] == []
    assert said["paid once there was space"] == 500
    assert said["problems in the end"] == []
