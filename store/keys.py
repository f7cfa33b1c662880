"""The names under which answers are kept: who was asked and what, and nothing else.

A key is a digest, but it begins with its example: questions about one example are neighbours in the indexes, so that a
batch of labels writes a page for each example and not one for each label, however large the store has become."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

LENGTH, PLACE = 64, 16  # hexadecimal digits in all, and those that tell the example
PAGE = 1_000
_BARE = re.compile(r"([0-9a-f]{64})((?:/withdrawn/\d+)?)")


def placed(content: Mapping[str, Any], digest: str) -> str:
    """The key of a question with this content, of whose oracle and content this is the SHA-256 in hexadecimal."""
    return place_of(content) + digest[: LENGTH - PLACE]


def place_of(content: Mapping[str, Any]) -> str:
    """Where the questions about an example lie: the one to be labelled, or the first of those compared."""
    shown = content.get("example", content.get("examples"))
    first = shown[0] if isinstance(shown, list) and shown else shown
    return hashlib.sha256(str(first).encode("utf-8", "surrogatepass")).hexdigest()[:PLACE]


_KEPT = text("SELECT id, key, question FROM answers WHERE id > :after ORDER BY id LIMIT :most")
_TAKEN = text("SELECT id, answer_key FROM review_votes WHERE answer_key IS NOT NULL")
_RENAME_ANSWER = text("UPDATE answers SET key = :new WHERE id = :number")
_RENAME_CHARGES = text("UPDATE charges SET key = :new WHERE key = :old")
_RENAME_VOTE = text("UPDATE review_votes SET answer_key = :new WHERE id = :number")


def place_all(connection: Connection) -> None:
    """Rename what is kept under a bare digest, as all was before schema 6.

    A charge without an answer keeps its name, for nobody knows what was asked."""
    taken = defaultdict(list)
    for vote, key in connection.execute(_TAKEN).tuples():
        taken[key].append(vote)
    after = 0
    while rows := connection.execute(_KEPT, {"after": after, "most": PAGE}).tuples().all():
        after = rows[-1][0]
        names = {number: (key, _placed_name(key, question)) for number, key, question in rows}
        renamed = [{"number": number, "old": old, "new": new} for number, (old, new) in names.items() if new != old]
        votes = [{"number": vote, "new": one["new"]} for one in renamed for vote in taken[one["old"]]]
        for statement, values in ((_RENAME_ANSWER, renamed), (_RENAME_CHARGES, renamed), (_RENAME_VOTE, votes)):
            if values:
                connection.execute(statement, values)


def _placed_name(key: str, question: str) -> str:
    """The name as it is now. One that is no digest, or whose question cannot be read, stays: a check tells of it."""
    bare = _BARE.fullmatch(key)
    try:
        content = json.loads(question)
    except ValueError:
        return key
    return placed(content, bare[1]) + bare[2] if bare and isinstance(content, dict) else key
