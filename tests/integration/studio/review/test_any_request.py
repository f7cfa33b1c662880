"""Every route is sent what nobody expects; none may fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.support.any_request import send_anything
from tests.support.asking import ask
from tests.support.made import texts
from twothirds.discovery.questions import Kind
from twothirds.flows.reviewing.page import PageSettings, invite, make_app
from twothirds.models.oracle import AnswersPending, Compare, Feature, Label
from twothirds.models.people.human import HumanOracle
from twothirds.store import Store

FIELDS = ("csrf", "lease", "has", "unsure", "shown", "name", "definition", "nothing", "reason")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    path: Path = tmp_path_factory.mktemp("schema") / "store.sqlite"
    with Store.open(str(path)) as store:
        labels = [Label(Feature("beard"), example) for example in texts(5)]
        with pytest.raises(AnswersPending):
            list(ask(HumanOracle(store.queue), [Compare(Kind.TWO_OF_THREE, texts(3)), *labels]))
        made = make_app(store, PageSettings(submit_addresses=("http://127.0.0.1:1",)))
        made.state.links = {
            "reviewer": invite(store, "ann", days=1),
            "admin": invite(store, "boss", days=1, admin=True),
            "nobody": "",
        }
        yield made


@pytest.mark.parametrize("role", ["nobody", "reviewer", "admin"])
def test_no_route_fails_whatever_it_is_sent(app: FastAPI, role: str) -> None:
    client = TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False, follow_redirects=False)
    if app.state.links[role]:
        client.get(app.state.links[role])
    page = client.get("/admin" if role == "admin" else "/").text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    send_anything(app, client, csrf, FIELDS)
