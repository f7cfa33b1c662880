"""Money is exact: a charge is usage × price, a bound is never below it, and a price is never guessed."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.models.oracle import OracleError
from twothirds.models.prices import (
    Price,
    Tokens,
    UnknownPrice,
    bound,
    parse_price,
    read_prices,
    read_usage,
    settled,
    tariff_of,
)
from twothirds.models.prompting import most_picture_tokens, most_text_tokens

CHEAP = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"), Decimal("0.20"))
COUNTS = st.integers(0, 2_000_000)


def test_a_charge_is_usage_times_price_to_the_micro_dollar() -> None:
    tokens = Tokens(input=1000, output=100, cached=400, cache_write=200)
    assert settled(CHEAP, tokens) == 400 * 0.15 + 400 * 0.075 + 200 * 0.20 + 100 * 0.60
    assert settled(CHEAP, tokens, batch=True) == 95


def test_cached_tokens_cost_as_much_as_others_where_nothing_is_said_of_them() -> None:
    plain = Price(Decimal(1), Decimal(2))
    assert settled(plain, Tokens(1000, 0, cached=900)) == settled(plain, Tokens(1000, 0)) == 1000


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_no_charge_exceeds_the_bound(given_tokens: int, written: int, cached: int, stored: int) -> None:
    cached = min(cached, given_tokens)
    tokens = Tokens(given_tokens, written, cached, min(stored, given_tokens - cached))
    assert settled(CHEAP, tokens) <= bound(CHEAP, Tokens(given_tokens, written))


def test_listed_prices_are_found_by_address_and_by_name() -> None:
    assert settled(tariff_of("gpt-4o-mini", base_url=None, prices={}), Tokens(1_000_000, 1_000_000)) == 750_000
    local = tariff_of("gpt-4o-mini", base_url="http://127.0.0.1:1/v1", prices={})
    assert settled(local, Tokens(1_000_000, 0)) == 150_000
    assert settled(local, Tokens(1_000_000, 0, cached=1_000_000)) == 75_000


def test_decisions_have_their_own_price() -> None:
    decisions = tariff_of("gpt-6-luna", base_url=None, prices={}, endpoint="decisions")
    chat = tariff_of("gpt-6-luna", base_url=None, prices={})
    tokens = Tokens(100_000, 1_000)
    assert settled(decisions, tokens) < settled(chat, tokens)


def test_an_unknown_model_is_an_error_that_says_how_to_give_its_price() -> None:
    with pytest.raises(UnknownPrice, match=r"'my-own-model' is not known: give it .*\?price=0.15,0.60") as caught:
        tariff_of("my-own-model", base_url="http://127.0.0.1:1/v1", prices={})
    assert "\n" not in str(caught.value)


def test_the_user_s_price_wins_over_the_list() -> None:
    free = Price(Decimal(0), Decimal(0))
    assert tariff_of("gpt-4o-mini", base_url=None, prices={"gpt-4o-mini": free}) == free
    assert tariff_of("anything", base_url=None, prices={"*": free}) == free


def test_a_price_is_read_from_words_and_from_a_file(tmp_path: Path) -> None:
    assert parse_price("0.15, 0.60") == Price(Decimal("0.15"), Decimal("0.60"))
    assert parse_price("1,2,0.5") == Price(Decimal(1), Decimal(2), Decimal("0.5"))
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"m": {"input": 0.1, "output": 1, "cached": 0.05}}))
    assert read_prices(file) == {"m": Price(Decimal("0.1"), Decimal(1), Decimal("0.05"))}


@pytest.mark.parametrize("text", ["1", "", "1,2,3,4,5", "a,b", "-1,2", "nan,1", "inf,1"])
def test_a_price_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(OracleError, match="price") as caught:
        parse_price(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["{", "[]", '{"m": 3}', '{"m": {"input": 1}}', '{"m": {"in": 1, "output": 2}}'])
def test_a_price_file_that_is_wrong_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "prices.json"
    file.write_text(content)
    with pytest.raises(OracleError, match=r"prices\.json"):
        read_prices(file)
    with pytest.raises(OracleError, match=r"absent\.json.*check the path"):
        read_prices(tmp_path / "absent.json")


def test_usage_is_read_in_both_spellings() -> None:
    details = {"cached_tokens": 30, "cache_write_tokens": 5}
    chat = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": details}
    chat["completion_tokens_details"] = {"reasoning_tokens": 15}
    newer = {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": details}
    newer["output_tokens_details"] = {"reasoning_tokens": 15}
    assert read_usage({"usage": chat}) == read_usage({"usage": newer}) == Tokens(100, 20, 30, 5, 15)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {},
        {"prompt_tokens": 5},
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": "5", "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 10**15, "completion_tokens": 1},
        {"prompt_tokens": float("nan"), "completion_tokens": 1},
    ],
)
def test_missing_and_absurd_usage_is_none(usage: object) -> None:
    assert read_usage({"usage": usage}) is None


def test_details_that_contradict_the_total_are_cut_to_it() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 99}}
    assert read_usage({"usage": usage}) == Tokens(10, 2, 10)


@pytest.mark.parametrize(
    ("model", "side", "detail", "published"),
    [
        ("gpt-4o", 1024, "low", 85),
        ("gpt-4o", 768, "high", 765),
        ("gpt-4o-mini", 512, "high", 2833 + 5667),
        ("gpt-4.1-nano", 1024, "high", 2520),
        ("some-model", 512, "auto", 630),
    ],
)
def test_image_tokens_are_never_below_what_is_published(model: str, side: int, detail: str, published: int) -> None:
    assert most_picture_tokens(model, side, detail) >= published - 1


def test_text_tokens_are_an_upper_bound() -> None:
    assert most_text_tokens("") == 0
    assert most_text_tokens("plain words of a text") >= 5
    assert most_text_tokens("犬" * 10) == 30
    assert most_text_tokens("$%&/()=?!#" * 3) == 30


@pytest.mark.parametrize("price", ["1e12,0", "0,1000001", "1,1,1e999999999"])
def test_a_price_whose_sums_the_store_cannot_hold_is_refused(tmp_path: Path, price: str) -> None:
    with pytest.raises(OracleError, match="at most 1,000,000 USD per million tokens can be counted"):
        parse_price(price)
    (tmp_path / "prices.json").write_text(json.dumps({"m": {"input": 1e12, "output": 0}}))
    with pytest.raises(OracleError, match=r"price of 'm' in .*: at most 1,000,000 USD"):
        read_prices(tmp_path / "prices.json")


def test_the_highest_price_counts_the_largest_request_exactly() -> None:
    highest = parse_price("1000000,1000000")
    assert bound(highest, Tokens(10**6, 10**6)) == 2 * 10**12
