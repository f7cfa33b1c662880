"""A model of the same name at another address is another oracle, and OpenAI's own is what it always was."""

from __future__ import annotations

from typing import Any

import pytest

from flows.oracle_specs import OracleSpec
from models.keys import question_key
from models.openai.bounds import Bounds
from models.openai.config import OpenAIConfig
from models.openai.oracle import identity_of
from models.openai.probe import Abilities
from models.oracle import Feature, Label, OracleError, OracleIdentity
from sources.dataset import Example

QUESTION = Label(Feature("cat", "It mentions a cat."), Example("a", "0" * 64, text="a"))
KEY_OF_OPENAI = (
    "60e05bd1b195af2f62a821a69dad6e2d5a0cc9bc4f805d8163393d3441c792b6"  # written down before addresses counted
)


def identity(url: str | None = None, *, prompts: int = 1, **changes: Any) -> OracleIdentity:
    return identity_of(
        Bounds.of(OpenAIConfig("gpt-4o-mini", url, prompts=prompts, **changes), Abilities(format="json_schema"))
    )


@pytest.mark.parametrize(
    "url",
    [
        None,
        "https://api.openai.com/v1",
        "https://api.openai.com/v1/",
        "https://API.OpenAI.com:443/v1",
        "https://api.openai.com./v1",
        "https://eu.api.openai.com/v1",
        "https://user:word@api.openai.com/v1",
    ],
)
def test_what_openai_has_answered_is_found_under_the_key_of_before(url: str | None) -> None:
    assert question_key(identity(url), QUESTION) == KEY_OF_OPENAI
    assert question_key(identity(url, prompts=2), QUESTION) != KEY_OF_OPENAI
    assert "served_by" not in dict(identity(url).parameters)


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
    assert question_key(identity(url), QUESTION) != KEY_OF_OPENAI
    assert str(identity(url)) == "openai:gpt-4o-mini"


def test_paths_of_a_gateway_are_servers_of_their_own_and_are_not_shown() -> None:
    one, other = (identity(f"https://gateway.example.org/{path}/v1").to_json() for path in ("account-1", "account-2"))
    assert one != other
    assert "account" not in str(one)


def test_a_server_that_has_moved_keeps_the_name_that_it_is_given() -> None:
    old, new = (identity(f"http://10.0.0.5:{port}/v1", served_by="our vLLM") for port in (8000, 8001))
    assert question_key(old, QUESTION) == question_key(new, QUESTION)
    assert dict(old.parameters)["served_by"] == "our vLLM"


def test_an_empty_name_goes_on_with_answers_that_were_kept_without_an_address() -> None:
    assert question_key(identity("http://10.0.0.5:8000/v1", served_by=""), QUESTION) == KEY_OF_OPENAI
    assert OracleSpec.parse("openai:m?base_url=http://10.0.0.5/v1&served_by=").parameters[1] == ("served_by", "")


@pytest.mark.parametrize("name", ["a\nb", "x" * 101])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(OracleError, match="served_by of openai:m is no name"):
        OpenAIConfig("m", served_by=name)
