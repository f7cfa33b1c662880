"""Whatever a route may be sent, by its description: schemathesis makes the requests, and none may fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok

few = settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)


def send_anything(
    app: FastAPI, client: TestClient, csrf: str, fields: Iterable[str], known: Mapping[str, str] | None = None
) -> dict[tuple[str, str], set[int]]:
    """Statuses by method and path of every route, each sent some requests. Forms have `fields` of any text; `known` are
    addresses that lead somewhere, by how they begin: their part in place of the first parameter of a path."""
    text = {"type": "string"}
    body = {"schema": {"type": "object", "properties": dict.fromkeys(fields, text)}}
    description = app.openapi()
    for path, methods in description["paths"].items():
        if "post" in methods:
            methods["post"]["requestBody"] = {"content": {"application/x-www-form-urlencoded": body}}
        begins, _, rest = path.partition("{")
        if begins in (known or {}):
            for operation in methods.values():
                first = next(one for one in operation["parameters"] if one["name"] == rest.partition("}")[0])
                first["schema"] = {"type": "string", "enum": [(known or {})[begins]]}
    seen: dict[tuple[str, str], set[int]] = {}

    def send(case: Any) -> None:
        sent = {**case.body, "csrf": csrf} if isinstance(case.body, dict) else None
        reply = client.request(case.method, case.formatted_path, params=case.query, data=sent)
        seen.setdefault((case.method.lower(), case.path), set()).add(reply.status_code)
        assert reply.status_code < 500, f"{case.method} {case.formatted_path} {sent}"

    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        assert isinstance(result, Ok)
        few(given(result.ok().as_strategy())(lambda case: send(case)))()
    assert set(seen) == {(method, path) for path, methods in description["paths"].items() for method in methods}
    return seen
