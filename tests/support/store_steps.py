"""The steps that tests of the store are made of, with what does not matter filled in."""

from __future__ import annotations

from collections.abc import Iterable

from store import AnswerRecord, Request, Store
from store.ledger import Claimed

SCOPE = "the same run"
LEASE = 60.0
PRICE = 100_000


def begin(store: Store, run_id: str = "run-1", scope: str = SCOPE, name: str = "a run") -> str:
    store.runs.begin(run_id, scope, name=name, flow="discover", dataset="faces", oracle="crowd", settings={"seed": 1})
    return run_id


def claim(
    store: Store,
    keys: Iterable[str],
    *,
    owner: str = "owner-1",
    run_id: str = "run-1",
    scope: str = SCOPE,
    price: int = PRICE,
    budget: int | None = None,
    sending: int = 0,
    lease: float = LEASE,
) -> Claimed:
    requests = [Request(key, price, "crowd", "label") for key in keys]
    return store.claims.claim(run_id, scope, requests, owner=owner, lease_seconds=lease, budget=budget, sending=sending)


def question(key: str) -> dict[str, object]:
    """Labels of one example have keys that begin alike, as real ones do."""
    return {"kind": "label", "feature": [key[-1], ""], "example": key[:16]} if len(key) == 64 else {"asked": key}


def record(key: str, fence: int, *, cost: int = PRICE, says: str = "yes", kind: str = "label") -> AnswerRecord:
    return AnswerRecord(
        key=key,
        fence=fence,
        oracle="crowd",
        kind=kind,
        question=question(key),
        answer={"verdict": says},
        cost=cost,
        requests=1,
        input_tokens=20,
        output_tokens=3,
        seconds=0.5,
        identity={"kind": "crowd", "model": "m"},
    )


def pay(store: Store, keys: Iterable[str], *, run_id: str = "run-1", cost: int = PRICE, kind: str = "label") -> None:
    """Claim, send and answer."""
    owner = f"owner of {run_id}"
    granted = claim(store, keys, owner=owner, run_id=run_id, price=cost).granted
    store.claims.mark_sent(owner, granted)
    store.answers.record(run_id, [record(key, fence, cost=cost, kind=kind) for key, fence in granted.items()])
