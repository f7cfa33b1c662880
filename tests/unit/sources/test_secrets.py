"""Addresses that carry secrets: what is shown and kept of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.sources.files.location import child, parent, reason_of
from twothirds.sources.printable import quoted
from twothirds.sources.secrets import is_secret_name, secret_of, with_variables, without_secrets
from twothirds.sources.tables.parquet import cell_location, cell_of

SHORN = {
    "https://me:pw@h/a.csv": "https://h/a.csv",
    "https://ghp_16C7e42F292c6912E7@h/a.csv": "https://h/a.csv",
    "http://me:a/b@h/a.csv": "http://h/a.csv",
    "https://h/a.csv?token=abc": "https://h/a.csv?token=***",
    "https://h/a.csv?v=1&X-Amz-Credential=AK%2F1&X-Amz-Signature=ab#x": (
        "https://h/a.csv?v=1&X-Amz-Credential=***&X-Amz-Signature=***#x"
    ),
    "https://h/a.csv?sv=2026&se=9&sig=a%2Bb%3D": "https://h/a.csv?sv=***&se=***&sig=***",
    "https://h/a.csv?AWSAccessKeyId=AK&Signature=b&Expires=17": (
        "https://h/a.csv?AWSAccessKeyId=***&Signature=***&Expires=***"
    ),
    "https://h/a.csv?3HL4kqtJlcpXroDTDmJrmSpXd3dIbrHY": "https://h/a.csv?***",
    "https://h/a.csv?x=3HL4kqtJlcpXroDTDmJrmSpXd3dIbrHY": "https://h/a.csv?x=***",
    "http://[::1]:80/a.csv?token=abc": "http://[::1]:80/a.csv?token=***",
    "zip://a.csv::https://me:pw@h/a.zip?sig=x": "zip://a.csv::https://h/a.zip?sig=***",
    "403, message='Forbidden', url='http://h/x?token=abc&b=1'": "403, message='Forbidden', url='http://h/x?token=***&b=***'",
}
HARMLESS = [
    "/data/a@b.csv?token=abc",  # a file of that name
    "https://h:8080/a@b.png",
    "s3://bucket/photo@2x.png",
    "sftp://me@h/a.csv",
    "https://h/a.csv?versionId=3HL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY",
    "https://h/a.csv?path=/data/2020/some-file.csv&gid=0&download=1",
    "https://h/a.csv?${QUERY}",
    "https://h/a.csv?sig=${SIG}&v=1",
]


@pytest.mark.parametrize("text", SHORN)
def test_what_is_secret_in_an_address_is_neither_shown_nor_kept(text: str) -> None:
    assert without_secrets(text) == SHORN[text]
    assert quoted(text) == repr(SHORN[text])
    assert secret_of(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_not_secret_stays(text: str) -> None:
    assert not secret_of(text)
    if not text.startswith("sftp"):
        assert without_secrets(text) == text


def test_a_password_in_a_variable_is_no_secret_of_the_settings() -> None:
    assert not secret_of("https://me:${PASSWORD}@h/a.csv")
    assert not secret_of("https://${TOKEN}@h/a.csv")
    assert secret_of("https://me:x${PASSWORD}@h/a.csv") == "a password"


@given(st.text(), st.sampled_from(["token", "sig", "X-Goog-Signature", "password"]), st.text(min_size=1))
def test_shearing_twice_is_shearing_once_and_never_fails(path: str, name: str, value: str) -> None:
    once = without_secrets(f"{path}https://h/{path}?{name}={value}")
    assert without_secrets(once) == once


@given(st.from_regex(r"[A-Za-z0-9%_.~+/=-]{8,60}", fullmatch=True), st.sampled_from(["token", "sig", "secret", "key"]))
def test_no_value_of_a_secret_parameter_is_left(value: str, name: str) -> None:
    for text in (f"https://h/a?{name}={value}", f"GET https://h/a?b=1&{name}={value}: 403"):
        assert value not in without_secrets(text)


@pytest.mark.parametrize(
    "name", ["max_output_tokens", "tokens_per_minute", "keyframes", "synonym", "revision", "price"]
)
def test_parameters_of_oracles_are_not_taken_for_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "API-KEY", "token", "access_token", "Authorization", "client_secret"]
)
def test_names_of_secrets_are_known_however_they_are_written(name: str) -> None:
    assert is_secret_name(name)


def test_what_a_variable_held_is_cut_out_of_everything_said_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARED_LINK", "s/veryprivate")
    assert with_variables("https://h/${SHARED_LINK}/a.csv") == "https://h/s/veryprivate/a.csv"
    assert reason_of(ValueError("https://h/s/veryprivate/a.csv is no table")) == "https://h/***/a.csv is no table"


def test_files_on_a_web_server_are_asked_for_with_the_query_of_the_table_beside_them() -> None:
    table = "https://h/d/t.parquet?sig=a/b"
    assert parent(table) == "https://h/d?sig=a/b"
    assert child(parent(table), "p/1.png") == "https://h/d/p/1.png?sig=a/b"
    assert child("memory://d?e", "a.csv") == "memory://d?e/a.csv"
    assert cell_of(cell_location(table, "image", 3)) == (table, "image", 3)


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "http://" * 30_000, "http://" + "a://" * 50_000 + "@", "http://" + "a:@" * 60_000, "a@" * 100_000],
    ids=["word", "schemes", "schemes@", "users", "ats"],
)
def test_a_long_hostile_text_is_looked_through_at_once(text: str) -> None:
    start = time.process_time()
    without_secrets(text)
    secret_of(text)
    assert time.process_time() - start < 3, "it took hours before"


TRUE_SECRETS = [
    *("code=0.AXoAx8zN4uJqT1v", "code=4/0AX4XfWh-secret", "code=a1b2c3d4", "key=AIzaSyD-9tSrke72PouQMnMX"),
    *("key=s3cretpw", "key=abcdefgh", "api_key=abc", "apiKey=x", "subscription-key=abc"),
    *("Ocp-Apim-Subscription-Key=q", "private_key=x", "pass=hunter2", "pwd=x", "passwd=abc", "password=a"),
    *("passcode=1234", "access_code=1234", "auth=abc", "auth_code=12", "token=1", "access_token=abc"),
    *("refreshToken=abc", "sig=x", "X-Amz-Signature=a", "X-Goog-Credential=a", "jwt=a.b.c", "session=9f8a7b6c5d4e"),
    *("sid=0123456789abcdef", "ticket=ST-1856339-aA5", "Policy=eyJTdGF0ZW1lbnQiOlt7", "hmac=ab", "sas=x"),
    *("client_secret=x", "sessionToken=x", "session_key=abc", "SharedAccessSignature=x", "bearer=x"),
]


@pytest.mark.parametrize("parameter", ["code=DE", "key=year", "session=3", "keyword=security", "tokens=100", "x=1"])
def test_a_harmless_parameter_is_not_refused_though_it_is_redacted(parameter: str) -> None:
    address = f"https://data.example.org/export.csv?{parameter}&format=csv"
    assert secret_of(address) == ""
    assert without_secrets(address).endswith(f"?{parameter.partition('=')[0]}=***&format=csv")


@pytest.mark.parametrize("parameter", TRUE_SECRETS)
def test_a_secret_parameter_is_refused_and_redacted(parameter: str) -> None:
    address = f"https://data.example.org/export.csv?format=csv&{parameter}"
    assert secret_of(address).startswith("a secret (its parameter ")
    assert (
        without_secrets(address) == f"https://data.example.org/export.csv?format=csv&{parameter.partition('=')[0]}=***"
    )
