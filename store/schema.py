"""The tables as queries see them. migrations.py creates them; a test holds that both agree.

A claim and its charge are one row: a question that is asked for the n-th time is the row (key, fence n), which is first
claimed, then sent, and ends as paid, unknown (sent, and nobody knows whether it was charged) or released (never sent).
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import BigInteger, Column, Dialect, Double, ForeignKey, MetaData, Table, Text, TypeDecorator

CLAIMED, SENT, PAID, UNKNOWN, RELEASED = "claimed", "sent", "paid", "unknown", "released"
LIVE = (CLAIMED, SENT)  # at most one such row per key

metadata = MetaData()


class Json(TypeDecorator[Any]):
    """JSON as ASCII text: NULs and lone surrogates, which databases refuse, are escaped."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: Dialect) -> str:
        return json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


class Words(TypeDecorator[str]):
    """Text from outside, such as file names: what databases refuse is written as an escape."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        return value if value is None else storable(value)


def storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


version = Table("twothirds_schema", metadata, Column("version", BigInteger, primary_key=True))

scopes = Table(
    "scopes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("scope", Words, nullable=False),
    Column("spent", BigInteger, nullable=False),  # micro-dollars, as all money here
    Column("reserved", BigInteger, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("run_id", Words, nullable=False),
    Column("scope", BigInteger, ForeignKey("scopes.id"), nullable=False),
    Column("name", Words, nullable=False),
    Column("flow", Words, nullable=False),
    Column("dataset", Words, nullable=False),
    Column("oracle", Words, nullable=False),
    Column("settings", Json, nullable=False),
    Column("status", Words, nullable=False),
    Column("summary", Json),
    Column("started_at", Double, nullable=False),  # seconds since 1970 in UTC, as all times here
    Column("ended_at", Double),
)

identities = Table(
    "identities",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("oracle", Words, nullable=False),
    Column("identity", Json, nullable=False),
)

charges = Table(
    "charges",
    metadata,
    Column("key", Text, primary_key=True),
    Column("fence", BigInteger, primary_key=True),
    Column("run", BigInteger, ForeignKey("runs.id"), nullable=False),
    Column("oracle", Words, nullable=False),
    Column("kind", Words, nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Words, nullable=False),
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
)

answers = Table(
    "answers",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("identity", BigInteger, ForeignKey("identities.id"), nullable=False),
    Column("kind", Words, nullable=False),
    Column("question", Json, nullable=False),
    Column("answer", Json, nullable=False),
    Column("cost", BigInteger, nullable=False),
    Column("answered_at", Double, nullable=False),
)

uses = Table(
    "uses",
    metadata,
    Column("run", BigInteger, ForeignKey("runs.id"), primary_key=True),
    Column("answer", BigInteger, ForeignKey("answers.id"), primary_key=True),
)
