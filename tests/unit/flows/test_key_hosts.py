"""The key goes to OpenAI, the server of OPENAI_BASE_URL and the hosts of TWOTHIRDS_KEY_HOSTS: a parameter gets it
nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.support.fake_openai import Abilities, FakeOpenAI
from twothirds.flows.oracles import build_oracle
from twothirds.flows.settings import Environment
from twothirds.models.openai import OpenAIOracle
from twothirds.models.oracle import OracleUnavailable
from twothirds.sources import Dataset, DatasetError, load_dataset

KEY = "sk-marked-secret"
PROXY = "https://proxy.example/v1"


def key_for(base_url: str, *hosts: str, proxy: str | None = None) -> str:
    environment = Environment(Path("nowhere"), SecretStr(KEY), proxy, hosts)
    text = f"openai:gpt-4o-mini?base_url={base_url}" if base_url else "openai:gpt-4o-mini"
    oracle = build_oracle(text, Dataset("d", "d", (), (), None, "digest"), 0, environment)
    assert isinstance(oracle, OpenAIOracle)
    return oracle.config.api_key.get_secret_value()


@pytest.mark.parametrize(
    ("base_url", "hosts", "proxy"),
    [
        ("", (), None),
        ("https://api.openai.com/v1", (), None),
        ("https://API.openai.com:443/v1", (), PROXY),
        ("", (), PROXY),
        ("https://proxy.example/v2", (), PROXY),
        ("", (), "http://me:word@127.0.0.1:8000/v1"),
        ("https://other.example/v1", ("other.example",), None),
        ("http://gpu:8000/v1", ("other.example", "gpu:8000"), None),
        ("http://[::1]:8000/v1", ("[::1]:8000",), None),
    ],
)
def test_it_goes_where_the_environment_says(base_url: str, hosts: tuple[str, ...], proxy: str | None) -> None:
    assert key_for(base_url, *hosts, proxy=proxy) == KEY


@pytest.mark.parametrize(
    "base_url",
    [
        "https://evil.example/v1",
        "http://api.openai.com/v1",  # in the clear
        "https://api.openai.com:8443/v1",
        "https://api.openai.com.evil.example/v1",
        "https://evil.example/api.openai.com",
        "https://evil.example%23@api.openai.com.evil.example/v1",
        "http://localhost:11434/v1",
        "http://proxy.example/v1",
        "http://other.example/v1",
        "http://gpu:8001/v1",
    ],
)
def test_it_goes_nowhere_else(base_url: str) -> None:
    assert key_for(base_url, "other.example", "gpu:8000", proxy=PROXY) == ""


def test_a_server_that_wants_the_key_is_one_line_that_says_how_to_give_it(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with FakeOpenAI(abilities=Abilities(key=KEY)) as server:
        text = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0,0"
        loaded, host = load_dataset(str(dataset)), server.base_url.split("/")[2]
        with pytest.raises(OracleUnavailable, match=f"sent none.*add {host} there") as caught:
            build_oracle(text, loaded, 0, Environment.read()).prepare(loaded.examples)
        assert "\n" not in str(caught.value)
        monkeypatch.setenv("TWOTHIRDS_KEY_HOSTS", f"other.example,{host}")
        build_oracle(text, loaded, 0, Environment.read()).prepare(loaded.examples)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "TWOTHIRDS_STORE", "PREFECT_API_AUTH_STRING", "AWS_SESSION_TOKEN"])
def test_nor_does_a_data_set_s_address_carry_it_away(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, KEY)
    with pytest.raises(DatasetError, match=f"{name} is not for addresses") as caught:
        load_dataset(f"https://evil.example/${{{name}}}/pets.csv")
    assert KEY not in str(caught.value)
