"""Digests of questions: written by a fast encoder, and the same as those of the standard one, whatever is in them."""

from __future__ import annotations

import hashlib
import json

from hypothesis import example, given
from hypothesis import strategies as st

from twothirds.discovery.questions import Kind
from twothirds.models.oracle import Compare, Feature, Label, digest_of_content
from twothirds.sources.dataset import Example
from twothirds.store.schema import json_text

texts = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates too


@given(name=texts, definition=texts, digest=texts, known=st.lists(texts, max_size=3), voter=st.integers(0, 2**70))
@example(name="\x00\x1f\x7f\u2028\ud800", definition='"\\/\b\f\n\r\t', digest="é", known=["\U0001f600"], voter=0)
def test_a_question_is_digested_as_by_the_standard_encoder(
    name: str, definition: str, digest: str, known: list[str], voter: int
) -> None:
    shown = Example("id", digest)
    for question in (
        Label(Feature(name, definition), shown, voter),
        Compare(Kind.TWO_OF_THREE, (shown, shown), known=tuple(known), voter=voter),
    ):
        text = json.dumps([7, question.content], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        expected = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        assert digest_of_content("7", question.content) == expected


@given(
    st.dictionaries(
        texts,
        st.lists(st.none() | st.booleans() | texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False)),
    )
)
def test_what_the_store_writes_is_ascii_and_reads_back_the_same(value: dict[str, list[object]]) -> None:
    written = json_text(value)
    assert written.isascii()
    assert json.loads(written) == json.loads(json.dumps(value))
