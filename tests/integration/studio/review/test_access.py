"""Who may open what: every route for every role, links that were tampered with, forms from elsewhere."""

from __future__ import annotations

import random
import socket
import string
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.integration.conftest import Clock
from tests.support.asking import ask
from tests.support.review_site import Site, Visitor, running_site
from twothirds.discovery.questions import Kind
from twothirds.flows.cli.app import main
from twothirds.flows.reviewing.page import PageSettings, invite, is_running, link_of, make_app, serve
from twothirds.models.oracle import AnswersPending, Compare, Feature, Label
from twothirds.models.people.human import HumanOracle
from twothirds.sources.load import load_dataset
from twothirds.store import Store
from twothirds.studio.review.access import LINK, SECRET, Signer

ROLES = ("nobody", "reviewer", "admin", "revoked", "expired")
FACE = next(iter(load_dataset("datasets/faces").examples)).digest
# What each role gets; whatever is not written here is refused with 403.
ALLOWED = {
    ("GET", "/i/{token}"): dict.fromkeys(ROLES, 403),  # no token of this table is signed
    ("GET", "/static/{name}"): dict.fromkeys(ROLES, 200),
    ("GET", "/media/{digest}/{size}"): {"reviewer": 200},
    ("GET", "/"): {"reviewer": 200},
    ("GET", "/ready"): {"reviewer": 200},
    ("POST", "/touch"): {"reviewer": 204},
    ("GET", "/training"): {"reviewer": 303},  # nothing was answered in training
    ("POST", "/answer"): {"reviewer": 303},
    ("POST", "/skip"): {"reviewer": 303},
    ("POST", "/undo"): {"reviewer": 303},
    ("GET", "/admin"): {"admin": 200},
    ("GET", "/admin/export.csv"): {"admin": 200},
    ("GET", "/admin/withdraw"): {"admin": 303},  # nobody of that name has answered
    ("POST", "/admin/withdraw"): {"admin": 303},
    ("POST", "/admin/release"): {"admin": 303},
    ("GET", "/admin/disputed"): {"admin": 200},
    ("POST", "/admin/rule"): {"admin": 303},
    ("GET", "/admin/media/{digest}/{size}"): {"admin": 200},
    ("POST", "/admin/revoke"): {"admin": 303},
    ("GET", "/task/{token}"): dict.fromkeys(ROLES, 403),
    ("POST", "/task/{token}"): dict.fromkeys(ROLES, 403),
    ("GET", "/task/{token}/media/{digest}/{size}"): dict.fromkeys(ROLES, 403),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "store.sqlite")) as opened:
        yield opened


@pytest.fixture
def asked(store: Store) -> Store:
    """A comparison and some labels wait."""
    examples = load_dataset("datasets/faces").examples
    oracle = HumanOracle(store.queue)
    labels = [Label(Feature("beard"), example, 0) for example in examples[:5]]
    with pytest.raises(AnswersPending):
        list(ask(oracle, [Compare(Kind.TWO_OF_THREE, examples[:3]), *labels]))
    return store


@pytest.fixture
def site(asked: Store) -> Iterator[Site]:
    with running_site(asked) as running:
        yield running


def routes(app: FastAPI) -> set[tuple[str, str]]:
    return {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}


def visitor_of(site: Site, role: str) -> Visitor:
    if role == "nobody":
        return site.stranger()
    visitor = site.visitor(f"the {role}", admin=role == "admin", days=1e-6 if role == "expired" else 1)
    if role == "revoked":
        site.store.queue.people.revoke("the revoked")
    if role == "expired":
        time.sleep(0.1)
    return visitor


def test_every_route_gives_every_role_what_the_table_says(site: Site) -> None:
    assert routes(make_app(site.store, PageSettings())) == set(ALLOWED), "every route is in the table"
    for role in ROLES:
        for (method, path), allowed in sorted(ALLOWED.items()):
            visitor = visitor_of(site, role)
            if role in ("reviewer", "admin"):
                visitor.get("/admin" if role == "admin" else "/")
            address = path.format(token="forged", name="review.css", digest=FACE, size="small")
            fields = {"lease": visitor.hidden("lease"), "nothing": "1"}
            reply = visitor.client.get(address) if method == "GET" else visitor.post(address, fields)
            wanted = allowed.get(role, 403)
            assert reply.status_code == wanted, f"{role}: {method} {path}"
            if wanted == 403:
                assert "<h1>No access</h1>" in reply.text


def test_a_route_that_names_no_role_is_refused_to_everybody(asked: Store) -> None:
    app = make_app(asked, PageSettings())
    app.add_api_route("/forgotten", lambda: "secret", methods=["GET"])
    client = TestClient(app, base_url="http://127.0.0.1:8765")
    assert client.get("/forgotten").status_code == 403
    client.get(invite(asked, "boss", days=1, admin=True))
    assert client.get("/forgotten").status_code == 403


