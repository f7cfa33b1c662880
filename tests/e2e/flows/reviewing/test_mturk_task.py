"""A task in a marketplace's frame: looked at, accepted, answered, and handed in at a local stand-in for Amazon."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest
from playwright.sync_api import Browser, expect

from tests.support.asking import ask
from tests.support.axe import serious_violations
from tests.support.chromium import opened
from tests.support.review_site import Site, running_site
from twothirds.models.oracle import AnswersPending, Feature, Label
from twothirds.models.people.human import HumanOracle
from twothirds.sources.load import load_dataset
from twothirds.store import Store
from twothirds.store.review.mturk import Hit
from twothirds.studio.review.access import SECRET, TASK, Signer


@dataclass
class Marketplace:
    """Shows a task in a frame, as the worker's page of Mechanical Turk does, and takes it when it is handed in."""

    address: str = ""
    framed: str = ""
    handed_in: list[dict[str, list[str]]] = field(default_factory=list)


@pytest.fixture
def marketplace() -> Iterator[Marketplace]:
    market = Marketplace()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(f'<!doctype html><title>Marketplace</title><iframe src="{market.framed}" width=1200 height=900>')

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            market.handed_in.append({"path": [self.path], **parse_qs(body)})
            self._say("<!doctype html><title>Thanks</title><p>Handed in")

        def _say(self, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    market.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield market
    server.shutdown()
    server.server_close()


@pytest.fixture
def site(tmp_path: Path, marketplace: Marketplace) -> Iterator[Site]:
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        running_site(store, submit_addresses=(marketplace.address,)) as running,
    ):
        yield running


def published(site: Site) -> str:
    """The address of a task with six labels."""
    labels = [Label(Feature("glasses"), example) for example in load_dataset("datasets/faces").examples[:6]]
    with pytest.raises(AnswersPending) as pending:
        list(ask(HumanOracle(site.store.queue), labels))
    terms = {"people": 1, "market": "sandbox", "bound": 0}
    site.store.queue.mturk.plan([Hit("token", "", pending.value.items, terms, "run")])
    return f"{site.address}/task/{Signer(site.store.queue.people.secret(SECRET)).sign('token', TASK)}"


def test_a_worker_previews_accepts_answers_and_hands_in(
    site: Site, marketplace: Marketplace, chromium: Browser
) -> None:
    task = published(site)
    marketplace.framed = f"{task}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=3HIT"
    with opened(chromium, marketplace.address, viewport={"width": 1280, "height": 1000}) as seen:
        frame = seen.page.frame_locator("iframe")
        expect(frame.get_by_text("Accept the task to begin")).to_be_visible()
        assert frame.locator("img, form").count() == 0
        where = quote(marketplace.address, safe="")
        marketplace.framed = f"{task}?assignmentId=3AS1&hitId=3HIT&workerId=A1W&turkSubmitTo={where}"
        seen.page.goto(marketplace.address)
        expect(frame.get_by_role("heading", name="glasses")).to_be_visible()
        assert frame.locator(".card img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") > 50
        with opened(chromium, marketplace.framed) as alone:
            assert serious_violations(alone.page) == []
        frame.locator(".card").nth(0).click()
        frame.locator(".card").nth(3).click()
        frame.get_by_role("button", name="Save").click()
        frame.get_by_role("button", name="Submit").click()
        expect(frame.get_by_text("Handed in")).to_be_visible()
        assert [line for line in seen.complaints if "favicon" not in line and "404" not in line] == []
    assert marketplace.handed_in == [{"path": ["/mturk/externalSubmit"], "assignmentId": ["3AS1"], "answered": ["yes"]}]
    assert site.store.queue.mturk.submitted("token", "3AS1", "mturk A1W") == {"held": 6}
    assert sum(row["answer"]["verdict"] == "yes" for row in site.store.queue.records.answers()) == 2
    assert site.store.queue.mturk.confirm("token", "3AS1", "mturk A1W") == 6


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("assignmentId=3AS1&workerId=A1&turkSubmitTo=https%3A%2F%2Fevil.example", "unknown marketplace"),
        ("assignmentId=3AS1&workerId=A1", "unknown marketplace"),
        ("assignmentId=3AS1&workerId=%3Cscript%3E&turkSubmitTo={where}", "not opened by Mechanical Turk"),
        ("assignmentId=&workerId=A1&turkSubmitTo={where}", "not opened by Mechanical Turk"),
    ],
)
def test_a_task_is_handed_in_nowhere_else(site: Site, marketplace: Marketplace, query: str, problem: str) -> None:
    reply = site.stranger().get(f"{published(site)}?{query.format(where=quote(marketplace.address, safe=''))}")
    assert reply.status_code == 403
    assert problem in reply.text


def test_answers_count_only_under_the_stamp_of_their_assignment(site: Site, marketplace: Marketplace) -> None:
    task, where = published(site), quote(marketplace.address, safe="")
    worker = site.stranger()
    page = worker.get(f"{task}?assignmentId=3AS1&workerId=A1&turkSubmitTo={where}").text
    assert "frame-ancestors" in worker.client.get(task).headers["content-security-policy"]
    fields = {name: worker.hidden(name)[0] for name in ("assignment", "worker", "submit_to", "stamp")}
    fields["lease"] = worker.hidden("lease")  # type: ignore[assignment]
    for forged in ({"assignment": "3AS2"}, {"worker": "A2"}, {"stamp": "0" * 64}):
        assert worker.post(task, {**fields, **forged}).status_code == 403
    assert list(site.store.queue.records.answers()) == []
    first = page.partition("/media/")[2][:64]
    assert worker.client.get(f"{task}/media/{first}/small").status_code == 200
    assert worker.client.get(f"{task}/media/{'0' * 64}/small").status_code == 404
    for _ in range(2):
        assert "Submit" in worker.post(task, fields).text
    assert site.store.queue.mturk.submitted("token", "3AS1", "mturk A1") == {"held": 6}
    assert site.store.queue.mturk.confirm("token", "3AS1", "mturk A1") == 6
    late = site.stranger().get(f"{task}?assignmentId=3AS9&workerId=A9&turkSubmitTo={where}")
    assert late.status_code == 409
    assert "Please return it" in late.text
