"""What each scope has spent and reserved. The budget of a scope is checked by the statement that reserves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from store.errors import StoreError
from store.schema import scopes
from store.sql import KEYS


@dataclass(frozen=True, slots=True)
class Balance:
    """What a scope has spent, and what is reserved for questions in flight, in micro-dollars; and how many answers are
    kept that its runs have paid for or used."""

    spent: int = 0
    reserved: int = 0
    kept: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.spent + other.spent, self.reserved + other.reserved, self.kept + other.kept)


_LOCKED_BALANCE = (
    select(scopes.c.spent, scopes.c.reserved, scopes.c.kept)
    .where(scopes.c.id == bindparam("at"))
    .with_for_update(key_share=True)
)
_FREE_SCOPES = select(scopes.c.id).where(scopes.c.id.in_(KEYS)).with_for_update(key_share=True, skip_locked=True)
_ADD = (
    update(scopes)
    .where(scopes.c.id == bindparam("at"))
    .values({name: scopes.c[name] + bindparam(f"more_{name}") for name in ("spent", "reserved", "kept")})
)
_RESERVE = (
    update(scopes)
    .where(scopes.c.id == bindparam("at"), scopes.c.spent + scopes.c.reserved + bindparam("price") <= bindparam("cap"))
    .values(reserved=scopes.c.reserved + bindparam("price"))
)


def locked_balance(connection: Connection, scope: int) -> Balance:
    """The balance, locked until the transaction ends."""
    row = connection.execute(_LOCKED_BALANCE, {"at": scope}).one()
    return Balance(spent=row.spent, reserved=row.reserved, kept=row.kept)


def lock_free_scopes(connection: Connection, wanted: Iterable[int]) -> set[int]:
    """Lock those of the scopes that are not locked by others. It never waits, so it cannot deadlock."""
    return set(connection.execute(_FREE_SCOPES, {"keys": sorted(set(wanted))}).scalars())


def add_to_balances(connection: Connection, changes: Mapping[int, Balance]) -> None:
    rows = [
        {"at": scope, "more_spent": change.spent, "more_reserved": change.reserved, "more_kept": change.kept}
        for scope, change in sorted(changes.items())
        if change != Balance()
    ]
    if rows:
        connection.execute(_ADD, rows)


def reserve(connection: Connection, scope: int, price: int, cap: int | None) -> None:
    """Reserve the price. The statement itself checks the cap, so no error in arithmetic elsewhere can exceed it."""
    if cap is None or price == 0:
        add_to_balances(connection, {scope: Balance(0, price)})
    elif connection.execute(_RESERVE, {"at": scope, "price": price, "cap": cap}).rowcount != 1:
        raise StoreError(
            f"a reservation of {price} micro-dollars does not fit the budget of {cap}: nothing was reserved"
        )