def mutations(token: str, count: int) -> list[str]:
    """One to three characters changed, left out, doubled, added or turned round; the end, where encodings are lax, in
    every way."""
    chance = random.Random(7)
    letters = string.ascii_letters + string.digits + "-_.=~ %"
    made = {token[:-1] + letter for letter in letters} | {token + letter for letter in letters}
    while len(made) <= count:
        one = token
        for _ in range(chance.randint(1, 3)):
            place, letter = chance.randrange(len(one)), chance.choice(letters)
            ways = (letter + one[place + 1 :], one[place + 1 :], one[place] + one[place:], letter + one[place:])
            one = one[:place] + chance.choice((*ways, one[place:][::-1]))
        made.add(one or "-")
    return sorted(made - {token})[:count]


def test_none_of_ten_thousand_mutated_links_is_accepted(asked: Store) -> None:
    invitation = asked.queue.people.invite("ann", "reviewer", 3600)
    signer = Signer(asked.queue.people.secret(SECRET))
    token = signer.sign(invitation.id, LINK)
    assert signer.read(token, LINK) == invitation.id
    tried = mutations(token, 10_000)
    assert len(tried) == 10_000
    assert [one for one in tried if signer.read(one, LINK) is not None] == []
    client = TestClient(make_app(asked, PageSettings()), base_url="http://127.0.0.1:8765")
    for one in tried[::40]:
        assert client.get(f"/i/{quote(one)}").status_code in (403, 404)
    assert not client.cookies


def test_a_link_is_good_for_links_only_and_for_this_store_only(site: Site, tmp_path: Path) -> None:
    link = site.link("ann")
    token = link.rsplit("/", 1)[-1]
    stranger = site.stranger()
    stranger.client.cookies.set("review", token)
    assert stranger.get("/").status_code == 403
    with Store.open(str(tmp_path / "another.sqlite")) as another:
        foreign = link_of(another.queue, another.queue.people.invite("ann", "reviewer", 3600), site.address)
    assert stranger.get(foreign).status_code == 403


@pytest.mark.parametrize(("way", "words"), [("expired", "expired on"), ("revoked", "was revoked on")])
def test_a_link_that_has_ended_opens_nothing_and_says_so_and_whom_to_ask(
    tmp_path: Path, clock: Clock, way: str, words: str
) -> None:
    with Store.open(str(tmp_path / "store.sqlite"), clock=clock) as store, running_site(store) as site:
        link, stranger = site.link("ann", by="Carla"), site.stranger()
        ann = site.stranger().open(link)
        assert "<bdi>Carla</bdi> has invited you" in ann.page
        assert ann.get().status_code == 200
        if way == "expired":
            clock.now += 2 * 86_400
        else:
            store.queue.people.revoke("ann")
        for reply in (ann.get(), stranger.get(link)):
            assert reply.status_code == 403
            assert words in reply.text
            assert "Ask Carla, who invited you, for a new one." in reply.text
        assert not stranger.client.cookies


def test_the_session_cookie_is_out_of_reach_of_scripts_and_of_other_sites(site: Site) -> None:
    reply = site.stranger().client.get(site.link("ann"))
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie  # plain HTTP on this machine
    value = reply.cookies["review"]
    ann = site.visitor("ann")
    ann.client.cookies.set("review", value)
    assert value not in ann.get("/").text, "a page never shows the session"


def test_over_https_the_cookie_is_secure(asked: Store) -> None:
    settings = PageSettings(base_url="https://review.example.org")
    client = TestClient(make_app(asked, settings), base_url="https://review.example.org")
    cookie = client.get(invite(asked, "ann", days=1, address=settings.address)).headers["set-cookie"]
    assert "secure" in cookie.lower()
    assert cookie.startswith("__Host-review="), "no neighbour of the domain can set it"
    assert client.get("/").status_code == 200
    client.cookies = {"review": client.cookies["__Host-review"]}
    assert client.get("/").status_code == 403


def test_a_session_that_somebody_else_put_into_the_browser_is_replaced(site: Site) -> None:
    """Fixation: who prepares a browser for another person does not share their session."""
    prepared, link = site.visitor("mallory").client.cookies["review"], site.link("ann")
    opened = [site.stranger().client.get(link, headers={"cookie": f"review={prepared}"}) for _ in range(2)]
    sessions = {prepared, *(reply.cookies["review"] for reply in opened)}
    assert len(sessions) == 3, "every opening is a session of its own"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80@127.0.0.1", "127.0.0.1, evil.example", '"><script>'])
