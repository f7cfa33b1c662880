"""Probabilities of labels from the tokens of a reply."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twothirds.models.prompting import label_chances


def token(word: str, chance: float = 1.0, **others: float) -> dict[str, Any]:
    listed = [{"token": one, "logprob": math.log(mass)} for one, mass in ({word: chance} | others).items()]
    return {"token": word, "logprob": math.log(chance), "top_logprobs": listed}


def test_each_label_has_the_chance_of_its_own_token() -> None:
    tokens = [
        token('{"1":'),
        token("true", 0.9, false=0.1),
        token(', "2": '),
        token("false", 0.75, true=0.25),
        token("}"),
    ]
    text = "".join(one["token"] for one in tokens)
    assert label_chances(text, [["1"], ["2"], ["3"]], tokens) == pytest.approx({0: 0.9, 1: 0.25})


def test_letters_and_numbers_are_told_apart_and_tokens_may_hold_more_than_the_word() -> None:
    tokens = [
        token('{"A":{"1"'),
        token(":true", 0.8, **{":false": 0.2}),
        token('},"B":{"1":"'),
        token("no", 0.6, yes=0.4),
    ]
    tokens.append(token('"}}'))
    text = "".join(one["token"] for one in tokens)
    assert label_chances(text, [["A", "1"], ["B", "1"]], tokens) == pytest.approx({0: 0.8, 1: 0.4})


def test_the_beginning_of_a_word_counts_and_other_words_do_not() -> None:
    tokens = [token('{"1":'), token("t", 0.5, f=0.25, maybe=0.25), token("rue}")]
    assert label_chances('{"1":true}', [["1"]], tokens) == pytest.approx({0: 2 / 3})


@pytest.mark.parametrize("tokens", [None, [], "x", [{"token": 3}], [1], [token('{"1":false}')], [token("other")]])
def test_tokens_of_another_text_or_shape_tell_nothing(tokens: object) -> None:
    assert label_chances('{"1":true}', [["1"]], tokens) == {}


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["token", "logprob", "top_logprobs"]), inner)
    ),
    max_leaves=8,
)


@given(st.text(max_size=30), json_values)
def test_nothing_that_a_server_sends_breaks_it(text: str, tokens: object) -> None:
    listed = [tokens, {"token": text, "logprob": tokens, "top_logprobs": tokens}]
    for said in (tokens, listed, listed[1:]):
        for chance in label_chances(text, [["1"], ["A", "1"]], said).values():
            assert 0 < chance < 1


def test_a_key_that_comes_twice_says_nothing() -> None:
    text = json.dumps({"1": True})[:-1] + ', "1": false}'
    assert label_chances(text, [["1"]], [token(text)]) == {}


def test_one_label_is_the_first_word_unless_that_is_hardly_yes_or_no() -> None:
    assert label_chances("Yes", [()], [token("Yes", 0.6, no=0.2)]) == pytest.approx({0: 0.75})
    assert label_chances("Well", [()], [token("Well", 0.8, yes=0.1)]) == {}


def test_keys_are_read_as_json() -> None:
    tokens = [token('{"a \\"b\\" \\u00e9":'), token("true", 0.9, false=0.1), token("}")]
    text = "".join(word["token"] for word in tokens)
    assert label_chances(text, [['a "b" é']], tokens) == pytest.approx({0: 0.9})
