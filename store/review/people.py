"""Who may answer: people, their invitations, and the secret with which links are signed."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from twothirds.store.engine import Repository, insert_new, reads, writes
from twothirds.store.errors import StoreError
from twothirds.store.schema import review_invitations, review_people, review_secrets

REVIEWER, EDITOR, ADMIN = "reviewer", "editor", "admin"  # roles of invitations
REVOKED, EXPIRED = "revoked", "expired"
people, invitations = review_people, review_invitations


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Invitation:
    id: int
    person: Person
    role: str
    created_at: float
    expires_at: float
    revoked_at: float | None
    by: str = ""  # who has invited, where that was said
    ended: str = ""  # REVOKED or EXPIRED


_INVITATIONS = select(invitations, people.c.name).join(people, people.c.id == invitations.c.person)


class People(Repository):
    @writes
    def secret(self, connection: Connection, name: str) -> str:
        """A random secret, created once."""
        insert_new(connection, review_secrets, [{"name": name, "value": secrets.token_hex(32)}])
        return str(connection.execute(select(review_secrets.c.value).where(review_secrets.c.name == name)).scalar_one())

    @writes
    def remember(self, connection: Connection, name: str, value: str) -> None:
        """Keep a value for the page, such as its address, instead of the one before."""
        insert_new(connection, review_secrets, [{"name": name, "value": value}])
        connection.execute(update(review_secrets).where(review_secrets.c.name == name).values(value=value))

    @reads
    def remembered(self, connection: Connection, name: str) -> str | None:
        return connection.execute(select(review_secrets.c.value).where(review_secrets.c.name == name)).scalar()

    @writes
    def add(self, connection: Connection, name: str, *, is_worker: bool = False) -> Person:
        """The person of that name, inserted if new. The name of a worker is no one else's."""
        return add_person(connection, name, self._clock(), is_worker=is_worker)

    @reads
    def find(self, connection: Connection, name: str) -> Person | None:
        row = connection.execute(select(people).where(people.c.name == name)).one_or_none()
        return None if row is None else Person(row.id, row.name)

    @writes
    def invite(self, connection: Connection, name: str, role: str, seconds: float, by: str = "") -> Invitation:
        """`role` is what this invitation allows: others of the same person keep theirs."""
        now = self._clock()
        person = add_person(connection, name, now, is_worker=False)
        values = {"person": person.id, "role": role, "created_at": now, "expires_at": now + seconds, "invited_by": by}
        number = connection.execute(insert(invitations).values(values).returning(invitations.c.id)).scalar_one()
        return Invitation(number, person, role, now, now + seconds, None, by)

    @reads
    def invitation(self, connection: Connection, number: int) -> Invitation | None:
        """The invitation, whether it is still valid or not."""
        row = connection.execute(_INVITATIONS.where(invitations.c.id == number)).one_or_none()
        return None if row is None else _invitation(row, self._clock())

    @reads
    def invitations(self, connection: Connection) -> list[Invitation]:
        now = self._clock()
        return [_invitation(row, now) for row in connection.execute(_INVITATIONS.order_by(invitations.c.id))]

    @writes
    def revoke(self, connection: Connection, name: str, *, keep: Sequence[str] = ()) -> int:
        """End all invitations of a person, but for those of the roles to `keep`, and thereby every session; how many
        there were."""
        of_person = select(people.c.id).where(people.c.name == name).scalar_subquery()
        ended = update(invitations).where(
            invitations.c.person == of_person, invitations.c.role.not_in(keep), invitations.c.revoked_at.is_(None)
        )
        return connection.execute(ended.values(revoked_at=self._clock())).rowcount


def add_person(connection: Connection, name: str, now: float, *, is_worker: bool) -> Person:
    insert_new(connection, people, [{"name": name, "is_worker": is_worker, "created_at": now}])
    row = connection.execute(select(people).where(people.c.name == name)).one()
    if row.is_worker != is_worker:
        who = "a worker of Mechanical Turk" if row.is_worker else "somebody who was invited"
        raise StoreError(f"{name!r} is the name of {who} already: choose another name")
    return Person(row.id, row.name)


def _invitation(row: Row[Any], now: float) -> Invitation:
    person = Person(row.person, row.name)
    ended = REVOKED if row.revoked_at is not None else EXPIRED if row.expires_at <= now else ""
    return Invitation(row.id, person, row.role, row.created_at, row.expires_at, row.revoked_at, row.invited_by, ended)
