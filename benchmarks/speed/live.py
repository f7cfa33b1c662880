"""What a live page costs: processor time of the studio per viewer, against that of the discovery that is watched.

    python -m benchmarks.speed.live [--viewers 10] [--queries 35] [--latency 0.3]

The discovery asks the lifelike server of the tests, as people start it. Each viewer loads the page, follows its events
to the end and fetches every picture that they name once, as a browser does. All that the studio takes meanwhile
counts."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.machine import heading
from benchmarks.speed.start import FACES, Folders
from models.prices import parse_price
from sources import load_dataset
from studio.runs.shelf import key_of
from tests.support.fake_openai import Abilities, Habits, LifelikeServer
from tests.support.review_site import free_port

MOST = 0.02  # of the discovery's own time
TICK = os.sysconf("SC_CLK_TCK")
PATIENCE = 120.0


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Viewer(threading.Thread):
    """One browser with the page open."""

    def __init__(self, link: str, key: str) -> None:
        super().__init__(daemon=True)
        self._link, self._key = urlsplit(link), key
        self.events = self.pictures = 0

    def run(self) -> None:
        cookie = self._get(self._link.path, "")[1].partition(";")[0]
        self._get(f"/live/{self._key}", cookie)
        stream = self._connection()
        stream.request("GET", f"/live/{self._key}/events", headers={"Cookie": cookie})
        seen: set[int] = set()
        for line in stream.getresponse():
            if line.startswith(b"data: "):
                self.events += 1
                for row in set(json.loads(line[6:]).get("rows", {}).values()) - seen:
                    seen.add(row)
                    self._get(f"/live/{self._key}/media/{row}/small", cookie)
        self.pictures = len(seen)
        stream.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._link.hostname or "", self._link.port, timeout=PATIENCE)

    def _get(self, address: str, cookie: str) -> tuple[bytes, str]:
        line = self._connection()
        line.request("GET", address, headers={"Cookie": cookie})
        reply = line.getresponse()
        body = reply.read()
        line.close()
        assert reply.status == 200, f"{address}: {reply.status}"
        return body, reply.headers.get("set-cookie", "")


def started_studio(folders: Folders, root: Path, store: Path) -> tuple[subprocess.Popen[bytes], str]:
    process = folders.start("studio", str(root), "--store", str(store), "--port", str(free_port()))
    assert process.stderr is not None
    while line := process.stderr.readline().decode():
        if found := re.search(r"http://\S+/s/\S+", line):
            return process, found.group()
    sys.exit("the studio did not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--viewers", type=int, default=10)
    parser.add_argument("--queries", type=int, default=35)
    parser.add_argument("--latency", type=float, default=0.3, help="seconds before every reply of the model server")
    options = parser.parse_args()
    print(heading("python -m benchmarks.speed.live"))
    server = LifelikeServer(
        load_dataset(FACES), Habits(), price=parse_price("0.15,0.60"), abilities=Abilities(latency=options.latency)
    )
    with tempfile.TemporaryDirectory() as name, server:
        home = Path(name)
        root, store = home / "runs", home / "store.sqlite"
        root.mkdir()
        folders = Folders(home)
        studio, link = started_studio(folders, root, store)
        try:
            measure(folders, studio, link, root / "watched", store, server.base_url, options)
        finally:
            studio.terminate()
            studio.wait()
            folders.stop_server()


def measure(
    folders: Folders,
    studio: subprocess.Popen[bytes],
    link: str,
    out: Path,
    store: Path,
    url: str,
    options: argparse.Namespace,
) -> None:
    oracle = f"openai:gpt-4o-mini?base_url={url}&price=0.15,0.60"
    words = ("--queries", str(options.queries), "--budget", "5", "--store", str(store), "--out", str(out))
    began = time.monotonic()
    discovery = folders.start("discover", FACES, "--oracle", oracle, *words)
    while not (out / "live.jsonl").exists() and discovery.poll() is None:
        time.sleep(0.05)
    before = processor_seconds(studio.pid)
    viewers = [Viewer(link, key_of(out.resolve())) for _ in range(options.viewers)]
    for viewer in viewers:
        viewer.start()
    _, _, used = os.wait4(discovery.pid, 0)
    took, own = time.monotonic() - began, used.ru_utime + used.ru_stime
    for viewer in viewers:
        viewer.join()
    each = (processor_seconds(studio.pid) - before) / len(viewers)
    size = (out / "live.jsonl").stat().st_size
    print(
        f"{options.queries} questions in {took:.1f} s, {own:.1f} s of processor; {len(viewers)} viewers of "
        f"{viewers[0].events} events ({size / 1e6:.1f} MB) and {viewers[0].pictures} pictures: {each:.3f} s of "
        f"processor each, {each / own:.2%} of the discovery's processor time, {each / took:.2%} of its whole time"
    )
    if each / own > MOST:
        sys.exit(f"more than {MOST:.0%} of the discovery's processor time")


if __name__ == "__main__":
    main()
