"""A step of the migrations: what was kept under a bare digest, as all was before schema 6, gets the key of today."""

from __future__ import annotations

import json
import re
from collections import defaultdict

from sqlalchemy import Connection, text

from store.keys import placed

PAGE = 1_000
_BARE = re.compile(r"([0-9a-f]{64})((?:/withdrawn/\d+)?)")
_KEPT = text("SELECT id, key, question FROM answers WHERE id > :after ORDER BY id LIMIT :most")
_TAKEN = text("SELECT id, answer_key FROM review_votes WHERE answer_key IS NOT NULL")
_RENAME_ANSWER = text("UPDATE answers SET key = :new WHERE id = :number")
_RENAME_CHARGES = text("UPDATE charges SET key = :new WHERE key = :old")
_RENAME_VOTE = text("UPDATE review_votes SET answer_key = :new WHERE id = :number")


def place_all(connection: Connection) -> None:
    """A charge without an answer keeps its name, for nobody knows what was asked."""
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
