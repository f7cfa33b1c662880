"""The keys of stored answers: made of the oracle's identity and the question, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from twothirds.models.oracle import Feature, Label, OracleIdentity, Question, digest_of
from twothirds.sources import Example

KEY_LENGTH, PREFIX_LENGTH = 32, 8  # hexadecimal digits in all, and those that digest the example


class QuestionKeys:
    """The keys of one oracle's questions."""

    def __init__(self, identity: OracleIdentity) -> None:
        self._oracle = digest_of(identity.to_json())

    def of(self, question: Question) -> str:
        if type(question) is Label and not question.feature.models_see:
            example = question.example.digest
            asked = _asked_of_label(self._oracle, question.feature, question.voter)
            return _key({"example": example}, sha256(asked + _bytes(example)).hexdigest())
        return self.of_content(question.content)

    def of_content(self, content: Mapping[str, Any]) -> str:
        return _key(content, _digest(self._oracle, content))

    def of_labels(self, features: Sequence[Feature], examples: Sequence[Example], voter: int) -> Iterator[list[str]]:
        """For each example the keys of its labels."""
        if any(feature.models_see for feature in features):
            yield from ([self.of(Label(feature, example, voter)) for feature in features] for example in examples)
            return
        asked = [_asked_of_label(self._oracle, feature, voter) for feature in features]
        for example in examples:
            content, digest = {"example": example.digest}, _bytes(example.digest)
            yield [_key(content, sha256(label + digest).hexdigest()) for label in asked]


def stored_key(identity: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """The same key, from the identity and the question as the store holds them."""
    return _key(content, _digest(digest_of(identity), content))


def _key(content: Mapping[str, Any], digest: str) -> str:
    """The keys of questions about one example, or the first one that is compared, come one after the other."""
    examples = content.get("example", content.get("examples"))
    first = str(examples[0] if isinstance(examples, list) and examples else examples)
    return _prefix_of(first) + digest[: KEY_LENGTH - PREFIX_LENGTH]


@lru_cache(maxsize=1_024)
def _prefix_of(example: str) -> str:
    return sha256(_bytes(example)).hexdigest()[:PREFIX_LENGTH]


def _digest(oracle: str, content: Mapping[str, Any]) -> str:
    return sha256(_asked(oracle, content) + _bytes(content.get("example", ""))).hexdigest()


def _asked(oracle: str, content: Mapping[str, Any]) -> bytes:
    """The digest of an oracle's and of all of a question but its example, which many labels differ in."""
    return sha256(_bytes(oracle + digest_of({**content, "example": ""}))).digest()


@lru_cache(maxsize=4_096)
def _asked_of_label(oracle: str, feature: Feature, voter: int) -> bytes:
    """Without exemplars: features that models are shown with exemplars are equal to those without."""
    return _asked(oracle, Label(feature, Example("", ""), voter).content)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
