"""The ordered steps from an empty database to the schema of this version. A released step is never edited.

The steps are written out in SQL, so that a later change of schema.py cannot change an old step."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from sqlalchemy import Connection, delete, insert, inspect, select, text

from store.errors import StoreError
from store.ledger import is_dead, ledger_key
from store.schema import version

PAGE = 1_000
_BARE = re.compile(r"([0-9a-f]{64})((?:/withdrawn/\d+)?)")
_ANSWERS = text("SELECT id, key, question FROM answers WHERE id > :after ORDER BY id LIMIT :most")
_VOTE_KEYS = text("SELECT id, answer_key FROM review_votes WHERE answer_key IS NOT NULL")
_RENAME_ANSWER = text("UPDATE answers SET key = :new WHERE id = :number")
_RENAME_CHARGES = text("UPDATE charges SET key = :new WHERE key = :old")
_RENAME_VOTE = text("UPDATE review_votes SET answer_key = :new WHERE id = :number")


def rename_keys(connection: Connection) -> None:
    """Answers kept under a bare digest, as before schema 6, get the keys of today. A charge without an answer keeps its
    key: the question is not known."""
    votes_of = defaultdict(list)
    for vote, key in connection.execute(_VOTE_KEYS).tuples():
        votes_of[key].append(vote)
    after = 0
    while rows := connection.execute(_ANSWERS, {"after": after, "most": PAGE}).tuples().all():
        after = rows[-1][0]
        names = {number: (key, _new_key(key, question)) for number, key, question in rows}
        renamed = [{"number": number, "old": old, "new": new} for number, (old, new) in names.items() if new != old]
        votes = [{"number": vote, "new": one["new"]} for one in renamed for vote in votes_of[one["old"]]]
        for statement, values in ((_RENAME_ANSWER, renamed), (_RENAME_CHARGES, renamed), (_RENAME_VOTE, votes)):
            if values:
                connection.execute(statement, values)


def _new_key(key: str, question: str) -> str:
    """The key of today. One that is not a digest, or whose question is unreadable, stays: `store check` reports it."""
    bare = _BARE.fullmatch(key)
    try:
        content = json.loads(question)
    except ValueError:
        return key
    return ledger_key(content, bare[1]) + bare[2] if bare and isinstance(content, dict) else key


Step = tuple[str | Callable[[Connection], None], ...]
Waiting = Callable[[str], AbstractContextManager[None]]  # displays a message while the store is migrated


def silently(_message: str) -> AbstractContextManager[None]:
    return nullcontext()


class OnlySqlite(str):
    """A statement that PostgreSQL does not need."""

    __slots__ = ()


_MIGRATION_LOCK = 7_203_167  # any constant that all processes share

_FIRST: Step = (
    """CREATE TABLE scopes (
        id {id}, scope TEXT NOT NULL UNIQUE,
        spent BIGINT NOT NULL CHECK (spent >= 0), reserved BIGINT NOT NULL CHECK (reserved >= 0))""",
    """CREATE TABLE runs (
        id {id}, run_id TEXT NOT NULL UNIQUE, scope BIGINT NOT NULL REFERENCES scopes (id),
        name TEXT NOT NULL, flow TEXT NOT NULL, dataset TEXT NOT NULL, oracle TEXT NOT NULL, settings TEXT NOT NULL,
        status TEXT NOT NULL, summary TEXT, started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION)""",
    "CREATE INDEX runs_by_scope ON runs (scope)",
    """CREATE TABLE identities (
        id {id}, digest TEXT NOT NULL UNIQUE, oracle TEXT NOT NULL, identity TEXT NOT NULL)""",
    """CREATE TABLE charges (
        key TEXT NOT NULL, fence BIGINT NOT NULL, run BIGINT NOT NULL REFERENCES runs (id),
        oracle TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'paid', 'unknown', 'released')),
        owner TEXT NOT NULL, token TEXT NOT NULL,
        lease_seconds DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        reserved BIGINT NOT NULL CHECK (reserved >= 0), cost BIGINT NOT NULL CHECK (cost >= 0),
        requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, claimed_at DOUBLE PRECISION NOT NULL, settled_at DOUBLE PRECISION,
        PRIMARY KEY (key, fence)){clustered}""",
    "CREATE UNIQUE INDEX one_live_claim_per_key ON charges (key) WHERE state IN ('claimed', 'sent')",
    "CREATE INDEX live_claims_by_lease ON charges (lease_until) WHERE state IN ('claimed', 'sent')",
    "CREATE INDEX charges_by_run ON charges (run)",
    """CREATE TABLE answers (
        id {id}, key TEXT NOT NULL UNIQUE, identity BIGINT NOT NULL REFERENCES identities (id), kind TEXT NOT NULL,
        question TEXT NOT NULL, answer TEXT NOT NULL, cost BIGINT NOT NULL, answered_at DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE uses (
        run BIGINT NOT NULL REFERENCES runs (id), answer BIGINT NOT NULL REFERENCES answers (id),
        PRIMARY KEY (run, answer)){clustered}""",
)

_REVIEW: Step = (
    "CREATE TABLE review_secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE review_people (
        id {id}, name TEXT NOT NULL UNIQUE, role TEXT NOT NULL CHECK (role IN ('reviewer', 'admin', 'worker')),
        created_at DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE review_invitations (
        id {id}, person BIGINT NOT NULL REFERENCES review_people (id), created_at DOUBLE PRECISION NOT NULL,
        expires_at DOUBLE PRECISION NOT NULL, revoked_at DOUBLE PRECISION)""",
    "CREATE TABLE review_examples (digest TEXT PRIMARY KEY, shown TEXT NOT NULL)",
    """CREATE TABLE review_items (
        id {id}, digest TEXT NOT NULL UNIQUE, queue TEXT NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
        page TEXT NOT NULL, votes BIGINT NOT NULL, filled BIGINT NOT NULL CHECK (filled >= 0),
        given BIGINT NOT NULL CHECK (given >= 0), skipped BIGINT NOT NULL, patience BIGINT NOT NULL,
        priority BIGINT NOT NULL, deadline DOUBLE PRECISION, price BIGINT NOT NULL, hourly BIGINT NOT NULL,
        expected TEXT, published BIGINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'done', 'given up', 'check')),
        created_at DOUBLE PRECISION NOT NULL)""",
    "CREATE INDEX open_review_items ON review_items (priority DESC, id) WHERE state = 'open'",
    "CREATE INDEX review_items_by_page ON review_items (page)",
    """CREATE TABLE review_votes (
        id {id}, item BIGINT NOT NULL REFERENCES review_items (id),
        person BIGINT NOT NULL REFERENCES review_people (id),
        purpose TEXT NOT NULL CHECK (purpose IN ('vote', 'check', 'repeat')), slot BIGINT,
        state TEXT NOT NULL CHECK (state IN ('leased', 'expired', 'held', 'given', 'late', 'skipped', 'withdrawn')),
        answer TEXT, shown_at DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        answered_at DOUBLE PRECISION, seconds DOUBLE PRECISION NOT NULL, cost BIGINT NOT NULL,
        submission TEXT, answer_key TEXT)""",
    "CREATE UNIQUE INDEX one_person_per_question ON review_votes (item, person, purpose)",
    """CREATE UNIQUE INDEX one_vote_per_place ON review_votes (item, slot)
        WHERE purpose = 'vote' AND state IN ('leased', 'held', 'given')""",
    "CREATE INDEX review_votes_by_person ON review_votes (person, state)",
    "CREATE INDEX review_leases ON review_votes (lease_until) WHERE state = 'leased'",
    """CREATE TABLE review_waits (
        run_id TEXT NOT NULL, item BIGINT NOT NULL REFERENCES review_items (id), suspended BIGINT NOT NULL,
        PRIMARY KEY (run_id, item)){clustered}""",
    """CREATE TABLE review_hits (
        token TEXT PRIMARY KEY, queue TEXT NOT NULL, items TEXT NOT NULL, terms TEXT NOT NULL, run_id TEXT NOT NULL,
        hit_id TEXT, state TEXT NOT NULL CHECK (state IN ('planned', 'posted', 'collected')),
        created_at DOUBLE PRECISION NOT NULL)""",
)

