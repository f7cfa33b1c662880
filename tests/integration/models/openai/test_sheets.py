"""Small pictures of a question travel on one numbered sheet, which a server reads from its pixels."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.integration.models.openai.conftest import PRICE, Build, config_of
from tests.support.asking import ask, learn, replies
from tests.support.fake_openai import CHAT, Failings, LifelikeServer
from tests.support.fake_openai.lifelike import _signature
from tests.support.fake_openai.sheets import pictures_of
from tests.support.fake_openai.tokens import picture_tokens
from twothirds.discovery.questions import Kind
from twothirds.models.openai import OpenAIConfig, OpenAIOracle
from twothirds.models.openai.abilities import Abilities
from twothirds.models.openai.tokens import Pricing
from twothirds.models.oracle import Compare, Feature, Label, OracleError, Verdict
from twothirds.models.prompting.pictures import data_url
from twothirds.models.prompting.prompts import SheetPart
from twothirds.models.prompting.sheets import SMALLEST, drawn, size_of, tokens_of
from twothirds.sources import Dataset, load_dataset
from twothirds.sources.dataset import Example, picture_at

ABILITIES = Abilities(format="json_schema")
FAULTLESS = Failings(label_noise=0, vague=0, repeats_known=0, other_words=0, prose=0, too_many=0, broken=0, slow=0)


@pytest.fixture(scope="module")
def faces() -> Dataset:
    return load_dataset("datasets/faces")


@pytest.fixture
def server(faces: Dataset) -> Iterator[LifelikeServer]:
    with LifelikeServer(faces, FAULTLESS, price=PRICE) as running:
        yield running


def pictures_sent(server: LifelikeServer) -> list[int]:
    """In each request since the probes."""
    counts = [len(pictures_of_body(request.json())) for request in server.requests if request.path == CHAT]
    return [count for count in counts if count]


def triples(faces: Dataset, count: int) -> list[Compare]:
    rng = np.random.default_rng(0)
    chosen = [rng.choice(len(faces.examples), 3, replace=False) for _ in range(count)]
    return [Compare(Kind.TWO_OF_THREE, tuple(faces.examples[place] for place in places)) for places in chosen]


def image_of(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


@pytest.mark.parametrize("count", [2, 5, 9])
@pytest.mark.parametrize("side", [24, 90, 256])
def test_the_pictures_of_a_sheet_can_be_read_by_their_numbers(faces: Dataset, count: int, side: int) -> None:
    rng = np.random.default_rng([count, side])
    pictures = [Image.open(example.image or "").convert("RGB") for example in faces.examples[:count]]
    for picture in pictures:
        picture.thumbnail((side, int(rng.integers(side // 2, side + 1))))
    pictures[0] = Image.new("RGB", (side, side), "black")
    pictures[-1] = Image.new("RGB", (side // 2, side), "white")
    for columns in {1, 2, 3, count}:
        sheet = SheetPart((), max(side, SMALLEST), columns)
        page = drawn(sheet, pictures)
        assert page.size == size_of(count, sheet.side, columns)
        read = pictures_of(data_url(page))
        assert sorted(read) == [*range(1, count + 1)]
        signatures = np.stack([_signature(picture) for picture in pictures])
        for number in read:
            distances = np.abs(signatures - _signature(image_of(read[number]))).mean(axis=1)
            assert distances.argmin() == number - 1


def test_a_question_with_its_pictures_on_a_sheet_costs_a_third_and_is_answered_as_well(
    server: LifelikeServer, oracle_of: Build, faces: Dataset
) -> None:
    asked, costs = triples(faces, 4), {}
    for sheet in ("off", "auto"):
        oracle, before = oracle_of(sheet=sheet), len(server.requests)
        told = list(replies(oracle, asked))
        answers = [reply.answers[0] for reply in told]
        costs[sheet] = sum(reply.cost for reply in told)
        assert all(reply.cost <= reply.request.bound for reply in told)
        requests = server.requests[before:]
        assert {len(pictures_of_body(request.json())) for request in requests} <= {0, 3 if sheet == "off" else 1}
        for answer in answers:
            assert answer.verdict is Verdict.FEATURE
            column = server.lifelike.column_of(answer.feature.name if answer.feature else "")
            rows = [faces.examples.index(example) for example in answer.question.examples]  # type: ignore[union-attr]
            having = {place for place, row in enumerate(rows) if server.lifelike.truth[row, column]}
            assert set(answer.shown) == having
    assert costs["auto"] < 0.4 * costs["off"]


def test_charges_stay_within_what_is_reserved_while_the_server_fails(faces: Dataset) -> None:
    habits = Failings(prose=0.3, too_many=0.1, broken=0.3, slow=0)
    asked = triples(faces, 12)
    with LifelikeServer(faces, habits, price=PRICE, seed=2) as server, OpenAIOracle(config_of(server)) as oracle:
        learn(oracle)
        before = server.spent(PRICE)
        told = list(replies(oracle, asked))
        assert all(reply.cost + reply.in_doubt <= reply.request.limit for reply in told)
        assert server.failed > 0
        assert server.spent(PRICE) - before <= sum(reply.cost + reply.in_doubt for reply in told)


def pictures_of_body(body: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in body.get("messages", ()) if not isinstance(message["content"], str)]
    return [part["image_url"]["url"] for content in contents for part in content if "image_url" in part]


def test_what_is_reserved_for_a_sheet_covers_it_for_every_size_and_count() -> None:
    """The rule of the bound is not the server's own code."""
    for model in ("gpt-4o-mini", "gpt-4o", "o1"):
        for detail in ("auto", "low"):
            for count in range(2, 10):
                for side in (32, 160, 231, 256):
                    for columns in range(1, count + 1):
                        sheet = SheetPart((tiny(),) * count, side, columns)
                        size = size_of(count, side, columns)
                        if max(size) <= 2048 and min(size) <= 768:
                            assert tokens_of([sheet], model, detail) == picture_tokens(model, *size, detail)


