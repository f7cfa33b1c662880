"""The tables, and the number that says which tables a database has.

A claim and its charge are one row (key, fence n) for the n-th time a question is asked; its states are described in
ledger/claims.py."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    TextClause,
    TypeDecorator,
    insert,
    inspect,
    select,
    text,
)

from store.errors import DamagedStore, StoreError

SCHEMA = 14  # counts up with every change of the tables

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


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True)


def _amount(name: str) -> Column[int]:
    """A number that is never below zero."""
    return Column(name, BigInteger, CheckConstraint(f"{name} >= 0"), nullable=False)


def _one_of(name: str, *values: str) -> Column[str]:
    listed = ", ".join(f"'{value}'" for value in values)
    return Column(name, Text, CheckConstraint(f"{name} IN ({listed})"), nullable=False)


def _partial_index(name: str, *columns: str | TextClause, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


_IS_LIVE = "state IN ('claimed', 'sent')"

version = Table("twothirds_schema", metadata, Column("version", BigInteger, primary_key=True))

scopes = Table(
    "scopes",
    metadata,
    _id(),
    Column("scope", EscapedText, nullable=False, unique=True),
    _amount("spent"),  # micro-dollars, as all money here
    _amount("reserved"),
    Column("taken_over_by", BigInteger),  # of an account for probes: the scope of the run that pays for them
    Column("kept", BigInteger, nullable=False, server_default="0"),  # answers that its runs have paid for or used
    Column("overcharge", Double, nullable=False, server_default="1"),  # times its bound a request may cost
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
    Column("job", EscapedText, nullable=False),  # see ledger/periods.py
    Column("per", Text),
    Column("process", EscapedText, nullable=False),  # of the latest attempt, see new_owner
    Index("runs_by_job", "job", "started_at"),
)

identities = Table(
    "identities",
    metadata,
    _id(),
    Column("digest", Text, nullable=False, unique=True),
    Column("oracle", EscapedText, nullable=False),
    Column("identity", Json, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    # Keys are random. In key order every claim would write a page of its own; in insertion order those of a batch are
    # neighbours, and only the index is written all over.
    Column("key", Text, primary_key=True),
    Column("fence", BigInteger, primary_key=True),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False, index=True),
    Column("oracle", EscapedText, nullable=False),
    Column("kind", EscapedText, nullable=False),
    _one_of("state", CLAIMED, SENT, PAID, UNKNOWN, RELEASED),
    Column("owner", EscapedText, nullable=False),
    Column("token", Text, nullable=False),  # of the claim call, so that its repetition is recognised
    Column("lease_seconds", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    _amount("reserved"),  # the upper bound; of an unknown row what stays spent
    _amount("cost"),
    Column("requests", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("claimed_at", Double, nullable=False),
    Column("settled_at", Double),
    _amount("in_doubt"),  # by requests that never reported their cost
    Column("batch", Text),  # of the provider, from which its answer may still come
    _partial_index("one_live_claim_per_key", "key", where=_IS_LIVE, unique=True),
    _partial_index("live_claims_by_lease", "lease_until", where=_IS_LIVE),
    _partial_index("charges_asked_again", "run", where="fence > 1"),
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
    sqlite_with_rowid=False,
)

settlements = Table(
    "settlements",
    metadata,
    _id(),
    Column("key", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("in_doubt", BigInteger, nullable=False),  # before
    Column("cost", BigInteger, nullable=False),  # what it really was
    Column("reason", EscapedText, nullable=False),
    Column("settled_at", Double, nullable=False),
    Index("settlements_by_charge", "key", "fence"),
)

answers = Table(
    "answers",
    metadata,
    _id(),
    Column("key", Text, nullable=False, unique=True),
    Column("identity", BigInteger, ForeignKey("identities.id"), nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("question", Json, nullable=False),
    Column("answer", Json, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("answered_at", Double, nullable=False),
    Column("checksum", Text, nullable=False),  # of question, answer and cost
)

replaced_answers = Table(
    "replaced_answers",
    metadata,
    _id(),
    Column("key", Text, nullable=False, index=True),
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
    sqlite_with_rowid=False,
)

# Labels of one example that are claimed together, and then answered together, are one row; see packed/. No foreign key
# leads from packed_keys: PostgreSQL would look up the pack once more for each label. Nor does one lead from packed_uses
# to runs: all uses would be read when a run without any is removed.
packed_keys = Table(
    "packed_keys",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("pack", BigInteger, nullable=False),  # of packed_claims while it is asked, then of packs
    Column("place", SmallInteger, nullable=False),
    sqlite_with_rowid=False,
)

packed_claims = Table(
    "packed_claims",
    metadata,
    _id(),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False),
    Column("oracle", EscapedText, nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("owner", EscapedText, nullable=False),
    Column("token", Text, nullable=False),
    Column("lease_seconds", Double, nullable=False),
    Column("lease_until", Double, nullable=False, index=True),
    Column("claimed_at", Double, nullable=False),
    Column("keys", LargeBinary, nullable=False),  # by place, one after the other
    Column("reserved", Json, nullable=False),  # by place
    Column("in_doubt", Json, nullable=False),  # by place; null where it was not sent
)

packs = Table(
    "packs",
    metadata,
    _id(),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False, index=True),
    Column("identity", BigInteger, ForeignKey("identities.id"), nullable=False),
    Column("kind", EscapedText, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("gone", BigInteger, nullable=False),  # places, as bits, whose answers are kept in rows of their own by now
    _amount("cost"),  # of all that are not
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
    sqlite_with_rowid=False,
)

# What the labels of a feature ask, without the example.
question_forms = Table(
    "question_forms",
    metadata,
    _id(),
    Column("digest", Text, nullable=False, unique=True),
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
    _amount("filled"),  # slots that are leased or have a vote
    _amount("given"),  # votes that count
    Column("skipped", BigInteger, nullable=False),
    Column("patience", BigInteger, nullable=False),  # so many skips, and it is given up
    Column("priority", BigInteger, nullable=False),
    Column("deadline", Double),
    Column("price", BigInteger, nullable=False),  # per vote
    Column("hourly", BigInteger, nullable=False),
    Column("expected", Text),  # of a check: the answer that is known
    Column("published", BigInteger, nullable=False),  # 1: only in tasks that were published elsewhere
    _one_of("state", "open", "done", "given up", "check"),
    Column("created_at", Double, nullable=False),
    _partial_index("open_review_items", text("priority DESC"), "id", where="state = 'open'"),
)

review_votes = Table(
    "review_votes",
    metadata,
    _id(),
    Column("item", BigInteger, ForeignKey("review_items.id"), nullable=False),
    Column("person", BigInteger, ForeignKey("review_people.id"), nullable=False),
    _one_of("purpose", "vote", "check", "repeat", "ruling"),
    Column("slot", BigInteger),  # which of the wanted votes it is
    _one_of("state", "leased", "expired", "held", "given", "late", "skipped", "withdrawn"),
    Column("answer", Json),
    Column("shown_at", Double, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("answered_at", Double),
    Column("seconds", Double, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("submission", Text),  # what was sent together is undone together
    Column("answer_key", Text),  # under which a run has taken it into the ledger
    Index("one_person_per_question", "item", "person", "purpose", unique=True),
    _partial_index(
        "one_vote_per_slot",
        "item",
        "slot",
        where="purpose = 'vote' AND state IN ('leased', 'held', 'given')",
        unique=True,
    ),
    Index("review_votes_by_person", "person", "state"),
    _partial_index("review_leases", "lease_until", where="state = 'leased'"),
)

review_waits = Table(
    "review_waits",
    metadata,
    Column("run_id", EscapedText, primary_key=True),
    Column("item", BigInteger, ForeignKey("review_items.id"), primary_key=True),
    Column("suspended", BigInteger, nullable=False),  # 1: to be resumed once all its questions are answered
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


_CREATION_LOCK = 7_203_167  # any constant that all processes share


def create_tables(connection: Connection, name: str) -> None:
    """Create the tables in an empty database, in the caller's transaction; refuse one that is not ours."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _CREATION_LOCK})
    if not has_tables(connection, name):
        metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(version), {"version": SCHEMA})


def has_tables(connection: Connection, name: str) -> bool:
    """Whether the database is a store, or else empty. Raises StoreError for one of another program or schema."""
    tables = set(inspect(connection).get_table_names())
    if version.name in tables:
        found = connection.execute(select(version.c.version)).scalars().all()
        if found != [SCHEMA]:
            schema = found[0] if found else "unknown"
            remedy = "use the program that made it, or give another --store"
            raise StoreError(f"store {name} has schema {schema}, this program has {SCHEMA}: {remedy}")
        return True
    foreign = tables if connection.dialect.name == "sqlite" else tables & metadata.tables.keys()
    if foreign:
        raise StoreError(
            f"store {name} is the database of another program (table {min(foreign)}): "
            "give a database of its own with --store"
        )
    return False