_RATES: Step = (
    """CREATE TABLE rate_limits (
        name TEXT PRIMARY KEY, requests_at DOUBLE PRECISION NOT NULL, tokens_at DOUBLE PRECISION NOT NULL,
        not_before DOUBLE PRECISION NOT NULL, pace DOUBLE PRECISION NOT NULL, paced_at DOUBLE PRECISION NOT NULL)""",
)

# Keys are random. In key order every claim and answer writes a page of its own; in insertion order the rows of a batch
# are neighbours, and only the index is written all over.
_CHARGES_IN_ORDER: Step = tuple(
    OnlySqlite(statement)
    for statement in (
        "DROP INDEX one_live_claim_per_key",
        "DROP INDEX live_claims_by_lease",
        "DROP INDEX charges_by_run",
        "ALTER TABLE charges RENAME TO charges_by_key",
        """CREATE TABLE charges (
        key TEXT NOT NULL, fence BIGINT NOT NULL, run BIGINT NOT NULL REFERENCES runs (id),
        oracle TEXT NOT NULL, kind TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('claimed', 'sent', 'paid', 'unknown', 'released')),
        owner TEXT NOT NULL, token TEXT NOT NULL,
        lease_seconds DOUBLE PRECISION NOT NULL, lease_until DOUBLE PRECISION NOT NULL,
        reserved BIGINT NOT NULL CHECK (reserved >= 0), cost BIGINT NOT NULL CHECK (cost >= 0),
        requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, claimed_at DOUBLE PRECISION NOT NULL, settled_at DOUBLE PRECISION,
        PRIMARY KEY (key, fence))""",
        """INSERT INTO charges SELECT key, fence, run, oracle, kind, state, owner, token, lease_seconds, lease_until,
        reserved, cost, requests, input_tokens, output_tokens, seconds, claimed_at, settled_at
        FROM charges_by_key ORDER BY claimed_at, key, fence""",
        "DROP TABLE charges_by_key",
        "CREATE UNIQUE INDEX one_live_claim_per_key ON charges (key) WHERE state IN ('claimed', 'sent')",
        "CREATE INDEX live_claims_by_lease ON charges (lease_until) WHERE state IN ('claimed', 'sent')",
        "CREATE INDEX charges_by_run ON charges (run)",
    )
)

