"""Other tools' prompts on the server that keeps the book, and our own tool beside them at a tiny size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai import OpenAI

from benchmarks.peers import prompts
from benchmarks.peers.asking import Purse
from benchmarks.peers.finding import counted
from benchmarks.peers.job import MODEL, PRICE
from benchmarks.peers.running import CALM, OURS, Bench, Case, Tool
from benchmarks.peers.styles import STYLES
from benchmarks.price.data import write_texts
from models.prices import parse_price
from sources import load_dataset
from tests.support.fake_openai import WidelyReadServer

ZOO = load_dataset(str(Path(__file__).parents[3] / "datasets" / "zoo" / "animals.csv"))
FIELDS = {"no_legs": {"type": "boolean", "description": "It has no legs."}, "milk": {"type": "boolean"}}
PLAIN = Tool("plain", OURS.module, variant="plain", budget=True)


@pytest.fixture(name="server")
def _server() -> Iterator[WidelyReadServer]:
    with WidelyReadServer(ZOO, CALM, price=parse_price(PRICE)) as server:
        yield server


def truth_of(row: int, name: str) -> bool:
    assert ZOO.truth is not None
    return bool(ZOO.truth.matrix[row, ZOO.truth.columns.index(name)])


def called(server: WidelyReadServer, row: int) -> Any:
    function: Any = {"name": "Features", "parameters": prompts.of_object(FIELDS)}
    with OpenAI(base_url=server.base_url, api_key="none") as client:
        return client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": f"Here is one:\n{ZOO.examples[row].text}"}],
            tools=[{"type": "function", "function": function}],
        )


def test_a_tool_is_called_with_what_is_true_of_the_example(server: WidelyReadServer) -> None:
    for row in (0, 2, 40):
        [call] = called(server, row).choices[0].message.tool_calls
        wanted = {"no_legs": truth_of(row, "no legs"), "milk": truth_of(row, "milk")}
        assert json.loads(call.function.arguments) == wanted
    assert [len(one.cells) for one in server.served] == [2, 2, 2]
    assert len({cell for one in server.served for cell in one.cells}) == 6


def test_what_a_tool_declares_is_paid_for(server: WidelyReadServer) -> None:
    usage = called(server, 0).usage
    text = len((ZOO.examples[0].text or "").split())
    assert usage.prompt_tokens > text + 15
    assert usage.completion_tokens >= 8


def test_prose_is_no_call_and_half_the_fields_are_missing(server: WidelyReadServer) -> None:
    server.misbehave(1.0, ["prose"])
    assert called(server, 0).choices[0].message.tool_calls is None
    server.misbehave(1.0, ["half the labels"])
    [call] = called(server, 0).choices[0].message.tool_calls
    assert list(json.loads(call.function.arguments)) == ["no_legs"]


def test_a_list_of_fields_in_words_is_understood(server: WidelyReadServer) -> None:
    fields = f"Here is a description of each field: {dict.fromkeys(['milk', 'eggs'], 'true or false')}\nAnswer in JSON."
    with OpenAI(base_url=server.base_url, api_key="none") as client:
        reply = client.chat.completions.create(
            model=MODEL,
            messages=[
                {"role": "system", "content": fields},
                {"role": "user", "content": str(ZOO.examples[3].text)},
            ],
            response_format={"type": "json_object"},
        )
    assert json.loads(reply.choices[0].message.content or "") == {
        "milk": truth_of(3, "milk"),
        "eggs": truth_of(3, "eggs"),
    }


def test_properties_are_asked_in_words_over_the_other_api(server: WidelyReadServer) -> None:
    with OpenAI(base_url=server.base_url, api_key="none") as client:
        for row in (0, 2):
            asked = f'PROPERTY: "mentions milk"\nTEXT: "{ZOO.examples[row].text}"\nOutput:'
            reply = client.responses.create(model=MODEL, input=asked)
            assert reply.output_text == ("Yes" if truth_of(row, "milk") else "No")
            assert reply.usage is not None
            assert reply.usage.input_tokens > 40
    assert truth_of(0, "milk") != truth_of(2, "milk")
    assert [len(one.cells) for one in server.served] == [1, 1]


def test_what_tells_two_sets_apart_is_said_in_words(server: WidelyReadServer) -> None:
    fish = [row for row in range(len(ZOO.examples)) if truth_of(row, "fish")][:8]
    birds = [row for row in range(len(ZOO.examples)) if truth_of(row, "bird")][:8]
    texts = ["\n".join(str(ZOO.examples[row].text) for row in rows) for rows in (fish, birds)]
    with OpenAI(base_url=server.base_url, api_key="none") as client:
        asked = f"POSITIVE SAMPLES:\n{texts[0]}\nNEGATIVE SAMPLES:\n{texts[1]}\nWhat is the feature?"
        said = client.responses.create(model=MODEL, input=asked).output_text
    column = server.widely_read.column_of(said, said)
    assert column is not None
    name = server.widely_read.names[column]
    assert all(truth_of(row, name) for row in fish)
    assert not any(truth_of(row, name) for row in birds)


@pytest.mark.parametrize("name", list(STYLES))
def test_every_way_finds_features_within_its_budget(server: WidelyReadServer, name: str) -> None:
    purse = Purse(server.base_url, 0.02)
    found = STYLES[name](purse, ZOO.examples, np.random.default_rng(0))
    assert found.labels.shape == (len(found.names), len(ZOO.examples))
    assert counted(found.labels, ZOO)[0] >= 2
    assert server.summary()["usd"] <= 0.02


def test_a_budget_ends_the_asking(server: WidelyReadServer) -> None:
    purse = Purse(server.base_url, 0.001)
    replies = list(purse.ask_all(prompts.TAG, [str(one.text) for one in ZOO.examples], prompts.TAGS))
    assert replies[0] is not None
    assert replies[-1] is None
    assert server.summary()["usd"] <= 0.0015


def test_our_own_tool_labels_all_with_fewer_requests_than_texts(tmp_path: Path) -> None:
    case = Case("texts", write_texts(tmp_path, 12, 5, 0), 5)
    done = Bench(tmp_path, 0, first=0.0, per_token=0.0).run(PLAIN, case, "run", bad=0.1)
    assert (done.right, done.wrong, done.lost) == (60, 0, 0)
    assert 0 < done.requests < 12


@pytest.mark.slow
def test_our_own_tool_pays_for_no_answer_twice_after_a_kill(tmp_path: Path) -> None:
    case = Case("texts", write_texts(tmp_path, 100, 10, 0), 10)
    killed = Bench(tmp_path, 0, concurrency=2, first=0.2, per_token=0.002).killed(PLAIN, case, "killed")
    assert killed.again == 0
    assert killed.before >= 500
    assert killed.outcome.right == case.labels
