"""The keys of stored answers: made of the oracle's identity and the question, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.oracle import OracleIdentity, Question, canonical_json, digest_of_content


def question_key(identity: OracleIdentity, question: Question) -> str:
    return QuestionKeys(identity).of(question)


class QuestionKeys:
    """The keys of one oracle's questions; its identity is encoded only once."""

    def __init__(self, identity: OracleIdentity) -> None:
        from store.ledger import ledger_key  # here: settings and help are read without a database

        self._who = canonical_json(identity.to_json())
        self._key = ledger_key

    def of(self, question: Question) -> str:
        content = question.content
        return self._key(content, digest_of_content(self._who, content))


def kept_key(identity: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """The same key, from the identity and the question as the store holds them."""
    from store.ledger import ledger_key

    return ledger_key(content, digest_of_content(canonical_json(identity), content))