_CHECKSUMS: Step = ("ALTER TABLE answers ADD COLUMN checksum TEXT",)

_KEYS_BY_EXAMPLE: Step = (rename_keys,)

# What requests may have cost that never reported it: of a sent or unknown charge all of them, of a paid one those that
# failed before the one that was answered. `batch` names the provider's batch from which the answer may still come.
_IN_DOUBT: Step = (
    "ALTER TABLE charges ADD COLUMN in_doubt BIGINT NOT NULL DEFAULT 0 CHECK (in_doubt >= 0)",
    "ALTER TABLE charges ADD COLUMN batch TEXT",
    "UPDATE charges SET in_doubt = reserved WHERE state IN ('sent', 'unknown')",
)

_SETTLEMENTS: Step = (
    """CREATE TABLE settlements (
        id {id}, key TEXT NOT NULL, fence BIGINT NOT NULL, in_doubt BIGINT NOT NULL, cost BIGINT NOT NULL,
        reason TEXT NOT NULL, settled_at DOUBLE PRECISION NOT NULL)""",
)

_REPLACED: Step = (
    """CREATE TABLE replaced_answers (
        id {id}, key TEXT NOT NULL, answer TEXT NOT NULL, cost BIGINT NOT NULL,
        answered_at DOUBLE PRECISION NOT NULL, replaced_at DOUBLE PRECISION NOT NULL)""",
    "CREATE INDEX replaced_answers_by_key ON replaced_answers (key)",
)

_ACCOUNTS: Step = (
    "ALTER TABLE scopes ADD COLUMN taken_over_by BIGINT",
    "CREATE INDEX settlements_by_charge ON settlements (key, fence)",
)

