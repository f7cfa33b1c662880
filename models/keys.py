"""The keys of stored answers: made of the oracle's identity and the question, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from models.oracle import Feature, Label, OracleIdentity, Question, canonical_json, digest_of_content
from sources import Example

_BEGINS = b'{"example":"'  # a label's content in canonical JSON, up to the digest of its example


def question_key(identity: OracleIdentity, question: Question) -> str:
    return QuestionKeys(identity).of(question)


class QuestionKeys:
    """The keys of one oracle's questions; its identity is encoded only once."""

    def __init__(self, identity: OracleIdentity) -> None:
        from store.ledger import KEY_LENGTH, key_prefix, ledger_key  # here: help is read without a database

        self._who = canonical_json(identity.to_json())
        self._key, self._prefix, self._length = ledger_key, key_prefix, KEY_LENGTH
        self._label = hashlib.sha256(b"[%b,%b" % (self._who.encode("utf-8", "surrogatepass"), _BEGINS))
        self._last: tuple[str, tuple[str, Any] | None] = ("", None)

    def of(self, question: Question) -> str:
        if type(question) is Label and not question.feature.models_see:
            ending, begun = _remembered_ending(question.feature, question.voter), self._begun(question.example.digest)
            if ending is not None and begun is not None:
                return self._completed(*begun, ending)
        content = question.content
        return self._key(content, digest_of_content(self._who, content))

    def _begun(self, digest: str) -> tuple[str, Any] | None:
        """The prefix of the keys of an example, and the hash of what its labels have in common; None where JSON does
        not hold the digest as it is. The labels of one example come one after the other."""
        last = self._last  # once: other threads replace it
        if last[0] != digest:
            common = None
            if digest.isascii() and digest.isalnum():
                begun = self._label.copy()
                begun.update(digest.encode())
                common = self._prefix({"example": digest}), begun
            self._last = last = digest, common
        return last[1]

    def _completed(self, prefix: str, begun: Any, ending: bytes) -> str:
        whole = begun.copy()
        whole.update(ending)
        digits: str = whole.hexdigest()
        return prefix + digits[: self._length - len(prefix)]

    def of_labels(self, features: Sequence[Feature], examples: Sequence[Example], voter: int) -> Iterator[list[str]]:
        """For each example the keys of its labels. As `of`, but what they have in common is digested only once."""
        endings = [_ending(feature, voter) for feature in features]
        exemplars = {one.example.digest for feature in features if feature.models_see for one in feature.exemplars}
        for example in examples:
            begun = self._begun(example.digest)
            if None in endings or example.digest in exemplars or begun is None:
                yield [self.of(Label(feature, example, voter)) for feature in features]
            else:
                yield [self._completed(*begun, ending) for ending in endings if ending is not None]


def _ending(feature: Feature, voter: int) -> bytes | None:
    """As below. Features that models are shown with exemplars are equal to those without, and not remembered."""
    return _ending_of(feature, voter) if feature.models_see else _remembered_ending(feature, voter)


@lru_cache(maxsize=4_096)
def _remembered_ending(feature: Feature, voter: int) -> bytes | None:
    return _ending_of(feature, voter)


def _ending_of(feature: Feature, voter: int) -> bytes | None:
    """What follows the digest of the example; None where `of` is needed, as for lone surrogates."""
    try:
        text = orjson.dumps(Label(feature, Example("", ""), voter).content, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return None
    return text.removeprefix(_BEGINS) + b"]" if text.startswith(_BEGINS) else None


def kept_key(identity: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """The same key, from the identity and the question as the store holds them."""
    from store.ledger import ledger_key

    return ledger_key(content, digest_of_content(canonical_json(identity), content))
