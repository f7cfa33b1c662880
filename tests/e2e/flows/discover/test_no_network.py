"""The command of the README needs no key and no network: whatever it connects to is this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.prefect_home import prefect_home

ROOT = Path(__file__).parents[4]
# Every process of the command, Prefect's server too, writes down what it looks up and connects to.
WATCH = """
import os, sys
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        address = arguments[0] if event.startswith("socket.get") else arguments[1]
        host = address[0] if isinstance(address, tuple) else address
        with open(os.environ["WATCHED"], "a") as file:
            print(event, host if isinstance(host, str) else repr(host), file=file)
sys.addaudithook(watch)
"""
HERE = ("127.", "::1", "localhost", "/", "None", "0.0.0.0")


@pytest.mark.slow
def test_the_shipped_model_finds_features_without_a_key_and_without_network(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    watched = tmp_path / "watched"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "PREFECT_"))}
    environment |= {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    environment |= {"PREFECT_HOME": str(prefect_home(tmp_path / "prefect")), "TWOTHIRDS_SERVER_MINUTES": "0.05"}
    environment |= {"PYTHONPATH": str(tmp_path), "WATCHED": str(watched), "NO_COLOR": "1"}
    words = ("discover", "datasets/faces", "--oracle", "contrastive", "--queries", "5", "--out", str(tmp_path / "run"))
    done = subprocess.run(
        [sys.executable, "-m", "twothirds", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").exists()
    seen = watched.read_text(encoding="utf-8").splitlines()
    assert any("127.0.0.1" in line for line in seen)  # Prefect's server: the watch works
    assert not [line for line in seen if not line.partition(" ")[2].startswith(HERE)]