# Sums that are asked for often, and what is needed to count questions that one run has paid for twice. Of the uses
# `run + 0` leaves only the index of keys: that of runs would find all charges of the run for each answer.
_TOTALS: Step = (
    """CREATE TABLE cost_totals (
        run BIGINT NOT NULL REFERENCES runs (id), oracle TEXT NOT NULL, kind TEXT NOT NULL,
        paid_calls BIGINT NOT NULL, requests BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL, paid BIGINT NOT NULL, unknown_calls BIGINT NOT NULL, unknown BIGINT NOT NULL,
        cached_calls BIGINT NOT NULL, cached_worth BIGINT NOT NULL, PRIMARY KEY (run, oracle, kind)){clustered}""",
    "CREATE INDEX charges_asked_again ON charges (run) WHERE fence > 1",
    """INSERT INTO cost_totals
        SELECT run, oracle, kind, sum(CASE WHEN state = 'paid' THEN 1 ELSE 0 END), sum(requests), sum(input_tokens),
            sum(output_tokens), sum(cost), sum(CASE WHEN in_doubt > 0 THEN 1 ELSE 0 END), sum(in_doubt), 0, 0
        FROM charges WHERE state IN ('paid', 'unknown') GROUP BY run, oracle, kind""",
    """INSERT INTO cost_totals
        SELECT uses.run, identities.oracle, answers.kind, 0, 0, 0, 0, 0, 0, 0, count(*), sum(answers.cost)
        FROM uses JOIN answers ON answers.id = uses.answer JOIN identities ON identities.id = answers.identity
        WHERE NOT EXISTS (SELECT * FROM charges
            WHERE charges.key = answers.key AND charges.run + 0 = uses.run AND charges.state = 'paid')
        GROUP BY uses.run, identities.oracle, answers.kind
        ON CONFLICT (run, oracle, kind) DO UPDATE
            SET cached_calls = excluded.cached_calls, cached_worth = excluded.cached_worth""",
    "ALTER TABLE scopes ADD COLUMN kept BIGINT NOT NULL DEFAULT 0",
    """UPDATE scopes SET kept = counted.answers FROM (
        SELECT scope, count(*) AS answers FROM (
            SELECT runs.scope, answers.id FROM charges JOIN answers ON answers.key = charges.key
                JOIN runs ON runs.id = charges.run WHERE charges.state = 'paid' AND charges.kind <> 'probe'
            UNION SELECT runs.scope, uses.answer FROM uses JOIN runs ON runs.id = uses.run) AS known
        GROUP BY scope) AS counted WHERE counted.scope = scopes.id""",
)

_PROMISES: Step = (*_IN_DOUBT, *_SETTLEMENTS, *_REPLACED, *_ACCOUNTS, *_TOTALS)

# Labels that are asked together are one row, and 50 bytes each for the key. Rows of earlier schemas stay as they are.
# No foreign key leads from packed_keys: PostgreSQL would look up the pack once more for each label. Nor does one lead
# from packed_uses to runs: all uses would be read when a run without any is removed.
_PACKED: Step = (
    "CREATE TABLE packed_keys (key {bytes} PRIMARY KEY, pack BIGINT NOT NULL, place SMALLINT NOT NULL){clustered}",
    """CREATE TABLE packed_claims (
        id {id}, run BIGINT NOT NULL REFERENCES runs (id), oracle TEXT NOT NULL, kind TEXT NOT NULL,
        owner TEXT NOT NULL, token TEXT NOT NULL, lease_seconds DOUBLE PRECISION NOT NULL,
        lease_until DOUBLE PRECISION NOT NULL, claimed_at DOUBLE PRECISION NOT NULL,
        keys {bytes} NOT NULL, reserved TEXT NOT NULL, in_doubt TEXT NOT NULL)""",
    "CREATE INDEX packed_claims_by_lease ON packed_claims (lease_until)",
    """CREATE TABLE packs (
        id {id}, run BIGINT NOT NULL REFERENCES runs (id), identity BIGINT NOT NULL REFERENCES identities (id),
        kind TEXT NOT NULL, size BIGINT NOT NULL, gone BIGINT NOT NULL, cost BIGINT NOT NULL CHECK (cost >= 0),
        answered_at DOUBLE PRECISION NOT NULL, content {bytes} NOT NULL, checksum {bytes} NOT NULL)""",
    "CREATE INDEX packs_by_run ON packs (run)",
    """CREATE TABLE packed_uses (
        pack BIGINT NOT NULL REFERENCES packs (id), run BIGINT NOT NULL, places BIGINT NOT NULL,
        PRIMARY KEY (pack, run)){clustered}""",
    "CREATE TABLE question_forms (id {id}, digest TEXT NOT NULL UNIQUE, form TEXT NOT NULL)",
)

