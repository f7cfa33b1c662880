"""A model of the same name at another address is another oracle; OpenAI has many addresses."""

from __future__ import annotations

from typing import Any

import pytest

from twothirds.models.openai.config import OpenAIConfig
from twothirds.models.openai.oracle import identity_of
from twothirds.models.oracle import OracleError, OracleIdentity


def identity(url: str | None = None, **changes: Any) -> OracleIdentity:
    return identity_of(OpenAIConfig("gpt-4o-mini", url, **changes))


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "https://api.openai.com/v1/",
        "https://API.OpenAI.com:443/v1",
        "https://api.openai.com./v1",
        "https://eu.api.openai.com/v1",
        "https://user:word@api.openai.com/v1",
    ],
)
def test_openai_has_many_addresses(url: str) -> None:
    assert identity(url) == identity()


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("http://127.0.0.1:8000/v1", "localhost:8000"),
        ("http://localhost:8000/v1/", "localhost:8000"),
        ("http://[::1]:8000/v1", "localhost:8000"),
        ("http://localhost:8000", "localhost:8000"),
        ("http://localhost:11434/v1", "localhost:11434"),
        ("http://10.0.0.5:8000/v1", "10.0.0.5:8000"),
        ("http://[fd00::5]/v1", "[fd00::5]"),
        ("https://openrouter.ai/api/v1", "openrouter.ai/63e3a42f"),
        ("https://own.openai.azure.com/v1", "own.openai.azure.com"),
        ("https://other.openai.azure.com/v1", "other.openai.azure.com"),
        ("http://api.openai.com/v1", "api.openai.com"),
        ("https://api.openai.com:8443/v1", "api.openai.com:8443"),
        ("https://api.openai.com.example.org/v1", "api.openai.com.example.org"),
        ("https://notapi.openai.com/v1", "notapi.openai.com"),
        ("https://name:hunter2@models.example.org/v1?token=secret", "models.example.org"),
    ],
)
def test_every_other_server_has_a_name_of_its_own(url: str, server: str) -> None:
    assert dict(identity(url).parameters)["served_by"] == server
    assert str(identity(url)) == "openai:gpt-4o-mini"


def test_paths_of_a_gateway_are_servers_of_their_own_and_are_not_shown() -> None:
    one, other = (identity(f"https://gateway.example.org/{path}/v1").to_json() for path in ("account-1", "account-2"))
    assert one != other
    assert "account" not in str(one)


def test_a_server_that_has_moved_keeps_the_name_that_it_is_given() -> None:
    old, new = (identity(f"http://10.0.0.5:{port}/v1", served_by="our vLLM") for port in (8000, 8001))
    assert old == new
    assert dict(old.parameters)["served_by"] == "our vLLM"


@pytest.mark.parametrize("name", ["a\nb", "x" * 101])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(OracleError, match="served_by of openai:m is no name"):
        OpenAIConfig("m", served_by=name)
