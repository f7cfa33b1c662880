"""A table whose rows name web addresses reaches public hosts and the data set's own, and no service of this network."""

from __future__ import annotations

import json
import socket
import threading
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

from tests.support.drawn import draw, ids, reasons
from twothirds.models.people.human import _stored
from twothirds.sources.errors import DatasetError
from twothirds.sources.files.private_hosts import VARIABLE, is_public
from twothirds.sources.load import load_dataset
from twothirds.studio.review.media import BrowserPictures


class Web:
    """Files by their paths, addresses to redirect to by theirs, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.elsewhere: dict[str, str] = {}
        self.asked: list[str] = []
        self.port = 0

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


class _Handler(BaseHTTPRequestHandler):
    web: ClassVar[Web]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.web.asked.append(path)
        content = self.web.files.get(path, b"")
        status = 302 if path in self.web.elsewhere else 200 if content else 404
        if status == 200 and (wanted := self.headers.get("Range")):
            first, last = wanted.removeprefix("bytes=").split("-")
            status, whole = 206, len(content)
            content = content[int(first) : int(last) + 1]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{whole}")
        if path in self.web.elsewhere:
            self.send_header("Location", self.web.elsewhere[path])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Web]:
    web = Web()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"web": web}))
    web.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def webs(tmp_path: Path) -> Iterator[tuple[Web, Web]]:
    """Where the data set is, and a service that is none of its business."""
    picture = draw(tmp_path / "drawn" / "a.png").read_bytes()
    with ExitStack() as opened:
        own, other = opened.enter_context(serving()), opened.enter_context(serving())
        own.files["/a.png"] = other.files["/a.png"] = picture
        yield own, other


def table(path: Path, *images: str) -> str:
    rows = [{"id": str(number), "image": image} for number, image in enumerate(images)]
    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_rows_of_a_local_table_reach_no_service_of_this_machine(
    tmp_path: Path, webs: tuple[Web, Web], suffix: str
) -> None:
    _, other = webs
    near = draw(tmp_path / "near.png")
    hosts = ("127.0.0.1", "localhost", "0.0.0.0")
    others = (other.at("/a.png", "[0:0:0:0:0:ffff:7f00:1]"), other.at("/a.png", "127.1"), "http://169.254.169.254/")
    images = (near.name, *(other.at("/a.png", host) for host in hosts), *others)
    data = load_dataset(table(tmp_path / f"t.{suffix}", *images))
    assert ids(data) == ["0"]
    for number, host in enumerate(hosts, 1):
        reason = reasons(data)[str(number)]
        assert f"may not name the host {host}" in reason, reason
        assert f"set {VARIABLE}={host}:{other.port}" in reason
    assert "the host [::ffff:7f00:1], which is not public" in reasons(data)["4"]
    assert "the host 169.254.169.254, which is not public" in reasons(data)["6"]
    assert other.asked == []


def test_an_archive_and_a_cell_of_a_table_are_no_way_round(tmp_path: Path, webs: tuple[Web, Web]) -> None:
    _, other = webs
    near = draw(tmp_path / "near.png")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.write(near, "a.png")
    other.files["/z.zip"] = (tmp_path / "z.zip").read_bytes()
    pd.DataFrame({"image": [near.read_bytes()]}).to_parquet(tmp_path / "cells.parquet")
    other.files["/c.parquet"] = (tmp_path / "cells.parquet").read_bytes()
    ways = (f"zip://a.png::{other.at('/z.zip')}", f"{other.at('/c.parquet')}#image[0]")
    data = load_dataset(table(tmp_path / "t.csv", near.name, *ways))
    assert ids(data) == ["0"]
    assert all("which is not public" in reason for reason in reasons(data).values())
    assert other.asked == []


def test_a_data_set_on_a_private_host_may_name_that_host_and_port_and_no_other(webs: tuple[Web, Web]) -> None:
    own, other = webs
    rows = ("a.png", own.at("/a.png"), other.at("/a.png"), own.at("/there.png"), own.at("/back.png"))
    own.files["/t.csv"] = "\n".join(["id,image", *(f"{number},{row}" for number, row in enumerate(rows))]).encode()
    own.elsewhere |= {"/there.png": other.at("/a.png"), "/back.png": own.at("/a.png")}
    data = load_dataset(own.at("/t.csv"))
    assert ids(data) == ["0", "1", "4"]
    assert all(f"{VARIABLE}=127.0.0.1:{other.port}" in reasons(data)[row] for row in ("2", "3"))
    assert other.asked == []
    assert data.examples[1].image_bytes() == own.files["/a.png"]
    for example in data.examples[:2]:
        assert BrowserPictures().get(example.digest, _stored(example), "small") is not None
    assert BrowserPictures().get(data.examples[0].digest, _stored(data.examples[0]) | {"home": None}, "small") is None


def test_a_private_host_is_allowed_by_name_and_with_its_port_alone(
    tmp_path: Path, webs: tuple[Web, Web], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = webs
    spec = table(tmp_path / "t.csv", own.at("/a.png"), other.at("/a.png"))
    monkeypatch.setenv(VARIABLE, f" 127.0.0.1:{own.port}, [::1]:80")
    assert ids(load_dataset(spec)) == ["0"]
    monkeypatch.setenv(VARIABLE, "127.0.0.1")
    assert ids(load_dataset(spec)) == ["0", "1"]
    for wrong in ("127.0.0.1:x", "http://127.0.0.1", "127.0.0.1/a", "a b"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(
            DatasetError, match=f"{VARIABLE} has '{wrong}', which is not a host: write host or host:port"
        ):
            load_dataset(spec)


@pytest.mark.parametrize("answers", [["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]])
def test_a_name_is_judged_by_every_address_that_would_be_connected_to(
    tmp_path: Path, webs: tuple[Web, Web], monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    _, other = webs
    # Stands for a public address; nobody listens there, so that the other one would be tried.
    monkeypatch.setattr("twothirds.sources.files.private_hosts.is_public", lambda address: address == "127.0.0.2")
    real = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        names = answers if host == "pets.test" else [host]
        return [found for name in names for found in real(name, *arguments, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    data = load_dataset(table(tmp_path / "t.csv", draw(tmp_path / "near.png").name, other.at("/a.png", "pets.test")))
    assert ids(data) == ["0"]
    assert "the host pets.test (127.0.0.1), which is not public" in reasons(data)["1"]
    assert other.asked == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        *((public, True) for public in ("8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")),
        *((own, False) for own in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0")),
        *(
            (own, False)
            for own in ("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fd00::1", "fe80::1%eth0")
        ),
        *((own, False) for own in ("::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "ff02::1", "nonsense")),
        *((own, False) for own in ("fec0::1", "feff::1", "::8.8.8.8", "::10.0.0.1", "64:ff9b:1::808:808")),
        *((own, False) for own in ("3fff::1", "3fff:fff::1", "5f00::1")),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize("kind", ["table", "truth", "metadata", "archive", "listing"])
def test_whatever_is_fetched_after_the_address_that_the_user_typed_is_not_redirected_into_the_network(
    tmp_path: Path, webs: tuple[Web, Web], kind: str
) -> None:
    own, other = webs
    other.files |= {"/secret": b"id,text\n1,private\n", "/secret.zip": _archive(tmp_path)}
    own.files |= {
        "/t.csv": b"id,text\n1,public\n",
        "/folder/": b'<a href="metadata.csv">m</a> <a href="a.png">a</a>',
        "/folder/a.png": own.files["/a.png"],
        "/folder/metadata.csv": b"file_name\na.png\n",
    }
    redirected, spec, target = {
        "table": ("/t.csv", own.at("/t.csv"), "/secret"),
        "truth": ("/truth.csv", own.at("/t.csv"), "/secret"),
        "metadata": ("/folder/metadata.csv", own.at("/folder/"), "/secret"),
        "archive": ("/z.zip", f"zip://::{own.at('/z.zip')}", "/secret.zip"),
        "listing": ("/folder/", own.at("/folder/"), "/secret"),
    }[kind]
    own.elsewhere[redirected] = other.at(target)
    with pytest.raises(DatasetError) as refused:
        load_dataset(spec)
    said = str(refused.value)
    assert "redirected to 127.0.0.1, which is not public" in said, said
    assert f"set {VARIABLE}=127.0.0.1:{other.port}" in said
    assert "\n" not in said
    assert other.asked == []
    del own.elsewhere[redirected]
    if kind in ("table", "truth", "metadata", "listing"):
        assert load_dataset(spec).examples


@pytest.mark.parametrize("kind", ["table", "truth", "metadata", "archive"])
def test_a_redirect_within_the_host_that_the_user_typed_or_to_one_that_is_allowed_is_followed(
    tmp_path: Path, webs: tuple[Web, Web], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    own, other = webs
    own.files |= {
        "/folder/": b'<a href="metadata.csv">m</a> <a href="a.png">a</a>',
        "/folder/a.png": own.files["/a.png"],
    }
    contents = {
        "table": ("/t.csv", own.at("/t.csv"), b"id,text\n1,public\n"),
        "truth": ("/truth.csv", own.at("/u.csv"), b"id,legs\n1,1\n"),
        "metadata": ("/folder/metadata.csv", own.at("/folder/"), b"file_name\na.png\n"),
        "archive": ("/z.zip", f"zip://::{own.at('/z.zip')}", _archive(tmp_path)),
    }
    own.files["/u.csv"] = b"id,text\n1,public\n"
    redirected, spec, content = contents[kind]
    for web in webs:
        web.files["/moved"] = content
    own.elsewhere[redirected] = own.at("/moved")
    assert load_dataset(spec).examples
    monkeypatch.setenv(VARIABLE, f"127.0.0.1:{other.port}")
    own.elsewhere[redirected] = other.at("/moved")
    assert load_dataset(spec).examples
    assert "/moved" in other.asked


def _archive(folder: Path) -> bytes:
    with zipfile.ZipFile(folder / "made.zip", "w") as archive:
        archive.write(draw(folder / "inside.png"), "a.png")
    return (folder / "made.zip").read_bytes()
