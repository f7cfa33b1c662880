"""The tables, and the number that says which tables a database has.

The unit of the ledger is the request: one row, whose states are described in requests.py."""

from __future__ import annotations

import json
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Index, MetaData, Table, Text

from twothirds.store.errors import DamagedStore

SCHEMA = 17  # counts up with every change of the tables

LOOK = "look with `twothirds store check`, then restore a backup"
RESERVED, SENT, CLOSED = "reserved", "sent", "closed"
PROBE = "probe"  # the kind of requests that find out what a server can do
COMPUTED = "computed"  # the kind of labels that cost nothing and are not stored one by one: they are only counted

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


class Json(sa.TypeDecorator[Any]):
    """JSON as ASCII text: NULs and lone surrogates, which databases refuse, are escaped."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: sa.Dialect) -> str | None:
        return None if value is None else json_text(value)

    def process_result_value(self, value: str | None, _dialect: sa.Dialect) -> Any:
        return None if value is None else json_value(value)


class EscapedText(sa.TypeDecorator[str]):
    """Text from outside, such as file names: what databases refuse (NULs, lone surrogates) is escaped."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: sa.Dialect) -> str | None:
        return value if value is None else storable(value)


class Bytes(sa.LargeBinary):
    """Bytes as both drivers take them, without a copy of each value."""

    def bind_processor(self, dialect: sa.Dialect) -> None:  # noqa: ARG002
        return None


def storable(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(), primary_key=True)


def _amount(name: str) -> Column[int]:
    """A number that is never below zero."""
    return Column(name, BigInteger, sa.CheckConstraint(f"{name} >= 0"), nullable=False)


def _one_of(name: str, *values: str) -> Column[str]:
    listed = ", ".join(f"'{value}'" for value in values)
    return Column(name, Text, sa.CheckConstraint(f"{name} IN ({listed})"), nullable=False)