def tiny() -> Example:
    return Example("a", "0" * 64, image="a.png")


@pytest.mark.parametrize(
    ("changes", "side", "expected"),
    [
        ({}, 160, 1),
        ({"sheet": "off"}, 160, 3),
        ({}, 300, 3),  # a sheet would take detail from them
        ({"image_size": 200}, 300, 1),
        ({"model": "gpt-4.1-mini"}, 160, 3),  # counts patches
        ({"model": "somebody's"}, 160, 3),
        ({"detail": "low"}, 160, 1),
        ({"detail": "low"}, 256, 3),  # would be scaled down
    ],
)
def test_a_sheet_is_drawn_where_it_is_cheaper_and_takes_nothing_away(
    tmp_path: Path, changes: dict[str, Any], side: int, expected: int
) -> None:
    shown = [picture(tmp_path, number, side) for number in range(3)]
    config = replace(OpenAIConfig("gpt-4o-mini", price=PRICE), **changes)
    form = Pricing.of(config, ABILITIES).form([Compare(Kind.TWO_OF_THREE, tuple(shown))])
    parts = [part for message in form.messages for part in message.parts if not isinstance(part, str)]
    assert len(parts) == expected


def picture(folder: Path, number: int, side: int) -> Example:
    path = folder / f"{number}.png"
    Image.effect_noise((side, side // 2), 50 + number).convert("RGB").save(path)
    return picture_at(path)


def test_labels_never_travel_on_sheets(server: LifelikeServer, oracle_of: Build, faces: Dataset) -> None:
    hat = Feature("hat", "A hat is worn.")
    list(ask(oracle_of(grouping="feature"), [Label(hat, example) for example in faces.examples[:6]]))
    assert pictures_sent(server) == [6]


def test_groups_travel_on_a_sheet_each(server: LifelikeServer, oracle_of: Build, faces: Dataset) -> None:
    examples = faces.examples
    list(ask(oracle_of(), [Compare(Kind.GROUPS, examples[:8], without=examples[8:16])]))
    assert set(pictures_sent(server)) == {2}


def test_an_unknown_choice_is_an_error_that_lists_the_choices(server: LifelikeServer) -> None:
    with pytest.raises(OracleError, match="sheet of openai:gpt-4o-mini is 'maybe': choose from auto, off"):
        OpenAIConfig("gpt-4o-mini", server.base_url, sheet="maybe")  # type: ignore[arg-type]
