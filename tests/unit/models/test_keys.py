"""The names under which answers are kept: different questions never share one, and the same question always has the
same, in another process and under another hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from twothirds.discovery.questions import Kind
from twothirds.models.keys import KEY_LENGTH, PREFIX_LENGTH, QuestionKeys, stored_key
from twothirds.models.oracle import (
    Answer,
    Choose,
    Compare,
    Exemplar,
    Family,
    Feature,
    Label,
    NamedFeature,
    OracleIdentity,
    Question,
    Same,
    Verdict,
    Why,
)
from twothirds.sources.dataset import Example, digest_of_content

TRICKY = [
    "",
    " ",
    ",",
    '"',
    "\\",
    '","',
    "[]",
    "{}",
    "null",
    "0",
    "1",
    "true",
    "é",
    "e\u0301",
    "\ud800",
    "\0",
    "\n",
    "\u2028",
]
WORDS = st.sampled_from(TRICKY) | st.text(max_size=4)
EXAMPLES = st.builds(lambda digest: Example("any", digest, text=""), WORDS)
ONES_OWN = (Kind.LABEL, Kind.SAME, Kind.WHY, Kind.FAMILY, Kind.VALUE)
KINDS = st.sampled_from([kind for kind in Kind if kind not in ONES_OWN])
FEATURES = st.builds(Feature, WORDS, WORDS)
SEVERAL = st.lists(FEATURES, max_size=2).map(tuple)
VOTERS = st.integers(0, 2)
GROUPS = st.lists(EXAMPLES, max_size=3).map(tuple)
QUESTIONS: st.SearchStrategy[Question] = st.one_of(
    st.builds(Compare, KINDS, GROUPS, GROUPS, st.lists(WORDS, max_size=3).map(tuple), VOTERS),
    st.builds(Label, FEATURES, EXAMPLES, VOTERS),
    st.builds(Why, FEATURES, EXAMPLES, VOTERS),
    st.builds(Same.of, FEATURES, FEATURES, VOTERS),
    st.builds(Family, SEVERAL, GROUPS, st.booleans(), VOTERS),
    st.builds(Choose, FEATURES, SEVERAL, EXAMPLES, VOTERS),
)
VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([0.0, 1.0, 0.5]) | WORDS
IDENTITIES = st.builds(
    OracleIdentity,
    WORDS,
    WORDS,
    st.lists(st.tuples(WORDS, VALUES), max_size=2, unique_by=lambda pair: pair[0]).map(tuple),
    WORDS,
)


def question_key(identity: OracleIdentity, question: Question) -> str:
    return QuestionKeys(identity).of(question)


def structure(identity: OracleIdentity, question: Question) -> Any:
    """All that may tell two questions apart, with the types of values, for 1, 1.0 and True are equal in Python."""
    who = (
        identity.kind,
        identity.model,
        frozenset((name, type(value), value) for name, value in identity.parameters),
        identity.prompts,
    )
    if isinstance(question, Choose):
        return who, "value", question.attribute, question.values, question.example.digest, question.voter
    if isinstance(question, Family):
        shown = tuple(one.digest for one in question.examples)
        return who, "family", question.features, shown, question.scale, question.voter
    if not isinstance(question, Compare):
        return who, question.kind, question.feature, question.example.digest, question.voter
    return (
        who,
        question.kind,
        tuple(one.digest for one in question.examples),
        tuple(one.digest for one in question.without),
        question.known,
        question.voter,
    )


@given(IDENTITIES, QUESTIONS)
def test_the_store_can_tell_the_key_from_what_it_holds(who: OracleIdentity, question: Question) -> None:
    assert question_key(who, question) == stored_key(who.to_json(), question.content)


@settings(max_examples=150)
@given(IDENTITIES, QUESTIONS, IDENTITIES, QUESTIONS)
def test_two_questions_share_a_key_only_if_they_are_the_same(
    one: OracleIdentity, first: Question, other: OracleIdentity, second: Question
) -> None:
    for who, what in ((one, second), (other, second)):
        same = structure(one, first) == structure(who, what)
        assert (question_key(one, first) == question_key(who, what)) == same


@given(IDENTITIES, WORDS, WORDS, WORDS, WORDS)
@example(OracleIdentity("a", "b"), "é", "", "e\u0301", "")
def test_a_word_never_moves_from_one_field_to_another(
    who: OracleIdentity, name: str, definition: str, other_name: str, other_definition: str
) -> None:
    shown = Example("x", "digest", text="")
    keys = {
        question_key(who, Label(Feature(*pair), shown)): pair
        for pair in ((name, definition), (definition, name), (other_name, other_definition), (name + definition, ""))
    }
    pairs = {(name, definition), (definition, name), (other_name, other_definition), (name + definition, "")}
    assert len(keys) == len(pairs)


def test_forms_of_unicode_are_different_texts_and_different_questions() -> None:
    forms = {unicodedata.normalize(form, "é ﬁ ½ Å") for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert len({digest_of_content(form, None) for form in forms}) == len(forms) == 4


@given(st.lists(st.text(max_size=6), min_size=2, max_size=5, unique=True))
def test_different_texts_have_different_digests(texts: list[str]) -> None:
    assert len({digest_of_content(text, None) for text in texts}) == len(texts)


@given(
    IDENTITIES,
    st.lists(st.builds(Feature, WORDS, WORDS), max_size=3),
    st.lists(EXAMPLES | st.builds(Example, WORDS, st.text("0123456789abcdef", min_size=64, max_size=64)), max_size=3),
    st.integers(0, 2),
)
def test_keys_made_together_are_those_made_one_by_one(
    who: OracleIdentity, features: list[Feature], examples: list[Example], voter: int
) -> None:
    together = QuestionKeys(who).of_labels(features, examples, voter)
    one_by_one = [[question_key(who, Label(feature, one, voter)) for feature in features] for one in examples]
    assert list(together) == one_by_one


PRINTED = """
from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label, OracleIdentity
from twothirds.models.keys import QuestionKeys
from twothirds.sources.dataset import Example
keys = QuestionKeys(OracleIdentity("openai", "m", (("b", 1), ("a", 0.5), ("é", None), ("z", True)), "1"))
a, b, c = (Example(n, n * 64, text="") for n in "abc")
print(keys.of(Compare(Kind.TWO_OF_THREE, (a, b, c), (), ("red \\u202e hat", "\\ud800"), 2)))
print(keys.of(Label(Feature("hat", 'It wears a "hat".'), a, 1)))
"""


@settings(deadline=None)
@given(st.lists(st.builds(Feature, WORDS, WORDS), min_size=1, max_size=4), st.lists(EXAMPLES, min_size=1, max_size=4))
def test_a_label_has_the_key_of_its_content_whatever_was_asked_before(
    features: list[Feature], examples: list[Example]
) -> None:
    who, shown = OracleIdentity("kind", "model"), Exemplar(Example("shown", "d" * 64), True)
    keys = QuestionKeys(who)
    with_exemplars = [replace(feature, exemplars=(shown,), models_see=1) for feature in features]
    for example_ in (*examples, shown.example):
        for feature in (*features, *with_exemplars, *features):
            asked = Label(feature, example_, 1)
            assert keys.of(asked) == stored_key(who.to_json(), asked.content)


def test_keys_are_the_same_in_every_process() -> None:
    def printed(seed: str) -> list[str]:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
        command = [sys.executable, "-c", PRINTED]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert printed("0") == printed("4242")


@given(IDENTITIES, EXAMPLES, st.lists(st.builds(Feature, WORDS, WORDS), min_size=2, max_size=5))
def test_questions_about_one_example_are_neighbours_in_an_index(
    who: OracleIdentity, shown: Example, features: list[Feature]
) -> None:
    keys = [question_key(who, Label(feature, shown, voter)) for feature in features for voter in (0, 1)]
    assert len({key[:PREFIX_LENGTH] for key in keys}) == 1
    assert {len(key) for key in keys} == {KEY_LENGTH}


def test_answers_with_several_features_are_kept() -> None:
    asked = Compare(Kind.TWO_OF_THREE, tuple(Example(name, name * 64, text="") for name in "abc"), most=3)
    more = (NamedFeature(Feature("hat", "It wears a hat."), (0, 2)), NamedFeature(Feature("old"), (1, 2)))
    answer = Answer(asked, Verdict.FEATURE, "me", Feature("red", "It is red."), (0, 1), cost=10, more=more)
    again = Answer.from_json(asked, json.loads(json.dumps(answer.to_json())), cached=True)
    assert again == answer
    assert [one.feature.name for one in again.features] == ["red", "hat", "old"]
    assert [answer.cost_of(one.feature) for one in answer.features] == [4, 3, 3]
