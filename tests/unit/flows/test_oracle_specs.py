"""How an oracle is named: whatever is typed is an oracle or one line, and what is read can be written again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from twothirds.flows.oracle_specs import OracleSpec, secret_in, with_brief
from twothirds.flows.oracles import BUILDERS, build_oracle
from twothirds.flows.settings import Environment
from twothirds.models.oracle import OracleError
from twothirds.sources.dataset import Dataset, Example, Truth


def printable(without: str = "", least: int = 0) -> st.SearchStrategy[str]:
    letters = st.characters(exclude_categories=("C", "Z"), exclude_characters=without) | st.just(" ")
    return st.text(letters, min_size=least, max_size=12)


PARAMETERS = st.lists(st.tuples(printable(least=1), printable()), max_size=3, unique_by=lambda pair: pair[0]).map(tuple)
SPECS = st.builds(OracleSpec, printable("?:"), printable("?"), PARAMETERS).filter(lambda spec: not secret_in(str(spec)))
HOSTILE = ["", ":", "?", "openai:", "openai:?", "openai:m?price", "simulated?price=nan", "simulated?price=-1", "vlm:\0"]
HOSTILE += [
    "recorded:\0",
    "recorded:" + "x" * 5000,
    "contrastive?vocabulary=\0",
    "contrastive?threshold=1e999",
    "human:\n",
]
HOSTILE += [
    "openai:m?base_url=http://[",
    "openai:m?base_url=http://h:99999",
    "openai:m?prices=\0",
    "openai:m?price=1,2,3,4,5",
]
HOSTILE += [
    "simulated?seed=²",
    "simulated?flip=2",
    "simulated:heterogeneous?flip=x",
    "recorded:/",
    "openai:m?timeout=-1",
]
HOSTILE += [
    "human?hourly=-1",
    "human?price=inf",
    "simulated?price=1&price=2",
    "vlm:../../x?batch=0",
    "vlm:~0",
    "openai:m?asks=1e9",
]


def dataset() -> Dataset:
    examples = tuple(Example(str(row), f"d{row}", text=f"text {row}") for row in range(4))
    return Dataset("d", "d", examples, (), Truth(("a",), np.array([[0], [1], [1], [0]], np.int8)), "digest")


def built(text: str) -> object:
    environment = Environment(Path("nowhere"), SecretStr(""), None)
    return build_oracle(text, dataset(), 0, environment)


@given(SPECS)
def test_what_is_written_reads_the_same(spec: OracleSpec) -> None:
    assert OracleSpec.parse(str(spec)) == spec


@given(st.text(max_size=60))
def test_what_is_read_is_written_and_reads_the_same(text: str) -> None:
    with suppress(OracleError):
        spec = OracleSpec.parse(text)
        assert OracleSpec.parse(str(spec)) == spec


KINDS = st.sampled_from(sorted(set(BUILDERS) - {"contrastive"}))  # that one would load a model
NAMES = st.sampled_from(["price", "seed", "flip", "timeout", "asks", "hourly", "prices", "batch", "x", "base_url"])
VALUES = st.sampled_from(["", "1", "-1", "nan", "1e999", "\0", "a,b", "²", "http://[", "9" * 5000]) | st.text(
    max_size=9
)


@settings(max_examples=150)
@given(KINDS, st.sampled_from(["", ":"]), st.text(max_size=12), st.lists(st.tuples(NAMES, VALUES), max_size=3))
def test_anything_is_an_oracle_or_one_line(
    kind: str, colon: str, model: str, parameters: list[tuple[str, str]]
) -> None:
    assert_oracle_or_one_line(str(OracleSpec(f"{kind}{colon}{model}", "", tuple(parameters))))


@given(st.text(max_size=40))
@example("\ud800")
@example("openai:\ud800?price=0,0")
def test_any_text_is_an_oracle_or_one_line(text: str) -> None:
    assert_oracle_or_one_line(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_these_are_one_line(text: str) -> None:
    with pytest.raises(OracleError) as caught:
        built(text)
    assert "\n" not in str(caught.value)


def assert_oracle_or_one_line(text: str) -> None:
    said = ""
    try:
        built(text)
    except OracleError as error:
        said = str(error)
    assert said.isprintable()


@pytest.mark.parametrize(
    "parameters",
    [
        "api_key=sk-marked",
        "KEY=sk-marked",
        "base_url=http://me:sk-marked@host/v1",
        "base_url=http%3A%2F%2Fa:sk-marked%40h",
    ],
)
def test_a_secret_is_refused_and_not_repeated(parameters: str) -> None:
    with pytest.raises(OracleError, match="set OPENAI_") as caught:
        built(f"openai:gpt-4o-mini?{parameters}")
    assert "sk-marked" not in str(caught.value)


def test_what_the_data_is_about_may_have_lines_and_any_script_and_nothing_else_may() -> None:
    about = "手工家具。\n- 价格\n" * 300
    spec = with_brief("openai:m?price=1,2", about.strip(), None)
    assert dict(OracleSpec.parse(spec).parameters)["about"] == about.strip()
    for text in ("openai:m?avoid=a%0Ab", "openai:m%0Ab", "openai:m?about=a\nb", "openai:m?about=a%1Bb"):
        with pytest.raises(OracleError, match="cannot be printed"):
            OracleSpec.parse(text)