def test_the_host_that_a_request_names_appears_nowhere(site: Site, host: str) -> None:
    ann = site.visitor("ann")
    ann.get("/")
    named = {"host": host, "x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "forwarded": "host=evil"}
    for reply in (ann.client.get("/", headers=named), ann.client.get("/nowhere", headers=named)):
        assert "evil" not in reply.text + str(reply.headers)
    answered = ann.post("/answer", {"lease": ann.hidden("lease"), "nothing": "1"}, headers=named)
    assert answered.headers["location"] == "/"


POSTED = sorted((path, role) for (method, path), roles in ALLOWED.items() if method == "POST" for role in roles)


@pytest.mark.parametrize(("address", "role"), [one for one in POSTED if one[0] != "/task/{token}"])
def test_a_form_without_the_token_of_its_session_changes_nothing(site: Site, address: str, role: str) -> None:
    ann, bob = (site.visitor(name, admin=role == "admin") for name in ("ann", "bob"))
    site.link("cyd")
    for one in (ann, bob):
        one.get("/admin" if role == "admin" else "/")
    fields = {"lease": ann.hidden("lease"), "nothing": "1", "name": "cyd"}
    for token in ("", "0" * 64, bob.hidden("csrf")[0], "\ud800"):
        assert ann.post(address, {**fields, "csrf": token.encode("utf-8", "replace")}).status_code == 403
    for site_of in ("cross-site", "same-site"):
        assert ann.post(address, fields, headers={"sec-fetch-site": site_of}).status_code == 403
    assert list(site.store.queue.records.answers()) == []
    assert not any(one.revoked_at for one in site.store.queue.people.invitations())
    assert ann.post(address, fields).status_code in (303, 204), "with the right token it is taken"


def test_a_reviewer_cannot_answer_for_another(site: Site) -> None:
    ann, bob = site.visitor("ann"), site.visitor("bob")
    ann.get("/")
    bob.get("/")
    reply = bob.post("/answer", {"lease": ann.hidden("lease"), "nothing": "1"})
    assert reply.headers["location"] == "/?note=again"
    bob.post("/skip", {"lease": ann.hidden("lease")})
    assert list(site.store.queue.records.answers()) == []


def test_a_reviewer_reads_nothing_of_what_another_answered(site: Site) -> None:
    """Names are suggested to everybody, by design; who gave them, what they were given for and the rest is hidden."""
    ann, bob = site.visitor("ann-who-answers"), site.visitor("bob")
    ann.get("/")
    fields = {"name": "round thing", "definition": "words of nobody else", "shown": [0, 1]}
    assert ann.answer(**fields).status_code == 303
    [row] = site.store.queue.records.answers()
    assert row["answer"]["definition"] == "words of nobody else"
    taken = str(row["id"])
    for address in ("/", "/ready", "/?note=again", f"/?lease={taken}", f"/?undo={taken}"):
        reply = bob.get(address)
        assert reply.status_code == 200
        assert "words of nobody else" not in reply.text
        assert "ann-who-answers" not in reply.text
    assert bob.post("/undo", {"lease": taken}).status_code == 303
    assert [(row["by"], row["state"]) for row in site.store.queue.records.answers()] == [("ann-who-answers", "given")]
    for address in ("/admin", "/admin/export.csv"):
        assert "words of nobody else" not in bob.get(address).text


def test_the_same_form_sent_twice_and_from_two_tabs_counts_once(site: Site) -> None:
    ann = site.visitor("ann")
    ann.get("/")
    first_tab = ann.page
    assert ann.get("/").text == first_tab
    fields = {"csrf": ann.hidden("csrf")[0], "lease": ann.hidden("lease"), "nothing": "1"}
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: ann.post("/answer", fields), range(8)))
    assert {reply.status_code for reply in replies} == {303}
    assert [row["state"] for row in site.store.queue.records.answers()] == ["given"]


def test_inviting_knows_where_the_page_runs_and_whether_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store_of = ["--store", str(tmp_path / "store.sqlite")]
    with Store.open(store_of[1]) as store, socket.create_server(("127.0.0.1", 0)) as listening:
        everywhere = PageSettings(host="0.0.0.0", port=listening.getsockname()[1])
        assert everywhere.address == f"http://{socket.gethostname()}:{everywhere.port}", "what a browser can open"
        assert main(["review", "invite", "Ann", *store_of]) == 0
        assert "the page is not running" in capsys.readouterr().err
        monkeypatch.setattr("twothirds.flows.reviewing.page._assert_free", lambda _settings: None)
        monkeypatch.setattr("uvicorn.run", lambda *_arguments, **_options: None)
        serve(store, everywhere)
        assert is_running(store)
    with socket.create_server(("127.0.0.1", everywhere.port)):
        assert main(["review", "invite", "Bob", *store_of]) == 0
        printed = capsys.readouterr()
        assert printed.out.startswith(f"{everywhere.address}/i/")
        assert printed.err == ""
