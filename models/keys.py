"""The keys of stored answers: made of the oracle's identity and the question, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
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

    def of(self, question: Question) -> str:
        content = question.content
        return self._key(content, digest_of_content(self._who, content))

    def of_labels(self, features: Sequence[Feature], examples: Sequence[Example], voter: int) -> Iterator[list[str]]:
        """For each example the keys of its labels. As `of`, but what they have in common is digested only once."""
        endings = [_ending(feature, voter) for feature in features]
        exemplars = {one.example.digest for feature in features if feature.models_see for one in feature.exemplars}
        for example in examples:
            digest = example.digest
            if None in endings or digest in exemplars or not (digest.isascii() and digest.isalnum()):  # JSON may differ
                yield [self.of(Label(feature, example, voter)) for feature in features]
                continue
            prefix, begun = self._prefix({"example": digest}), self._label.copy()
            begun.update(digest.encode())
            left = self._length - len(prefix)
            yield [prefix + _digest(begun, ending)[:left] for ending in endings if ending is not None]


def _ending(feature: Feature, voter: int) -> bytes | None:
    """What follows the digest of the example; None where `of` is needed, as for lone surrogates."""
    try:
        text = orjson.dumps(Label(feature, Example("", ""), voter).content, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return None
    return text.removeprefix(_BEGINS) + b"]" if text.startswith(_BEGINS) else None


def _digest(begun: Any, ending: bytes) -> str:
    whole = begun.copy()
    whole.update(ending)
    digest: str = whole.hexdigest()
    return digest


def kept_key(identity: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """The same key, from the identity and the question as the store holds them."""
    from store.ledger import ledger_key

    return ledger_key(content, digest_of_content(canonical_json(identity), content))
