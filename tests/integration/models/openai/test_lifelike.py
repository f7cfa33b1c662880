"""The lifelike test server is what it says: figures measured with it mean something."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import httpx2
import numpy as np
import pytest

from models.prices import Price
from sources import Dataset, load_dataset
from tests.support.fake_openai import CHAT, Failings, LifelikeServer
from tests.support.fake_openai.hardness import hardness
from tests.support.fake_openai.lifelike import LifelikeModel
from tests.support.fake_openai.mind import Shown
from tests.support.fake_openai.tokens import TokenCounter, picture_tokens


@pytest.fixture(scope="module")
def zoo() -> Dataset:
    return load_dataset("datasets/zoo")


@pytest.fixture(scope="module")
def mind(zoo: Dataset) -> LifelikeModel:
    return LifelikeModel(zoo, Failings(), seed=1)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.06])
def test_most_errors_lie_where_an_example_looks_like_the_other_side(noise: float) -> None:
    rng = np.random.default_rng(0)
    view = rng.standard_normal((1_500, 12))
    cuts = [np.quantile(view[:, column], share) for column, share in enumerate((0.5, 0.8, 0.9))]
    truth = view[:, :3] > cuts
    made = hardness(view, truth, noise, seed=0)
    assert made.chance.mean() == pytest.approx(noise, abs=1e-4)
    if noise == 0:
        return
    assert made.chance[made.chance > 0.5].sum() > 0.6 * made.chance.sum()  # by coin there would be none
    assert made.chance.min() == pytest.approx(noise / 10, rel=0.1)  # some come by chance
    for column, cut in enumerate(cuts):
        wrong, far = made.chance[:, column] > 0.5, np.abs(view[:, column] - cut)
        assert far[wrong].mean() < 0.5 * far[~wrong].mean()
        shares = [wrong[truth[:, column] == side].mean() for side in (True, False)]
        assert noise < 0.05 or max(shares) < 4 * min(shares)  # of those that have it as of those that lack it
    again = hardness(view, truth, noise, seed=1)
    assert np.array_equal(made.chance, again.chance)


@pytest.mark.parametrize("spec", ["datasets/zoo", "datasets/faces"])
def test_whatever_words_it_uses_it_knows_what_they_mean(spec: str) -> None:
    dataset = load_dataset(spec)
    mind, dice = LifelikeModel(dataset, Failings(other_words=1.0)), random.Random(0)
    for column, name in enumerate(mind.names):
        forms = {mind.reworded(name, dice) for _ in range(30)}
        assert len(forms) > 1
        assert {mind.column_of(form) for form in forms} == {column}
    assert mind.column_of("overall impression") is None


def test_pictures_are_recognised_after_scaling(zoo: Dataset) -> None:
    from models.prompting import ImageUrls

    faces = load_dataset("datasets/faces")
    mind, urls = LifelikeModel(faces, Failings()), ImageUrls(96, 1)
    for row in range(0, len(faces.examples), 20):
        assert mind.row_of(Shown("Example", pictures=list(urls.urls(faces.examples[row])))) == row
    assert LifelikeModel(zoo, Failings()).row_of(Shown("Example", zoo.examples[7].text)) == 7


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        ("gpt-4o", (1024, 1024), "high", 765),  # the examples of OpenAI's own page
        ("gpt-4o", (2048, 4096), "high", 1105),
        ("gpt-4o", (4096, 8192), "low", 85),
        ("gpt-4o-mini", (512, 512), "auto", 8500),
        ("gpt-4o-mini", (96, 96), "low", 2833),
        ("gpt-4.1-mini", (1024, 1024), "auto", 1659),
    ],
)
def test_pictures_cost_what_openai_says(model: str, size: tuple[int, int], detail: str, tokens: int) -> None:
    assert picture_tokens(model, *size, detail) == tokens


def test_long_prompts_that_begin_alike_are_cached() -> None:
    counter = TokenCounter()
    long = "".join(f"line {number} of the instructions\n" for number in range(300))

    def cached(system: str, user: str) -> int:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        usage = counter.usage({"model": "gpt-4o-mini", "messages": messages}, "yes")
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    assert cached(long, "first") == 0
    assert cached(long, "second") >= 1024
    assert cached(long, "second") % 128 == 0
    assert cached("another" + long, "second") == 0
    assert cached("short", "a") == cached("short", "a") == 0


def test_it_keeps_a_book_and_fails_now_and_then(zoo: Dataset) -> None:
    with (
        httpx2.Client() as client,
        LifelikeServer(zoo, Failings(slow=0.0), price=Price(Decimal("0.15"), Decimal("0.60"))) as it,
    ):
        replies = [_ask(client, it.base_url, zoo, number) for number in range(200)]
        book = client.get(it.base_url.removesuffix("/v1") + "/book").json()
    failed = [status for status, _ in replies if status != 200]
    prose = [text for status, text in replies if status == 200 and not text.startswith("{")]
    assert 0 < len(failed) < 15
    assert set(failed) <= {429, 500}
    assert 0 < len(prose) < 18
    assert book["charged_requests"] == 200 - len(failed) == len(it.book)
    assert book["failed_requests"] == len(failed)
    assert book["usd"] == pytest.approx(
        (book["prompt_tokens"] * 0.15 + book["completion_tokens"] * 0.6) / 1e6, rel=0.01
    )


def _ask(client: httpx2.Client, base_url: str, zoo: Dataset, number: int) -> tuple[int, str]:
    feature = json.dumps({"name": "milk", "definition": "It gives milk."})
    example = json.dumps(zoo.examples[number % len(zoo.examples)].text)
    user = f"Example: {example}\nItem 1: does it have the feature {feature}\n"
    messages = [{"role": "system", "content": "Decide."}, {"role": "user", "content": user}]
    body = {"model": "gpt-4o-mini", "messages": messages, "seed": number}
    reply = client.post(base_url.removesuffix("/v1") + CHAT, json=body)
    return reply.status_code, reply.json()["choices"][0]["message"]["content"] if reply.status_code == 200 else ""
