"""What hostile data and hostile visitors get: a plain page, and nothing in the store."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.review_site import Site
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label
from twothirds.sources.dataset import Example
from twothirds.store import Store
from twothirds.studio.review.security_headers import MAX_BODY_BYTES

SCRIPT = "<script>alert(1)</script>"
QUOTES = "\"'><img src=x onerror=alert(1)>"


def example(number: int, **content: Any) -> Example:
    return Example(f"{SCRIPT}{number}.png", f"{number:064x}", **content)


def tags(text: str) -> set[str]:
    return set(re.findall(r"<(\w+)", text))


def test_script_in_names_definitions_texts_and_file_names_is_shown_as_text(site: Site) -> None:
    site.ask(
        [Compare(Kind.TWO_OF_THREE, tuple(example(n, text=f"{SCRIPT}{n}") for n in range(3)), known=(QUOTES,))], QUOTES
    )
    ann = site.visitor(f"Ann {SCRIPT}")
    page = ann.get().text
    assert page.count("&lt;script&gt;alert(1)") >= 3
    assert "<script>alert" not in page
    assert "onerror=alert(1)>" not in page.replace("&gt;", "")
    assert ann.answer(shown=[0, 1], name=SCRIPT).status_code == 422, "a name that is markup is no name"
    assert ann.answer(shown=[0, 1], name="fine", definition=SCRIPT).status_code == 303
    site.ask([Label(Feature(QUOTES, SCRIPT), example(n, text=SCRIPT)) for n in range(2)], QUOTES)
    page = ann.get().text
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    ann.answer(has=ann.hidden("lease"))
    boss = site.visitor("boss", admin=True)
    page = boss.get("/admin").text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "Ann &lt;script&gt;" in page


def test_a_policy_forbids_what_the_page_never_needs(site: Site) -> None:
    for address in ("/", "/static/review.js", "/nowhere", site.link("ann")):
        headers = site.stranger().client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "script-src 'self';" in policy
        assert "base-uri 'none'" in policy
        assert "form-action 'self';" in policy
    assert "<style" not in site.visitor("ann").get().text


@pytest.mark.parametrize(
    "address",
    [
        "/media/../../../../etc/passwd/large",
        "/media/..%2f..%2f..%2fetc%2fpasswd/large",
        f"/media/{'a' * 64}/..%2f..%2fetc",
        f"/media/{'a' * 64}/large",
        "/media/%00/large",
        "/static/..%2fapp.py",
        "/static/../app.py",
        "/static/%2e%2e/%2e%2e/store/schema.py",
        "//etc/passwd",
    ],
)
def test_no_address_leads_out_of_what_is_asked_about(site: Site, address: str) -> None:
    ann = site.visitor("ann")
    raw = httpx.URL(site.address).copy_with(raw_path=address.encode())
    reply = ann.client.send(ann.client.build_request("GET", raw))
    assert reply.status_code == 404
    assert "root:" not in reply.text
    assert "import" not in reply.text


def bomb(path: Path) -> Path:
    """A PNG of a few kilobytes that says it has 2.5 billion pixels."""
    side = (50_000).to_bytes(4, "big")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    rows = zlib.compress(b"\0" * 1_000_000, 9)
    header = side + side + bytes([8, 2, 0, 0, 0])
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return path


def test_a_decompression_bomb_is_not_shown_and_the_page_goes_on(site: Site, tmp_path: Path) -> None:
    (tmp_path / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    files = [bomb(tmp_path / "bomb.png"), tmp_path / "drawing.svg", Path("/etc/passwd")]
    examples = tuple(example(n, image=str(path)) for n, path in enumerate(files))
    site.ask([Compare(Kind.TWO_OF_THREE, examples)], QUOTES)
    ann = site.visitor("ann")
    assert ann.get().status_code == 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in examples:
            reply = ann.client.get(f"/media/{one.digest}/large")
            assert reply.status_code == 404
            assert "This example cannot be shown" in reply.text


@pytest.mark.parametrize("address", ["/answer", "/undo", "/admin/withdraw", "/task/x"])
def test_a_body_of_ten_megabytes_is_refused_whether_announced_or_not(site: Site, address: str) -> None:
    site.ask([Compare(Kind.TAG, (example(1, text="t"),))], QUOTES)
    ann = site.visitor("ann")
    ann.get()
    form = {"content-type": "application/x-www-form-urlencoded"}
    whole = b"name=" + b"x" * 10_000_000

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(whole), 100_000):
            yield whole[start : start + 100_000]

    for body in (whole, pieces()):
        try:
            reply = ann.client.post(address, content=body, headers=form)
        except httpx.TransportError:  # the server has hung up before all was sent, and its words may be lost with that
            continue
        assert reply.status_code == 413
        assert "Too large" in reply.text
    assert list(site.store.queue.records.answers()) == []


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ({"content-length": "10000000"}, b""),
        ({"transfer-encoding": "chunked"}, b"%x\r\n" % (MAX_BODY_BYTES + 1) + b"x" * (MAX_BODY_BYTES + 1)),
    ],
    ids=["announced", "not announced"],
)
def test_who_waits_for_a_word_is_told_that_it_is_too_large(site: Site, said: dict[str, str], sent: bytes) -> None:
    ann = site.visitor("ann")
    form = {"content-type": "application/x-www-form-urlencoded", "cookie": f"review={ann.client.cookies['review']}"}
    with closing(HTTPConnection(site.address.removeprefix("http://"), timeout=120)) as line:
        line.putrequest("POST", "/answer")
        for name, value in (form | said).items():
            line.putheader(name, value)
        line.endheaders(sent)  # and not a byte more: whoever hangs up on unread bytes may be heard no more
        reply = line.getresponse()
        assert (reply.status, "Too large" in reply.read().decode()) == (413, True)


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b'{"lease": 1}', 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("application/x-www-form-urlencoded", b"\xff\xfe=1", 400),
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(1000)), 400),
    ],
)
def test_what_is_no_form_is_refused(site: Site, kind: str, body: bytes, status: int) -> None:
    ann = site.visitor("ann")
    reply = ann.client.post("/answer", content=body, headers={"content-type": kind})
    assert reply.status_code == status
    assert "<h1>" in reply.text


@pytest.mark.parametrize("lease", ["-1", "1e9", "99999999999999999999", "9223372036854775808", "١", "1;drop", ""])
def test_leases_that_are_none_of_theirs_change_nothing(site: Site, lease: str) -> None:
    site.ask([Label(Feature("beard"), example(1, text="t"))], QUOTES)
    ann = site.visitor("ann")
    ann.get()
    assert ann.post("/answer", {"lease": [lease], "has": [lease]}).status_code == 303
    assert ann.post("/skip", {"lease": [lease]}).status_code == 303
    assert list(site.store.queue.records.answers()) == []


def test_text_that_databases_refuse_is_answered_all_the_same(site: Site) -> None:
    site.ask([Compare(Kind.TAG, (Example("odd \udcff", "1" * 64, text="nul \0 and \ud800 half"),))], QUOTES)
    ann = site.visitor("ann")
    assert ann.get().status_code == 200
    assert ann.answer(name="odd\0 one", definition="a \u202e b").status_code == 303
    assert site.visitor("boss", admin=True).client.get("/admin/export.csv").status_code == 200
    (row,) = site.store.queue.records.answers()
    assert row["answer"]["name"] == "odd one"


def test_a_failure_of_the_server_is_a_plain_page(tmp_path: Path) -> None:
    from fastapi.testclient import TestClient

    from twothirds.flows.reviewing.page import PageSettings, invite, make_app

    with Store.open(str(tmp_path / "s.sqlite")) as store:
        client = TestClient(
            make_app(store, PageSettings()), base_url="http://127.0.0.1:8765", raise_server_exceptions=False
        )
        client.get(invite(store, "ann", days=1))
        store.engine.dispose()
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE review_votes")
        reply = client.get("/")
        assert reply.status_code == 500
        assert "Nothing was saved" in reply.text
        assert "review_votes" not in reply.text
        assert "content-security-policy" in reply.headers