def _partial_index(name: str, *columns: str | sa.TextClause, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


version = Table("twothirds_schema", metadata, Column("version", BigInteger, primary_key=True))

scopes = Table(
    "scopes",
    metadata,
    _id(),
    Column("scope", EscapedText, nullable=False, unique=True),
    Column("sampling_number", Text, nullable=False),  # random and secret: whoever writes the data must not know it
)

runs = Table(
    "runs",
    metadata,
    _id(),
    Column("run_id", EscapedText, nullable=False, unique=True),
    Column("scope", BigInteger, ForeignKey("scopes.id"), nullable=False, index=True),
    Column("name", EscapedText, nullable=False),
    Column("flow", EscapedText, nullable=False),
    Column("dataset", EscapedText, nullable=False),
    Column("oracle", EscapedText, nullable=False),
    Column("settings", Json, nullable=False),
    Column("status", EscapedText, nullable=False),
    Column("summary", Json),
    Column("started_at", Double, nullable=False),  # seconds since 1970 in UTC, as all times here
    Column("ended_at", Double),
    Column("job", EscapedText, nullable=False),  # see periods.py
    Column("per", Text),
    Column("process", EscapedText, nullable=False),  # of the latest attempt, see owners.py
    # What counts against the budget, in micro-dollars as all money here: the sum of its requests. The one running sum.
    _amount("booked"),
    Index("runs_by_job", "job", "started_at"),
)

oracles = Table(
    "oracles",
    metadata,
    _id(),
    Column("digest", Text, nullable=False, unique=True),
    Column("name", EscapedText, nullable=False),
    Column("identity", Json, nullable=False),
    Column("overcharge", Double, nullable=False, server_default="1"),  # times its bound a request may cost
)

requests = Table(
    "requests",
    metadata,
    _id(),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False, index=True),
    Column("oracle", BigInteger, ForeignKey("oracles.id"), nullable=False),
    Column("kind", EscapedText, nullable=False),
    _one_of("state", RESERVED, SENT, CLOSED),
    Column("owner", EscapedText, nullable=False),  # while it is open; empty where whoever wants it may adopt it
    Column("token", Text, nullable=False),  # of the claim call, so that its repetition is recognised
    Column("lease_seconds", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("batch", Text),  # of the provider, which outlives the process
    _amount("booked"),  # what counts against the budget
    _amount("in_doubt"),  # of it: what attempts may have cost that never reported it
    _amount("cost"),  # of it: what was charged
    Column("attempts", BigInteger, nullable=False),  # that were answered
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("questions", sa.SmallInteger, nullable=False),
    Column("answered", sa.SmallInteger, nullable=False),
    Column("dropped", sa.SmallInteger, nullable=False),  # answers that no key leads to: late, withdrawn or asked again
    Column("asked_at", Double, nullable=False),
    Column("answered_at", Double),
    Column("keys", Bytes),  # while it is open, by position, so that its questions can be given back
    Column("content", Bytes),  # questions and answers by position, see content.py
    Column("checksum", Bytes),
    _partial_index("open_requests", "lease_until", where="state <> 'closed'"),
    sqlite_autoincrement=True,  # an id is never used again
)

# Which answer, or which open request, a question has. The primary key keeps two processes from asking one question.
# No foreign key: PostgreSQL would look up the request once more for each question.
questions = Table(
    "questions",
    metadata,
    Column("key", Bytes, primary_key=True),
    Column("request", BigInteger, nullable=False),
    Column("position", sa.SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

# What a run was answered without a request: from the store, or computed.
uncharged = Table(
    "uncharged",
    metadata,
    Column("run", BigInteger, ForeignKey("runs.id"), primary_key=True),
    Column("oracle", EscapedText, primary_key=True),
    Column("kind", EscapedText, primary_key=True),
    Column("stored", BigInteger, nullable=False),
    Column("worth", BigInteger, nullable=False),  # what the stored answers had cost
    Column("computed", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

settlements = Table(
    "settlements",
    metadata,
    _id(),
    Column("request", BigInteger, ForeignKey("requests.id"), nullable=False, index=True),
    Column("in_doubt", BigInteger, nullable=False),  # before
    Column("cost", BigInteger, nullable=False),  # what it really was
    Column("reason", EscapedText, nullable=False),
    Column("token", Text, nullable=False, index=True),  # of the call, so that its repetition is recognised
    Column("settled_at", Double, nullable=False),
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
    _id(),
    Column("name", EscapedText, nullable=False, unique=True),
    Column("is_worker", Boolean, nullable=False),  # of Mechanical Turk, who comes without an invitation
    Column("created_at", Double, nullable=False),
)

review_invitations = Table(
    "review_invitations",
    metadata,
    _id(),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False),
    _one_of("role", "reviewer", "editor", "admin"),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("invited_by", EscapedText, nullable=False),  # empty where that was not said
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
    _id(),
    Column("digest", Text, nullable=False, unique=True),  # of queue, question and whether it is a check
    Column("queue", EscapedText, nullable=False),
    Column("kind", Text, nullable=False),
    Column("question", Json, nullable=False),
    Column("page", Text, nullable=False, index=True),  # questions with the same value may share a page
    Column("votes", BigInteger, nullable=False),  # wanted, of different people
    Column("patience", BigInteger, nullable=False),  # so many skips, and it is given up
    Column("priority", BigInteger, nullable=False),
    Column("deadline", Double),
    Column("price", BigInteger, nullable=False),  # per vote
    Column("hourly", BigInteger, nullable=False),
    Column("expected", Text),  # of a check: the answer that is known
    Column("published", Boolean, nullable=False),  # only in tasks that were published elsewhere
    _one_of("state", "open", "done", "given up", "check"),  # follows from its votes, see questions.py
    Column("created_at", Double, nullable=False),
    _partial_index("open_review_items", sa.text("priority DESC"), "id", where="state = 'open'"),
)

review_votes = Table(
    "review_votes",
    metadata,
    _id(),
    Column("item", BigInteger, ForeignKey("review_items.id"), nullable=False),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False),
    _one_of("purpose", "vote", "check", "repeat"),
    Column("slot", BigInteger),  # which of the wanted votes it is, while it is leased or given
    _one_of("state", "leased", "expired", "held", "given", "late", "skipped", "withdrawn"),
    Column("answer", Json),
    Column("shown_at", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("answered_at", Double),
    Column("seconds", Double, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("submission", Text),  # what was sent together is undone together
    Index("one_person_per_question", "item", "person", "purpose", unique=True),
    Index("one_vote_per_slot", "item", "slot", unique=True),
    Index("review_votes_by_person", "person", "state"),
    _partial_index("review_leases", "lease_until", where="state = 'leased'"),
)

# What was decided for good about a label: it outranks the votes.
review_rulings = Table(
    "review_rulings",
    metadata,
    _id(),
    Column("item", BigInteger, ForeignKey("review_items.id"), nullable=False),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False),
    Column("answer", Json, nullable=False),
    Column("ruled_at", Double, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    _partial_index("one_ruling_per_item", "item", where="NOT withdrawn", unique=True),
)

# Which answers of the ledger are those of people: whose vote or ruling a run has used.
review_used = Table(
    "review_used",
    metadata,
    Column("answer_key", Text, primary_key=True),
    Column("item", BigInteger, ForeignKey("review_items.id"), nullable=False, index=True),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False, index=True),
    sqlite_with_rowid=False,
)

review_waits = Table(
    "review_waits",
    metadata,
    Column("run_id", EscapedText, primary_key=True),
    Column("item", BigInteger, ForeignKey("review_items.id"), primary_key=True),
    Column("suspended", Boolean, nullable=False),  # to be resumed once all its questions are answered
    sqlite_with_rowid=False,
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
    _one_of("state", "planned", "posted", "collected"),
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
