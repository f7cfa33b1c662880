"""Any value in any place of what a server sends: each question is answered, or one line says what is wrong."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.models.openai.conftest import config_of
from tests.support.asking import ask
from tests.support.fake_openai import Abilities, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, labels, texts
from tests.support.fake_openai.wire import Request, Response
from twothirds.discovery.questions import Kind
from twothirds.models.openai import OpenAIOracle
from twothirds.models.oracle import Answer, Compare, OracleError, Question

EXAMPLES = texts(4)
QUESTIONS: list[Question] = [*labels(["cat"], EXAMPLES), Compare(Kind.PAIR, (EXAMPLES[1], EXAMPLES[2]))]
DEEP: Any = []
for _ in range(400):
    DEEP = [DEEP]
VALUES = {
    "400 digits": 10**400,
    "minus 400 digits": -(10**400),
    "infinite": float("inf"),
    "NaN": float("nan"),
    "minus one": -1,
    "true": True,
    "null": None,
    "empty": "",
    "surrogate": "\ud800/../x?y#z",
    "list": [1],
    "object": {"a": 1},
    "deep": DEEP,
}
Place = tuple[Any, ...]


def places(data: Any, before: Place = ()) -> Iterator[Place]:
    yield before
    if isinstance(data, dict | list):
        for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(inner, (*before, key))


def changed(data: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    data = copy.deepcopy(data)
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return data


class SpoilingServer(FakeOpenAI):
    """Puts a value into one place of every reply to one method and path. A file is taken for its first line."""

    place: tuple[str, Place] | None = None
    value: Any = None

    def _answer(self, request: Request) -> Response:
        response = super()._answer(request)
        name = f"{request.method} {'/'.join(part for part in request.path.split('/')[2:] if not part[-1:].isdigit())}"
        first, newline, rest = response.body.partition(b"\n")
        try:
            data = json.loads(first)
        except ValueError:
            return response
        self.seen.setdefault(name, set()).update(places(data))
        if self.place and self.place[0] == name and self.place[1] in set(places(data)):
            response.body = json.dumps(changed(data, self.place[1], self.value)).encode() + newline + rest
        return response

    @property
    def seen(self) -> dict[str, set[Place]]:
        places: dict[str, set[Place]] = self.__dict__.setdefault("_seen_places", {})
        return places


def oracle_of(server: SpoilingServer, way: str) -> OpenAIOracle:
    quick = {"retry_delay": 0.0, "attempts": 2, "asks": 2, "batch_poll": 0.001, "batch_wait": 0.01}
    return OpenAIOracle(config_of(server, provider_batch=way == "batch", **quick))


def ask_all(server: SpoilingServer, oracle: OpenAIOracle) -> None:
    server.batches.made.clear()
    for _ in range(2 if oracle.config.provider_batch else 1):  # and once more, to find the batch again
        line, answers = "", list[Answer]()
        try:
            answers = list(ask(oracle, QUESTIONS))
        except OracleError as error:
            line = str(error)
        assert "\n" not in line
        assert len(line) < 500
        assert line or len(answers) == len(QUESTIONS)
        assert all(0 <= answer.cost < 10**6 for answer in answers)


@pytest.mark.parametrize(
    ("way", "step"),
    [
        ("chat", 13),
        ("decisions", 29),
        ("batch", 71),
        pytest.param("chat", 1, marks=pytest.mark.slow),
        pytest.param("decisions", 1, marks=pytest.mark.slow),
        pytest.param("batch", 5, marks=pytest.mark.slow),
    ],
)
def test_any_value_in_any_place_is_an_answer_or_one_line(way: str, step: int) -> None:
    server = SpoilingServer(FakeModel(WORDS), Abilities(decisions=way == "decisions"))
    with server, oracle_of(server, way) as oracle:
        ask_all(server, oracle)
        cases = [(name, place) for name in server.seen for place in sorted(server.seen[name], key=str)]
        tried = list(itertools.product(cases, VALUES))[::step]
        for number, (case, name) in enumerate(tried):
            server.place, server.value = case, VALUES[name]
            try:
                ask_all(server, oracle)
                if number % 10 == 0:
                    with oracle_of(server, way) as another:  # which finds out about the server, too
                        ask_all(server, another)
            except Exception as error:
                raise AssertionError(f"{name} at {case}: {error!r}") from error
    assert len(tried) > 20
