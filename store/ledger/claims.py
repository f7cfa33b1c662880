"""Claims: who may ask a question now. A claim reserves the price and keeps others from asking while its lease lasts.

A claim and its charge are one row (key, fence), in one of these states:

    claimed ──mark_sent──► sent ──answers.record──► paid
       │                    │ │
       │ release, abandon,  │ └──abandon, expiry──► unknown   (may have been charged: what is in doubt stays spent)
       │ expiry             │ release (known to be uncharged)
       └────────────────────┴─────────────────────► released  (costs nothing)

`in_doubt` is what requests of the claim may have cost that have not reported it: while it is sent, what would stay
spent if nothing more were heard; of a paid one, the bounds of attempts that failed before the one that was answered.

A claim whose question is in a provider's batch (note_batch) ends as unknown. When such a question is claimed again, the
old row is released and what it kept spent becomes the reservation of the new one: a batch is collected whatever is left
of the budget, and booked once.

An answer that arrives late is paid from whatever state its claim is in by then. A question that is claimed again after
unknown or released gets the next fence. Whoever claims or settles locks the balance of the scope first, then charges by
key, so that two transactions never wait for each other."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, Connection, Text, bindparam, func, select, update

from store.errors import StoreUnavailable
from store.ledger.books import Balance, locked_balance, reserve
from store.ledger.expiry import (
    IS_LIVE,
    LIVE_CLAIMS,
    end_claims,
    expire_claims,
    expire_dead_owners,
    has_expired,
    shorten_leases,
)
from store.ledger.granting import (
    Claimed,
    ClaimTerms,
    Request,
    are_known,
    decide,
    insert_claims,
    latest_charges,
    move_reservations,
    unclaimed_in_batches,
)
from store.ledger.owners import is_dead
from store.ledger.runs import RunRepository, Runs
from store.packed.answers import unpack
from store.packed.claims import mark_packed, take_out_keys
from store.packed.keys import find_packed
from store.schema import LIVE, SENT, charges
from store.sql import json_array, values_table
from store.transactions import BatchExecutor, Clock, Transactions, reads, writes

_OWN_CLAIMS = LIVE_CLAIMS.where(
    charges.c.key.in_(json_array()), charges.c.owner == bindparam("of_owner")
).with_for_update(of=charges)
_MARK_SENT = (
    update(charges)
    .where(IS_LIVE, charges.c.key.in_(json_array()), charges.c.owner == bindparam("of_owner"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds, in_doubt=charges.c.reserved)
    .returning(charges.c.key)
)
_LEAVING = values_table(key=Text, in_doubt=BigInteger)
_MARK_LEAVING = (
    update(charges)
    .where(IS_LIVE, charges.c.key == _LEAVING.c.key, charges.c.owner == bindparam("of_owner"))
    .values(state=SENT, lease_until=bindparam("at") + charges.c.lease_seconds, in_doubt=_LEAVING.c.in_doubt)
    .returning(charges.c.key)
)
_RAISED = values_table(key=Text, reserved=BigInteger)
_RESERVE_MORE = (
    update(charges)
    .where(IS_LIVE, charges.c.key == _RAISED.c.key, charges.c.owner == bindparam("of_owner"))
    .values(reserved=_RAISED.c.reserved)
)
_NOTE_BATCH = (
    update(charges)
    .where(IS_LIVE, charges.c.key.in_(json_array()), charges.c.owner == bindparam("of_owner"))
    .values(batch=bindparam("in_batch"), lease_until=bindparam("at") + charges.c.lease_seconds)
)
_IN_BATCHES = select(charges.c.key).where(charges.c.key.in_(json_array()), charges.c.batch.is_not(None)).distinct()


TOGETHER_SECONDS = 0.002  # requests that leave so close together are marked by one transaction


class _Leaving(NamedTuple):
    """Claims whose request is about to leave, and the most that is in doubt of each then."""

    owner: str
    in_doubt: Mapping[str, int]


class Claims(RunRepository):
    def __init__(self, transactions: Transactions, clock: Clock, runs: Runs) -> None:
        super().__init__(transactions, clock, runs)
        # Where the store cannot be reached, each would only wait as long again by itself.
        self._leaving = BatchExecutor(self._mark_together, fails_all=(StoreUnavailable,), delay=TOGETHER_SECONDS)

    def claim(
        self,
        run_id: str,
        scope: str,
        requests: Sequence[Request],
        *,
        owner: str,
        lease_seconds: float,
        budget: int | None,
        sending: int = 0,
    ) -> Claimed:
        """Claim questions in order and reserve the most that each can cost, within the budget of the scope.

        The first `sending` of those granted are marked as sent too: the caller sends them next. Expired claims are
        ended first. Once one request exceeds the budget, nothing after it that costs anything is granted."""
        terms = ClaimTerms(owner, uuid.uuid4().hex, lease_seconds, budget, self._clock(), sending)
        return self._claim(run_id, scope, requests, terms) if requests else Claimed()

    @writes
    def _claim(
        self, connection: Connection, run_id: str, scope: str, requests: Sequence[Request], terms: ClaimTerms
    ) -> Claimed:
        run = self._runs.find(connection, run_id, scope)
        keys = sorted({request.key for request in requests})
        # Before the lock, for which others wait. What is claimed meanwhile is not inserted, whoever claims it.
        is_new, have_expired = not are_known(connection, keys), has_expired(connection, terms.now)
        balance = locked_balance(connection, run.scope)
        unpack(connection, [request.key for request in requests if request.replaces is not None])
        latest = {} if is_new else latest_charges(connection, keys)
        dead = set(filter(is_dead, {row.owner for row in latest.values() if row.state in LIVE}))
        ended, freed = set[tuple[str, int]](), Balance()
        if dead or have_expired:
            ended, freed = expire_claims(connection, run.scope, dead, terms.now)
        in_batches = unclaimed_in_batches(connection, latest.values(), ended, run.scope, terms.now)
        result, wanted = decide(requests, latest, ended, in_batches, terms, run.scope, balance + freed)
        if result.refused:  # dead owners may hold more of the budget
            more, freed_more = expire_dead_owners(connection, run.scope, terms.now)
            ended |= more
            in_batches = unclaimed_in_batches(connection, latest.values(), ended, run.scope, terms.now)
            result, wanted = decide(requests, latest, ended, in_batches, terms, run.scope, balance + freed + freed_more)
        if result.held or result.refused:
            shorten_leases(connection, terms.now)
        inserted = insert_claims(connection, run, [wanted[key] for key in sorted(wanted)], result, terms, in_batches)
        for key in set(wanted) - inserted:  # another process was faster
            del result.granted[key]
            result.sent.discard(key)
            result.held.append(key)
        collected = {key: in_batches[key] for key in sorted(inserted & in_batches.keys())}
        own = {key for key, request in collected.items() if request.scope == run.scope}
        reserve(connection, run.scope, sum(wanted[key].upper_bound for key in inserted - own), terms.budget)
        move_reservations(connection, collected, run.scope)
        return result

    @writes
    def note_batch(self, connection: Connection, owner: str, keys: Collection[str], batch: str | None) -> None:
        """Note which of a provider's batches holds these claims, before it is sent; None once they are in no batch that
        may still be charged or collected. Leases are renewed."""
        take_out_keys(connection, keys, owner)
        values = {"keys": sorted(set(keys)), "of_owner": owner, "in_batch": batch, "at": self._clock()}
        connection.execute(_NOTE_BATCH, values)

    @reads
    def in_batches(self, connection: Connection, keys: Sequence[str]) -> list[str]:
        """Those of the questions, in their order, that a provider's batch holds or has held."""
        held = set(connection.execute(_IN_BATCHES, {"keys": list(keys)}).scalars()) if keys else set()
        return [key for key in keys if key in held]

    @writes
    def mark_sent(self, connection: Connection, owner: str, keys: Collection[str]) -> set[str]:
        """Mark claims as sent, just before they are, and renew their leases. A key that is not returned was claimed by
        another owner meanwhile: do not send it."""
        now = self._clock()
        marked = mark_packed(connection, owner, dict.fromkeys(keys), now)
        others = sorted(set(keys) - marked)
        values = {"keys": others, "of_owner": owner, "at": now}
        return marked.union(connection.execute(_MARK_SENT, values).scalars()) if others else marked

    def mark_leaving(self, owner: str, in_doubt: Mapping[str, int]) -> set[str]:
        """The same for an oracle that announces every request, just before it leaves, with the most that this one and
        those before it may have cost. A key that is not returned is another owner's by now: do not send it.

        Requests that leave at the same time are marked together, by the same statements."""
        return self._leaving.put(_Leaving(owner, in_doubt))

    def _mark_together(self, requests: list[_Leaving]) -> list[set[str]]:
        leaving: dict[str, dict[str, int]] = {}
        for request in requests:
            leaving.setdefault(request.owner, {}).update(request.in_doubt)
        marked = self._mark_leaving(leaving)
        return [marked[request.owner] & request.in_doubt.keys() for request in requests]

    @writes
    def _mark_leaving(self, connection: Connection, leaving: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
        """By owner, which of the claims are marked."""
        now, marked = self._clock(), dict[str, set[str]]()
        for owner, in_doubt in sorted(leaving.items()):
            marked[owner] = mark_packed(connection, owner, in_doubt, now)
            others = sorted((key, doubt) for key, doubt in in_doubt.items() if key not in marked[owner])
            values = {"rows": others, "of_owner": owner, "at": now}
            marked[owner].update(connection.execute(_MARK_LEAVING, values).scalars() if others else ())
        return marked

    @writes
    def reserve_more(
        self, connection: Connection, run_id: str, scope: str, owner: str, up_to: Mapping[str, int], budget: int | None
    ) -> bool:
        """Raise what is reserved for the owner's claims to these amounts, where it is less; False, and nothing is
        raised, if that exceeds the budget of the scope. Called before a request that the claims did not foresee."""
        of_scope = self._runs.find(connection, run_id, scope).scope
        balance = locked_balance(connection, of_scope)
        take_out_keys(connection, up_to, owner)
        price, raised = _raised(connection, owner, up_to)
        if price and budget is not None and balance.spent + balance.reserved + price > budget:
            balance += expire_dead_owners(connection, of_scope, self._clock())[1]  # who may hold some of it
            price, raised = _raised(connection, owner, up_to)
            if price and balance.spent + balance.reserved + price > budget:
                return False
        if raised:
            connection.execute(_RESERVE_MORE, {"rows": raised, "of_owner": owner})
            reserve(connection, of_scope, price, budget)
        return True

    @writes
    def release(self, connection: Connection, owner: str, keys: Collection[str]) -> None:
        """Give back claims for which certainly nothing was charged, whether or not they are marked as sent."""
        take_out_keys(connection, keys, owner)
        own = connection.execute(_OWN_CLAIMS, {"keys": sorted(set(keys)), "of_owner": owner}).all()
        end_claims(connection, own, self._clock(), uncharged=True)

    @writes
    def abandon(self, connection: Connection, owner: str, keys: Collection[str]) -> int:
        """Give up claims that may have been charged, as after a time-out: what was sent becomes unknown. Returns what
        stays spent."""
        take_out_keys(connection, keys, owner)
        own = connection.execute(_OWN_CLAIMS, {"keys": sorted(set(keys)), "of_owner": owner}).all()
        return sum(change.spent for change in end_claims(connection, own, self._clock()).values())

    @reads
    def last_fence(self, connection: Connection, key: str) -> int:
        """The fence under which the question was last claimed; 0 if never."""
        last = connection.execute(select(func.max(charges.c.fence)).where(charges.c.key == key)).scalar() or 0
        return last or len(find_packed(connection, [key]))  # all that is packed is asked for the first time


def _raised(connection: Connection, owner: str, up_to: Mapping[str, int]) -> tuple[int, list[tuple[str, int]]]:
    """Which claims of the owner reserve less than this, and what they lack together."""
    own = connection.execute(_OWN_CLAIMS, {"keys": sorted(up_to), "of_owner": owner}).all()
    lacking = [row for row in own if row.reserved < up_to[row.key]]
    return sum(up_to[row.key] - row.reserved for row in lacking), [(row.key, up_to[row.key]) for row in lacking]
