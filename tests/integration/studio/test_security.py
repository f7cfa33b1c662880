"""The studio against forged links, foreign forms, hostile names, and whatever else its routes may be sent."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.integration.studio.review.test_access import mutations, routes
from tests.support.any_request import send_anything
from tests.support.hostile_studio import FOLDER, HostileFolders, hostile_folders
from tests.support.run_folders import HOSTILE
from tests.support.studio_site import StudioSite, faces_run, running_studio
from twothirds.flows.serving.app import StudioSettings, make_studio, studio_link
from twothirds.store import Store

HOME = "http://127.0.0.1:8765"
PUBLIC_FORMS = {"/task/{token}"}  # whose address is the secret
FIELDS = (
    *("action", "name", "to", "parts", "into", "keep", "ask", "budget", "confirmed", "seen", "definition", "feature"),
    *("example", "label", "json", "here", "back", "role", "dataset", "oracle", "oracles", "features", "votes", "out"),
    *("oracle_kind", "add", "agreed", "queries", "lease", "has", "names", "examples", "text", "usd", "format"),
)


@pytest.fixture
def site(studio: StudioSite) -> StudioSite:
    faces_run(studio.root / "faces", ["hat", "beard"])
    return studio


def test_every_form_of_every_page_needs_the_token_of_its_session_and_a_page_of_this_site(
    site: StudioSite, tmp_path: Path
) -> None:
    app = make_studio(site.store, StudioSettings((str(tmp_path / "runs"),)))
    forms = sorted(path for method, path in routes(app) if method == "POST" and path not in PUBLIC_FORMS)
    assert len(forms) >= 15
    other = site.staff("Bob", "admin")
    other.get("/people")
    stolen = other.hidden("csrf")[0]
    for role, home in (("admin", "/people"), ("editor", "/runs"), ("reviewer", "/")):
        person = site.staff(f"the {role}", role) if role != "reviewer" else site.visitor("the reviewer")
        person.get(home)
        own = person.hidden("csrf")
        for path in forms:
            address = re.sub(r"{key}", "000000000000", path).replace("{command}", "discover")
            for token in ("", "forged", stolen):
                assert person.post(address, {"csrf": token}).status_code == 403, f"{role} {path} {token}"
            foreign = {"sec-fetch-site": "cross-site"}
            refused = person.post(address, {"csrf": own[0] if own else ""}, headers=foreign)
            assert refused.status_code == 403, f"{role} {path} from elsewhere"


def test_only_the_link_that_was_issued_opens_and_only_while_it_holds(site: StudioSite, tmp_path: Path) -> None:
    link = studio_link(site.store, "Ann", "editor", site.settings())
    token = link.rpartition("/s/")[2]
    stranger = site.stranger()
    for forged in random.Random(1).sample(mutations(token, 300), 60):
        if "/" not in forged and "?" not in forged and "#" not in forged:
            assert stranger.client.get(f"{site.address}/s/{forged}").status_code in (403, 404), forged
    with Store.open(str(tmp_path / "other.sqlite")) as other:
        foreign = studio_link(other, "Ann", "editor", site.settings())
        assert stranger.get(foreign).status_code == 403
    reviewer = site.link("Rob").replace("/i/", "/s/")
    assert stranger.get(reviewer).status_code == 403, "a reviewer's link opens no studio"
    assert stranger.get("/runs").status_code == 403
    assert stranger.get(link).status_code == 200
    assert stranger.get("/runs").status_code == 200
    site.store.queue.people.revoke("Ann")
    assert stranger.get("/runs").status_code == 403
    assert stranger.get(link).status_code == 403


def test_a_session_of_another_store_is_none_here(site: StudioSite, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "other.sqlite")) as other, running_studio(other, tmp_path / "runs") as elsewhere:
        owner = elsewhere.staff("Olga", "admin")
        assert owner.get("/people").status_code == 200
        cookies = dict(owner.client.cookies)
    visitor = site.stranger()
    visitor.client.cookies.update(cookies)
    for address in ("/runs", "/people", "/start/enrich", "/costs"):
        assert visitor.get(address).status_code == 403


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileFolders:
    return hostile_folders(tmp_path_factory.mktemp("hostile"))


def test_hostile_names_and_texts_are_shown_as_they_are_on_every_page(hostile: HostileFolders) -> None:
    with Store.open(hostile.store) as store, running_studio(store, hostile.root) as site:
        owner = site.staff(HOSTILE[0], "admin")
        shown = ""
        for address in [*hostile.pages(), *hostile.pages_of_owner()]:
            reply = owner.get(address)
            assert reply.status_code == 200, address
            for words in ("<script>document", "<img src=x", "onerror=alert(1)>", ">49<"):
                assert words not in reply.text.replace("&gt;", ""), f"{words} on {address}"
            assert "script-src 'self'" in reply.headers["content-security-policy"]
            shown += unescape(reply.text)
        for words in (FOLDER, *HOSTILE[:2]):
            assert words in shown
        reply = owner.get(f"/comparisons/{hostile.comparison}/file")
        assert reply.text == HOSTILE[0]
        assert "sandbox allow-scripts allow-downloads;" in reply.headers["content-security-policy"]
        assert "allow-same-origin" not in reply.headers["content-security-policy"]


@pytest.fixture(scope="module")
def app(hostile: HostileFolders) -> Iterator[FastAPI]:
    with Store.open(hostile.store) as store:
        settings = StudioSettings((str(hostile.root),))
        made = make_studio(store, settings)
        made.state.links = {role: studio_link(store, f"the {role}", role, settings) for role in ("admin", "editor")}
        yield made


@pytest.mark.parametrize("role", [pytest.param("editor", marks=pytest.mark.slow), "admin"])
def test_no_route_fails_whatever_it_is_sent(app: FastAPI, hostile: HostileFolders, role: str) -> None:
    client = TestClient(app, base_url=HOME, raise_server_exceptions=False, follow_redirects=False)
    client.get(app.state.links[role])
    csrf = client.get(f"/runs/{hostile.run}").text.partition('name="csrf" value="')[2].partition('"')[0]
    assert csrf
    keys = {"/runs/": hostile.run, "/tables/": hostile.table, "/started/": hostile.started}
    seen = send_anything(app, client, csrf, FIELDS, keys | {"/comparisons/": hostile.comparison})
    assert 200 in seen["get", "/tables/{key}"]
    assert 422 in seen["post", "/runs/{key}/change"]
