"""The tables as queries see them. migrations.py creates them; a test holds that both agree.

A claim and its charge are one row (key, fence n) for the n-th time a question is asked; its states are described in
ledger/claims/claims.py."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    Double,
    ForeignKey,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
)

from store.errors import DamagedStore

LOOK = "look with `python -m flows store check`, then restore a backup"
CLAIMED, SENT, PAID, UNKNOWN, RELEASED = "claimed", "sent", "paid", "unknown", "released"
LIVE = (CLAIMED, SENT)  # at most one such row per key
PROBE = "probe"  # the kind of requests that find out what a server can do
COMPUTED = "computed"  # the kind of labels that cost nothing and are not kept one by one: only their number is booked

metadata = MetaData()


_in_ascii = json.JSONEncoder(separators=(",", ":")).encode


def json_text(value: Any) -> str:
    """JSON in ASCII, as columns hold it."""
    try:
        text = orjson.dumps(value)
    except TypeError:  # such as lone surrogates and keys that are not strings
        return _in_ascii(value)
    return text.decode("ascii") if text.isascii() else _in_ascii(value)


def json_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise DamagedStore(f"the store holds {text[:40]!r} where JSON was written: {LOOK}") from None


class Json(TypeDecorator[Any]):
    """JSON as ASCII text: NULs and lone surrogates, which databases refuse, are escaped."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: Dialect) -> str:
        return json_text(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Any:
        return None if value is None else json_value(value)


class EscapedText(TypeDecorator[str]):
    """Text from outside, such as file names: what databases refuse (NULs, lone surrogates) is escaped."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        return value if value is None else storable(value)


def answer_checksum(question: str, answer: str, cost: int) -> str:
    """Of the texts as they are stored. It detects accidents and manual edits, not forgery."""
    return hashlib.sha256(f"{question}\n{answer}\n{cost}".encode()).hexdigest()


def storable(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


version = Table("twothirds_schema", metadata, Column("version", BigInteger, primary_key=True))

scopes = Table(
    "scopes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("scope", EscapedText, nullable=False),
    Column("spent", BigInteger, nullable=False),  # micro-dollars, as all money here
    Column("reserved", BigInteger, nullable=False),
    Column("taken_over_by", BigInteger),  # of an account for probes: the scope of the run that pays for them
    Column("kept", BigInteger, nullable=False, server_default="0"),  # answers that its runs have paid for or used
)

runs = Table(
    "runs",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("run_id", EscapedText, nullable=False),
    Column("scope", BigInteger, ForeignKey("scopes.id"), nullable=False),
    Column("name", EscapedText, nullable=False),
    Column("flow", EscapedText, nullable=False),
    Column("dataset", EscapedText, nullable=False),
    Column("oracle", EscapedText, nullable=False),
    Column("settings", Json, nullable=False),
    Column("status", EscapedText, nullable=False),
    Column("summary", Json),
    Column("started_at", Double, nullable=False),  # seconds since 1970 in UTC, as all times here
    Column("ended_at", Double),
)

identities = Table(
    "identities",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("oracle", EscapedText, nullable=False),
    Column("identity", Json, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    Column("key", Text, primary_key=True),
    Column("fence", BigInteger, primary_key=True),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False),
    Column("oracle", EscapedText, nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", EscapedText, nullable=False),
    Column("token", Text, nullable=False),  # of the claim call, so that its repetition is recognised
    Column("lease_seconds", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("reserved", BigInteger, nullable=False),  # the upper bound; of an unknown row what stays spent
    Column("cost", BigInteger, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("claimed_at", Double, nullable=False),
    Column("settled_at", Double),
    Column("in_doubt", BigInteger, nullable=False, server_default="0"),  # by requests that never reported their cost
    Column("batch", Text),  # of the provider, from which its answer may still come
)

# Running sums over charges and uses; see ledger/books.py.
cost_totals = Table(
    "cost_totals",
    metadata,
    Column("run", BigInteger, ForeignKey("runs.id"), primary_key=True),
    Column("oracle", EscapedText, primary_key=True),
    Column("kind", EscapedText, primary_key=True),
    Column("paid_calls", BigInteger, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("paid", BigInteger, nullable=False),
    Column("unknown_calls", BigInteger, nullable=False),
    Column("unknown", BigInteger, nullable=False),  # in doubt, of paid and unknown charges
    Column("cached_calls", BigInteger, nullable=False),  # uses of answers that other runs have paid for
    Column("cached_worth", BigInteger, nullable=False),  # what those answers had cost when they were used
)

settlements = Table(
    "settlements",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("in_doubt", BigInteger, nullable=False),  # before
    Column("cost", BigInteger, nullable=False),  # what it really was
    Column("reason", EscapedText, nullable=False),
    Column("settled_at", Double, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("identity", BigInteger, ForeignKey("identities.id"), nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("question", Json, nullable=False),
    Column("answer", Json, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("answered_at", Double, nullable=False),
    Column("checksum", Text),  # of question, answer and cost; none where an earlier schema kept the answer
)

replaced_answers = Table(
    "replaced_answers",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("answer", Json, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("answered_at", Double, nullable=False),
    Column("replaced_at", Double, nullable=False),
)

uses = Table(
    "uses",
    metadata,
    Column("run", BigInteger, ForeignKey("runs.id"), primary_key=True),
    Column("answer", BigInteger, ForeignKey("answers.id"), primary_key=True),
)

# Labels of one example that are claimed together, and then answered together, are one row; see packed/.
packed_keys = Table(
    "packed_keys",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("pack", BigInteger, nullable=False),  # of packed_claims while it is asked, then of packs
    Column("place", SmallInteger, nullable=False),
)

packed_claims = Table(
    "packed_claims",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False),
    Column("oracle", EscapedText, nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("owner", EscapedText, nullable=False),
    Column("token", Text, nullable=False),
    Column("lease_seconds", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("claimed_at", Double, nullable=False),
    Column("keys", LargeBinary, nullable=False),  # by place, one after the other
    Column("reserved", Json, nullable=False),  # by place
    Column("in_doubt", Json, nullable=False),  # by place; null where it was not sent
)

packs = Table(
    "packs",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False),
    Column("identity", BigInteger, ForeignKey("identities.id"), nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("gone", BigInteger, nullable=False),  # places, as bits, whose answers are kept in rows of their own by now
    Column("cost", BigInteger, nullable=False),  # of all that are not
    Column("answered_at", Double, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("checksum", LargeBinary, nullable=False),  # of the content
)

packed_uses = Table(
    "packed_uses",
    metadata,
    Column("pack", BigInteger, ForeignKey("packs.id"), primary_key=True),
    Column("run", BigInteger, primary_key=True),
    Column("places", BigInteger, nullable=False),  # as bits
)

# What the labels of a feature ask, without the example.
question_forms = Table(
    "question_forms",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("form", Json, nullable=False),
)

review_secrets = Table(
    "review_secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

review_people = Table(
    "review_people",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("name", EscapedText, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

review_invitations = Table(
    "review_invitations",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("revoked_at", Double),
)

review_examples = Table(
    "review_examples",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("shown", Json, nullable=False),  # id, and text or where the picture is
)

review_items = Table(
    "review_items",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("digest", Text, nullable=False),  # of queue, question and whether it is a check
    Column("queue", EscapedText, nullable=False),
    Column("kind", Text, nullable=False),
    Column("question", Json, nullable=False),
    Column("page", Text, nullable=False),  # questions with the same value may share a page
    Column("votes", BigInteger, nullable=False),  # wanted, of different people
    Column("filled", BigInteger, nullable=False),  # slots that are leased or have a vote
    Column("given", BigInteger, nullable=False),  # votes that count
    Column("skipped", BigInteger, nullable=False),
    Column("patience", BigInteger, nullable=False),  # so many skips, and it is given up
    Column("priority", BigInteger, nullable=False),
    Column("deadline", Double),
    Column("price", BigInteger, nullable=False),  # per vote
    Column("hourly", BigInteger, nullable=False),
    Column("expected", Text),  # of a check: the answer that is known
    Column("published", BigInteger, nullable=False),  # 1: only in tasks that were published elsewhere
    Column("state", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

review_votes = Table(
    "review_votes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("item", BigInteger, ForeignKey("review_items.id"), nullable=False),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("slot", BigInteger),  # which of the wanted votes it is
    Column("state", Text, nullable=False),
    Column("answer", Json),
    Column("shown_at", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("answered_at", Double),
    Column("seconds", Double, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("submission", Text),  # what was sent together is undone together
    Column("answer_key", Text),  # under which a run has taken it into the ledger
)

review_waits = Table(
    "review_waits",
    metadata,
    Column("run_id", EscapedText, primary_key=True),
    Column("item", BigInteger, ForeignKey("review_items.id"), primary_key=True),
    Column("suspended", BigInteger, nullable=False),  # 1: to be resumed once all its questions are answered
)

review_hits = Table(
    "review_hits",
    metadata,
    Column("token", Text, primary_key=True),  # UniqueRequestToken
    Column("queue", EscapedText, nullable=False),
    Column("items", Json, nullable=False),
    Column("terms", Json, nullable=False),  # all that was published, so that it can be sent again word for word
    Column("run_id", EscapedText, nullable=False),
    Column("hit_id", Text),
    Column("state", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)

rate_limits = Table(
    "rate_limits",
    metadata,
    Column("name", EscapedText, primary_key=True),  # of what is limited, for all processes that use the store
    Column("requests_at", Double, nullable=False),  # when the next request may go
    Column("tokens_at", Double, nullable=False),  # when the tokens of those before have been worked off
    Column("not_before", Double, nullable=False),  # the server asked for a pause
    Column("pace", Double, nullable=False),  # share of the allowed rate that is used, since the last complaint
    Column("paced_at", Double, nullable=False),
)
