"""The steps that tests of the store are made of, with what does not matter filled in.

A request is written as the names of its questions: `["ab", "c"]` are two requests, of the questions a and b, and of c.
A longer name is a word in a tuple: `[("first", "second")]`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twothirds.store import Claimed, Reply, Respondent, Store, Wanted, text_key

SCOPE = "the same run"
LEASE = 60.0
PRICE = 100_000  # of a request
CROWD = Respondent("crowd", {"kind": "crowd", "model": "m"})
Names = str | Sequence[str]


def begin(store: Store, run_id: str = "run-1", scope: str = SCOPE, name: str = "a run") -> str:
    store.runs.begin(run_id, scope, name=name, flow="discover", dataset="faces", oracle="crowd", settings={"seed": 1})
    return run_id


def claim(
    store: Store,
    requests: Iterable[Names],
    *,
    owner: str = "owner-1",
    run_id: str = "run-1",
    price: int = PRICE,
    budget: int | None = None,
    lease: float = LEASE,
    kind: str = "label",
    again: dict[str, float] | None = None,
) -> Claimed:
    wanted = [Wanted(tuple(map(text_key, names)), price, kind) for names in requests]
    asked_again = {text_key(name): before for name, before in (again or {}).items()}
    terms = {"owner": owner, "lease_seconds": lease, "budget": budget, "again": asked_again}
    return store.requests.claim(run_id, CROWD, wanted, **terms)  # type: ignore[arg-type]


def granted(store: Store, requests: Iterable[Names], **terms: object) -> list[int]:
    """Claim requests that must be granted; their numbers."""
    listed = list(requests)
    found = claim(store, listed, **terms).granted  # type: ignore[arg-type]
    assert [one.keys for one in found] == [tuple(map(text_key, names)) for names in listed]
    return [one.request for one in found]


def send(
    store: Store, numbers: Iterable[int], most: int = PRICE, *, owner: str = "owner-1", run_id: str = "run-1"
) -> set[int]:
    sent, _ = store.requests.send(run_id, owner, dict.fromkeys(numbers, most), None)
    return sent


def reply(
    number: int, names: Names, *, cost: int = PRICE, says: str = "yes", in_doubt: int = 0, closes: bool = False
) -> Reply:
    """Answers to all questions of the request."""
    return Reply(
        number,
        tuple(map(text_key, names)),
        {at: [{"asked": name}, {"verdict": says, "cost": cost}] for at, name in enumerate(names)},
        cost=cost,
        in_doubt=in_doubt,
        attempts=1,
        input_tokens=20,
        output_tokens=3,
        seconds=0.5,
        closes=closes,
    )


def answers(store: Store, names: Names) -> dict[str, str]:
    """What is stored, by the name of the question."""
    by_key = {text_key(name): name for name in names}
    return {by_key[key]: answer["verdict"] for key, answer in store.requests.answers(list(by_key)).items()}


def keys(names: Names) -> set[str]:
    return set(map(text_key, names))


def pay(
    store: Store, requests: Iterable[Names], *, run_id: str = "run-1", cost: int = PRICE, kind: str = "label"
) -> None:
    """Claim, send and answer."""
    owner, listed = f"owner of {run_id}", list(requests)
    numbers = granted(store, listed, owner=owner, run_id=run_id, price=cost, kind=kind)
    assert send(store, numbers, cost, owner=owner, run_id=run_id) == set(numbers)
    replies = [reply(number, names, cost=cost) for number, names in zip(numbers, listed, strict=True)]
    assert store.requests.record(run_id, replies) == {}


def lose(store: Store, requests: Iterable[Names], in_doubt: int, run_id: str = "run-1") -> list[int]:
    """Sent, and never heard of."""
    numbers = granted(store, requests, run_id=run_id)
    assert send(store, numbers, in_doubt, run_id=run_id) == set(numbers)
    assert store.requests.release("owner-1", numbers) == in_doubt * len(numbers)
    return numbers
