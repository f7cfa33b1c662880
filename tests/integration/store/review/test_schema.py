"""Every route is sent what nobody expects; none may fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok

from discovery.questions import Kind
from flows.reviewing.page import PageSettings, invite, make_app
from models.oracle import AnswersPending, Compare, Feature, Label
from models.people.human import HumanOracle
from store import Store
from tests.support.made import texts

FORM = {
    "content": {
        "application/x-www-form-urlencoded": {
            "schema": {
                "type": "object",
                "properties": {
                    name: {"type": "string"}
                    for name in ("csrf", "lease", "has", "unsure", "shown", "name", "definition", "nothing", "reason")
                },
            }
        }
    }
}

few = settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    path: Path = tmp_path_factory.mktemp("schema") / "store.sqlite"
    with Store.open(str(path)) as store:
        labels = [Label(Feature("beard"), example) for example in texts(5)]
        with pytest.raises(AnswersPending):
            list(HumanOracle(store.queue).ask([Compare(Kind.TWO_OF_THREE, texts(3)), *labels]))
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
    description = app.openapi()
    for methods in description["paths"].values():
        if "post" in methods:
            methods["post"]["requestBody"] = FORM
    sent = set()

    def send(case: Any) -> None:
        fields = {**case.body, "csrf": csrf} if isinstance(case.body, dict) else None
        reply = client.request(case.method, case.formatted_path, params=case.query, data=fields)
        sent.add((case.method.lower(), case.path))
        assert reply.status_code < 500, f"{case.method} {case.formatted_path}"

    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        assert isinstance(result, Ok)
        few(given(result.ok().as_strategy())(lambda case: send(case)))()
    assert sent == {(method, path) for path, methods in description["paths"].items() for method in methods}
