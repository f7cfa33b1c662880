"""Who may answer: people, their invitations, and the secret with which links are signed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, Row, bindparam, insert, select, update

from store.errors import StoreError
from store.schema import review_invitations, review_people, review_secrets
from store.sql import insert_new

REVIEWER, ADMIN, WORKER = "reviewer", "admin", "worker"
people, invitations = review_people, review_invitations


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class Invitation:
    id: int
    person: Person
    created_at: float
    expires_at: float
    revoked_at: float | None


def secret(connection: Connection, name: str) -> str:
    """A random secret that is made once and stays."""
    insert_new(connection, review_secrets, [{"name": name, "value": secrets.token_hex(32)}])
    return str(connection.execute(select(review_secrets.c.value).where(review_secrets.c.name == name)).scalar_one())


def remember(connection: Connection, name: str, value: str) -> None:
    """Keep a word of the page's own, such as its address, in place of the one before."""
    insert_new(connection, review_secrets, [{"name": name, "value": value}])
    connection.execute(update(review_secrets).where(review_secrets.c.name == name).values(value=value))


def remembered(connection: Connection, name: str) -> str | None:
    return connection.execute(select(review_secrets.c.value).where(review_secrets.c.name == name)).scalar()


def person(connection: Connection, name: str, role: str, now: float) -> Person:
    """The person of that name, entered if new. A name stays with the role it was first used in."""
    insert_new(connection, people, [{"name": name, "role": role, "created_at": now}])
    row = connection.execute(select(people).where(people.c.name == name)).one()
    if row.role != role:
        raise StoreError(f"{name!r} is the name of a {row.role} already: choose another name")
    return Person(row.id, row.name, row.role)


def find(connection: Connection, name: str) -> Person | None:
    row = connection.execute(select(people).where(people.c.name == name)).one_or_none()
    return None if row is None else Person(row.id, row.name, row.role)


def invite(connection: Connection, name: str, role: str, seconds: float, now: float) -> Invitation:
    who = person(connection, name, role, now)
    values = {"person": who.id, "created_at": now, "expires_at": now + seconds}
    made = connection.execute(insert(invitations).values(values).returning(invitations.c.id)).scalar_one()
    return Invitation(made, who, now, now + seconds, None)


def invitation(connection: Connection, number: int, now: float) -> Invitation | None:
    """The invitation, if it still opens the page."""
    row = connection.execute(_STILL_OPEN, {"number": number, "now": now}).one_or_none()
    return None if row is None else _invitation(row)


def revoke(connection: Connection, name: str, now: float) -> int:
    """End all invitations of a person and with them every session; how many there were."""
    of_person = select(people.c.id).where(people.c.name == name).scalar_subquery()
    ended = update(invitations).where(invitations.c.person == of_person, invitations.c.revoked_at.is_(None))
    return connection.execute(ended.values(revoked_at=now)).rowcount


def all_invitations(connection: Connection) -> list[Invitation]:
    return [_invitation(row) for row in connection.execute(_INVITATIONS.order_by(invitations.c.id))]


_INVITATIONS = select(invitations, people.c.name, people.c.role).join(people, people.c.id == invitations.c.person)
_STILL_OPEN = _INVITATIONS.where(
    invitations.c.id == bindparam("number"),
    invitations.c.revoked_at.is_(None),
    invitations.c.expires_at > bindparam("now"),
)


def _invitation(row: Row[tuple[object, ...]]) -> Invitation:
    who = Person(row.person, row.name, row.role)
    return Invitation(row.id, who, row.created_at, row.expires_at, row.revoked_at)
