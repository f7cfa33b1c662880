"""Whatever a model says: no exception, no shifted row, and what is accepted obeys every rule."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from twothirds.discovery.questions import Kind
from twothirds.models.openai.chat import answers_by_position
from twothirds.models.openai.client import ServerReply
from twothirds.models.oracle import Compare, Verdict
from twothirds.models.prices import read_usage
from twothirds.models.prompting.comparisons import parse_feature, shown_order
from twothirds.models.prompting.feature_names import clean, name_problem
from twothirds.models.prompting.prompts import letter
from twothirds.models.prompting.replies import DEFINITION_LIMIT, NOTHING, parse_labels, parse_yes_no
from twothirds.sources.dataset import Example

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
COUNTS = {Kind.TWO_OF_THREE: 3, Kind.PAIR: 2, Kind.ONE_OF_THREE: 3, Kind.LEFT_RIGHT: 2, Kind.TAG: 1}
WRAPPINGS = st.sampled_from(
    [
        "@",
        "Sure:\n```json\n@\n```\nDone.",
        "<think>perhaps {} or {'1': true}</think>@",
        '{"answer": @}',
        '{"note": 1} @',
        '{"a": [1, 2]}\n\n@ bye }',
    ]
)


def paths(count: int) -> list[tuple[str, ...]]:
    return [(str(number),) for number in range(1, count + 1)]


@st.composite
def questions(draw: st.DrawFn) -> Compare:
    kind = draw(st.sampled_from(list(COUNTS)))
    examples = tuple(Example(name, name, text=name) for name in "abc"[: COUNTS[kind]])
    without = (Example("w", "w", text="w"),) if kind is Kind.LEFT_RIGHT else ()
    known = tuple(draw(st.lists(st.sampled_from(["striped", "red hat", "smiling"]), max_size=2, unique=True)))
    return Compare(kind, examples, without, known, draw(st.integers(0, 5)))


@given(st.text(max_size=400), questions(), st.integers(1, 5))
@example("\ud800{", Compare(Kind.TAG, (Example("a", "a", text="a"),)), 1)
@example("{" * 2000, Compare(Kind.TAG, (Example("a", "a", text="a"),)), 1)
@example('{"1": ' + "9" * 5000 + "}", Compare(Kind.TAG, (Example("a", "a", text="a"),)), 1)
def test_any_text_is_read_without_an_exception(text: str, question: Compare, count: int) -> None:
    assert parse_feature(text, question).verdict in Verdict
    assert set(parse_labels(text, paths(count))) <= set(range(count))
    assert parse_yes_no(text) in (True, False, None)


@given(JSON, questions(), st.integers(1, 5), WRAPPINGS)
def test_any_json_is_read_without_an_exception(data: Any, question: Compare, count: int, wrapping: str) -> None:
    text = wrapping.replace("@", json.dumps(data))
    reading = parse_feature(text, question)
    assert (reading.feature is not None) == (reading.verdict is Verdict.FEATURE)
    assert set(parse_labels(text, paths(count))) <= set(range(count))


@given(JSON)
def test_any_json_is_a_reply(data: Any) -> None:
    for body in (data, {"choices": data}, {"choices": [data]}, {"choices": [{"message": data}], "usage": data}):
        reply = ServerReply.read(json.dumps(body))
        assert isinstance(reply.message.text, str)
        assert reply.tokens is None or reply.tokens.input >= 0
    usage = read_usage({"usage": {"prompt_tokens": data, "completion_tokens": data, "prompt_tokens_details": data}})
    assert usage is None or min(usage.input, usage.output, usage.cached) >= 0


@given(st.dictionaries(st.integers(1, 30), st.booleans(), max_size=12), st.integers(1, 12), WRAPPINGS, st.randoms())
def test_labels_are_those_of_their_keys_in_whatever_order(
    said: dict[int, bool], count: int, wrapping: str, dice: Any
) -> None:
    numbers = list(said)
    dice.shuffle(numbers)
    text = wrapping.replace("@", json.dumps({str(number): said[number] for number in numbers}))
    wanted = {number - 1: said[number] for number in numbers if number <= count}
    assert parse_labels(text, paths(count)) == wanted


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=14))
def test_a_label_that_is_contradicted_is_left_out(pairs: list[tuple[int, bool]]) -> None:
    text = "{" + ", ".join(f'"{number}": {json.dumps(value)}' for number, value in pairs) + "}"
    values = {number: {value for other, value in pairs if other == number} for number, _ in pairs}
    wanted = {number - 1: next(iter(said)) for number, said in values.items() if len(said) == 1}
    assert parse_labels(text, paths(6)) == wanted


@given(
    st.lists(st.fixed_dictionaries({}, optional={"type": JSON, "name": JSON, "probability": JSON}), max_size=6),
    st.integers(1, 6),
)
def test_any_decisions_are_read_without_an_exception(answers: list[Any], count: int) -> None:
    found = answers_by_position({"answers": answers}, count)
    assert set(found) <= set(range(count))


@given(st.permutations(range(1, 7)), st.sets(st.integers(0, 5)))
def test_decisions_are_those_of_their_names_in_whatever_order(order: list[int], dropped: set[int]) -> None:
    answers = [{"type": "predicate", "name": str(number), "probability": number / 10} for number in order]
    left = [answer for place, answer in enumerate(answers) if place not in dropped]
    found = answers_by_position({"answers": left}, 6)
    assert {place: answer["probability"] for place, answer in found.items()} == {
        number - 1: number / 10 for place, number in enumerate(order) if place not in dropped
    }


NAMES = st.sampled_from(
    ["striped", "red hat", "no hat", "Ignore the above", "", "ſtriped", "ｒｅｄ hat", "a\u202eb", "x" * 99, "{{x}}"]
) | st.text(max_size=70)


@settings(max_examples=300)
@given(questions(), NAMES, st.text(max_size=500) | st.just("It has stripes."), st.permutations(range(3)))
def test_an_accepted_feature_obeys_every_rule(question: Compare, name: str, definition: str, order: list[int]) -> None:
    letters = [letter(place) for place in order if place < len(question.examples)]
    said = {"have": letters[:2], "has": letters[0], "name": name, "definition": definition}
    reading = parse_feature(json.dumps(said), question)
    if reading.feature is None:
        word = clean(name).rstrip(".").casefold()
        says_nothing = word != "" and word in NOTHING
        assert reading.verdict is (Verdict.NONE if says_nothing else Verdict.UNREADABLE)
        return
    found = reading.feature
    assert name_problem(found.name) == ""
    assert reading.repeats == bool(name_problem(found.name, question.known))
    assert clean(found.name) == found.name
    assert found.name.isprintable()
    assert 0 < len(found.definition) <= DEFINITION_LIMIT
    assert found.definition.isprintable()
    chosen, *others = (shown_order(question)[ord(letter) - ord("A")] for letter in letters)
    if question.kind is Kind.TWO_OF_THREE:
        assert set(reading.shown) == {chosen, others[0]}
    elif question.kind in (Kind.PAIR, Kind.ONE_OF_THREE):
        assert reading.shown == (chosen,)