STEPS: tuple[Step, ...] = (
    _FIRST,
    _REVIEW,
    _RATES,
    _CHARGES_IN_ORDER,
    _CHECKSUMS,
    _KEYS_BY_EXAMPLE,
    _PROMISES,
    _PACKED,
)

_WORDS = {
    "sqlite": {"id": "INTEGER PRIMARY KEY", "clustered": " WITHOUT ROWID", "bytes": "BLOB"},
    "postgresql": {"id": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "clustered": "", "bytes": "BYTEA"},
}


def migrate(connection: Connection, name: str, steps: Sequence[Step] = STEPS, waiting: Waiting = silently) -> None:
    """Migrate the database to the newest schema in the caller's transaction; refuse one that is newer or foreign."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))  # another process may migrate for long
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
    at = schema_version(connection, name, steps)
    if at == len(steps):
        return
    if at == 0:
        connection.exec_driver_sql("CREATE TABLE twothirds_schema (version BIGINT PRIMARY KEY)")
        _apply(connection, steps)
    else:
        _refuse_if_in_use(connection, name, at)
        with waiting(f"migrating store {name} from schema {at} to {len(steps)}, once"):
            _apply(connection, steps[at:])
    connection.execute(delete(version))
    connection.execute(insert(version), {"version": len(steps)})


def _apply(connection: Connection, steps: Sequence[Step]) -> None:
    dialect = connection.dialect.name
    for step in steps:
        for statement in step:
            if callable(statement):
                statement(connection)
            elif dialect == "sqlite" or not isinstance(statement, OnlySqlite):
                connection.exec_driver_sql(statement.format_map(_WORDS[dialect]))


_LEASED = "lease_until > :now AND lease_until <= :now + lease_seconds + 3600"  # else by a clock that was ahead
_UNDER_WAY = text(f"SELECT owner, lease_until FROM charges WHERE state IN ('claimed', 'sent') AND {_LEASED}")  # noqa: S608
_PACKED_UNDER_WAY = text(f"SELECT owner, lease_until FROM packed_claims WHERE {_LEASED}")  # noqa: S608
_PACKED_SINCE = 8


def _refuse_if_in_use(connection: Connection, name: str, at: int) -> None:
    """A program of an earlier version would go on writing to the old schema."""
    now, leases = time.time(), list[float]()
    for under_way in (_UNDER_WAY, _PACKED_UNDER_WAY) if at >= _PACKED_SINCE else (_UNDER_WAY,):
        leases += [until for owner, until in connection.execute(under_way, {"now": now}) if not is_dead(owner)]
    if leases:
        raise StoreError(
            f"store {name} is in use by a run of an earlier version: let it end, or wait "
            f"{max(leases) - now:.0f} s if its machine has died, and run again"
        )


def schema_version(connection: Connection, name: str, steps: Sequence[Step] = STEPS) -> int:
    """The schema of the database, 0 if it is empty. Raises StoreError for one that is newer or foreign."""
    tables = set(inspect(connection).get_table_names())
    if version.name in tables:
        at = connection.execute(select(version.c.version)).scalar_one_or_none()
        if at is None:
            raise StoreError(f"store {name} has lost its schema version: restore a copy of it or give another --store")
        if at > len(steps):
            raise StoreError(
                f"store {name} has schema {at}, this program knows up to {len(steps)}: "
                "update the program or give another --store"
            )
        return int(at)
    ours = {table.name for table in version.metadata.sorted_tables}
    foreign = tables if connection.dialect.name == "sqlite" else tables & ours
    if foreign:
        raise StoreError(
            f"store {name} is the database of another program (table {min(foreign)}): "
            "give a database of its own with --store"
        )
    return 0
