"""What becomes of requests for claims: which question is free, held, answered or beyond the budget, and the rows of
those that are granted.

A provider's batch lives on without the process that sent it, and so does what it may cost. What a question in a batch
keeps spent (an unknown charge with `batch`) becomes the reservation of whoever claims it next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Text,
    bindparam,
    insert,
    literal_column,
    select,
    update,
)

from store.ledger.books import CHARGE, Balance, Charge, add_to_balances, book, lock_free_scopes
from store.ledger.runs import RunRow
from store.packed.answers import packed_times
from store.packed.claims import (
    PACKED_FENCE,
    NewClaim,
    PackTerms,
    claim_packs,
    claimed_packed,
    group_labels,
    packed_claims_of,
)
from store.packed.keys import find_packed
from store.schema import CLAIMED, LIVE, PAID, RELEASED, SENT, UNKNOWN, answers, charges, runs, storable
from store.sql import json_array, or_nothing, values_table


class Request(NamedTuple):
    """A question that a run wants to ask, and the most that it can cost."""

    key: str
    upper_bound: int
    oracle: str = ""
    kind: str = ""
    replaces: float | None = None  # an answer that was kept before this time does not count


@dataclass(slots=True)
class Claimed:
    """What became of each request."""

    granted: dict[str, int] = field(default_factory=dict)  # with its fence: ask these
    sent: set[str] = field(default_factory=set)  # of these, marked as sent already
    answered: list[str] = field(default_factory=list)  # an answer is kept by now
    held: list[str] = field(default_factory=list)  # claimed by another owner
    refused: list[str] = field(default_factory=list)  # exceeds the budget


class ClaimTerms(NamedTuple):
    """For one call of `claim`, which the token identifies when its transaction is retried."""

    owner: str
    token: str
    lease_seconds: float
    budget: int | None
    now: float
    sending: int


_SEEN = ("key", "fence", "state", "owner", "token", "reserved", "in_doubt", "batch", "settled_at")
# Every answer has a charge, so the charges tell which questions are answered.
_CHARGES = (
    select(*(charges.c[name] for name in _SEEN), runs.c.scope, answers.c.answered_at.label("answered"))
    .join(runs, runs.c.id == charges.c.run)
    .outerjoin(answers, answers.c.key == charges.c.key)
    .where(charges.c.key.in_(json_array()))
    .order_by(charges.c.key, charges.c.fence)
)
_WANTED = values_table(
    key=Text, fence=BigInteger, state=Text, in_doubt=BigInteger, oracle=Text, kind=Text, reserved=BigInteger, batch=Text
)
_NEW_CHARGE: dict[str, ColumnElement[Any]] = {
    **dict(_WANTED.c.items()),
    "run": bindparam("of_run", type_=BigInteger),
    "owner": bindparam("of_owner", type_=charges.c.owner.type),
    "token": bindparam("of_token", type_=Text),
    "lease_seconds": bindparam("lease", type_=Double),
    "lease_until": bindparam("until", type_=Double),
    "claimed_at": bindparam("at", type_=Double),
    **{name: literal_column("0") for name in ("cost", "requests", "input_tokens", "output_tokens", "seconds")},
}
_INSERT = (
    insert(charges)
    .from_select(list(_NEW_CHARGE), or_nothing(select(*_NEW_CHARGE.values()).where(_WANTED.c.fence > 0)))
    .returning(charges.c.key)
)


class LatestCharge(NamedTuple):
    """The latest charge of a question, packed or not."""

    key: str
    fence: int
    state: str
    owner: str = ""
    token: str = ""
    reserved: int = 0
    in_doubt: int = 0
    batch: str | None = None
    settled_at: float | None = None
    scope: int = 0
    answered: float | None = None


def are_known(connection: Connection, keys: Sequence[str]) -> bool:
    """Whether any of these questions was ever claimed. Nothing is locked."""
    return bool(find_packed(connection, keys) or connection.execute(_CHARGES, {"keys": keys}).first())


def latest_charges(connection: Connection, keys: Sequence[str]) -> dict[str, LatestCharge]:
    """By key. Packs are read first: a claim that another process takes out of its pack meanwhile is seen twice then,
    and not missed."""
    found = find_packed(connection, keys)
    latest: dict[str, LatestCharge] = {}
    for key, at in packed_times(connection, found).items():
        latest[key] = LatestCharge(key, PACKED_FENCE, PAID, settled_at=at, answered=at)
    for claim in packed_claims_of(connection, {at.pack for at in found.values()}).values():
        for key, reserved, doubt in zip(claim.keys, claim.reserved, claim.in_doubt, strict=True):
            latest[key] = LatestCharge(
                key,
                PACKED_FENCE,
                state=CLAIMED if doubt is None else SENT,
                owner=claim.owner,
                token=claim.token,
                reserved=reserved,
                in_doubt=doubt or 0,
                scope=claim.scope,
            )
    others = [key for key in keys if key not in latest]
    values = {"keys": keys if found else others}
    rows = connection.execute(_CHARGES, values) if values["keys"] else ()
    return latest | {row[0]: LatestCharge._make(row) for row in rows}


def decide(
    requests: Sequence[Request],
    latest: Mapping[str, LatestCharge],
    ended: Collection[tuple[str, int]],
    in_batches: Mapping[str, InBatch],
    terms: ClaimTerms,
    scope: int,
    balance: Balance,
) -> tuple[Claimed, dict[str, Request]]:
    """What to do with each request, and the ones that are to be claimed now."""
    result, wanted = Claimed(), dict[str, Request]()
    left = None if terms.budget is None else terms.budget - balance.spent - balance.reserved
    own = {
        key: question.spent for key, question in in_batches.items() if question.scope == scope
    }  # are paid for: no budget refuses them
    for request in {request.key: request for request in requests}.values():
        before = latest.get(request.key)
        answered = None if before is None else before.answered
        if answered is not None and (request.replaces is None or answered >= request.replaces):
            result.answered.append(request.key)
        elif before is not None and before.state in LIVE and (before.key, before.fence) not in ended:
            if before.token == terms.token:  # this very call was committed, only its acknowledgement was lost
                result.granted[request.key] = before.fence
                if before.state == SENT:
                    result.sent.add(request.key)
            else:
                result.held.append(request.key)
        elif request.key in in_batches and not in_batches[request.key].locked:
            result.held.append(request.key)  # the books of its scope are in use: try again
        elif left is not None and request.key not in own and request.upper_bound > max(left, 0):
            result.refused.append(request.key)
            left = 0
        else:
            result.granted[request.key] = before.fence + 1 if before is not None else 1
            paid = own.get(request.key)
            wanted[request.key] = request if paid is None else request._replace(upper_bound=paid)
            if len(result.sent) < terms.sending:
                result.sent.add(request.key)
            if left is not None and request.key not in own:
                left -= request.upper_bound
    return result, wanted


def insert_claims(
    connection: Connection,
    run: RunRow,
    requests: Sequence[Request],
    decided: Claimed,
    terms: ClaimTerms,
    in_batches: Mapping[str, InBatch],
) -> set[str]:
    """Insert the claims; returns the keys of those that no other process has inserted first."""
    fences, sent = decided.granted, decided.sent
    texts = {
        text: storable(text)
        for text in {question.oracle for question in requests} | {question.kind for question in requests}
    }
    new = (
        NewClaim(question.key, texts[question.oracle], texts[question.kind], question.upper_bound, question.key in sent)
        for question in requests
        if fences[question.key] == PACKED_FENCE and question.replaces is None
    )
    packs = group_labels(new)
    lost = claim_packs(connection, packs, PackTerms(run.run, terms.owner, terms.token, terms.lease_seconds, terms.now))
    together = {question.key for pack in packs for question in pack}
    single = [question for question in requests if question.key not in together]
    return (together - lost) | _insert_rows(connection, run, single, decided, terms, in_batches)


def _insert_rows(
    connection: Connection,
    run: RunRow,
    requests: Sequence[Request],
    decided: Claimed,
    terms: ClaimTerms,
    in_batches: Mapping[str, InBatch],
) -> set[str]:
    if not requests:
        return set()
    fences, sent = decided.granted, decided.sent
    lost = claimed_packed(connection, [question.key for question in requests if fences[question.key] == PACKED_FENCE])
    rows = [
        (
            question.key,
            fences[question.key],
            *((SENT, question.upper_bound) if question.key in sent else (CLAIMED, 0)),
            storable(question.oracle),
            storable(question.kind),
            question.upper_bound,
            in_batches[question.key].batch if question.key in in_batches else None,
        )
        for question in requests
        if question.key not in lost
    ]
    values = {
        "rows": rows,
        "of_run": run.run,
        "of_owner": terms.owner,
        "of_token": terms.token,
        "lease": terms.lease_seconds,
        "until": terms.now + terms.lease_seconds,
        "at": terms.now,
    }
    return set(connection.execute(_INSERT, values).scalars().all())


COLLECTABLE_SECONDS = 29 * 86_400.0  # providers delete the results of a batch after 30 days

_OLD = (
    select(*CHARGE)
    .join(runs, runs.c.id == charges.c.run)
    .where(charges.c.key.in_(json_array()))
    .order_by(charges.c.key, charges.c.fence)
    .with_for_update(of=charges)
)
_RELEASED = values_table(key=Text, fence=BigInteger)
_RELEASE = (
    update(charges)
    .where(charges.c.key == _RELEASED.c.key, charges.c.fence == _RELEASED.c.fence)
    .values(state=RELEASED, in_doubt=0)
)


class InBatch(NamedTuple):
    """A question that a batch holds, and what it keeps spent of which scope."""

    fence: int
    batch: str
    scope: int
    spent: int
    locked: bool = False


def unclaimed_in_batches(
    connection: Connection, latest: Iterable[LatestCharge], ended: Collection[tuple[str, int]], scope: int, now: float
) -> dict[str, InBatch]:
    """The questions that nobody has claimed and a batch holds."""
    found = dict[str, InBatch]()
    for charge in latest:
        is_stored = charge.state == UNKNOWN and now - (charge.settled_at or 0.0) < COLLECTABLE_SECONDS
        is_open = not charge.answered and (is_stored or (charge.key, charge.fence) in ended)
        if charge.batch is not None and is_open:
            spent = charge.in_doubt if charge.state == UNKNOWN else charge.reserved
            found[charge.key] = InBatch(charge.fence, charge.batch, scope=charge.scope, spent=spent)
    others = {question.scope for question in found.values()} - {scope}
    locked = {scope, *(lock_free_scopes(connection, others) if others else ())}
    return {key: question._replace(locked=question.scope in locked) for key, question in found.items()}


def move_reservations(connection: Connection, collected: Mapping[str, InBatch], scope: int) -> None:
    """Release the old rows of questions that are claimed again. In this scope what they kept spent is now reserved; in
    another one it is given back, for here it was reserved anew."""
    if not collected:
        return
    rows = connection.execute(_OLD, {"keys": sorted(collected)}).all()
    old = [
        question
        for question in map(Charge._make, rows)
        if question.state == UNKNOWN and question.fence == collected[question.key].fence
    ]
    if old:
        connection.execute(_RELEASE, {"rows": [(question.key, question.fence) for question in old]})
    book(connection, [(question, question._replace(state=RELEASED, in_doubt=0)) for question in old])
    add_to_balances(
        connection,
        {scope: Balance(0, sum(question.spent for question in collected.values() if question.scope == scope))},
    )
