"""A process of its own that uses a store: prints `ready`, waits for a line, works, prints what it got as JSON."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.store_steps import PRICE, SCOPE, answers, begin, claim, granted, pay, reply, send
from twothirds.store import Store, StoreError, new_owner, text_key

A_DAY = 86_400.0  # so that no lease ends while somebody is far behind


def reserve(store: Store, name: str, count: int, budget: int) -> int:
    """How many of `count` single reservations were granted."""
    begin(store, name)
    wait_for_go()
    wanted = ((f"{name} {number}",) for number in range(count))
    claims = (claim(store, [names], owner=name, run_id=name, budget=budget, lease=A_DAY) for names in wanted)
    return sum(len(claimed.granted) for claimed in claims)


def race(store: Store, name: str, count: int, budget: int, rounds: int) -> list[int]:
    """The same again and again, each round on a budget of its own; how many were granted in each.

    Nobody waits between rounds: whoever is ahead starts the next one, and the others join it."""
    admitted = []
    for number in range(rounds):
        begin(store, f"{name} {number}", scope=f"{SCOPE} {number}")
    wait_for_go()
    for number in range(rounds):
        run = f"{name} {number}"
        wanted = ((f"{run} {each}",) for each in range(count))
        claims = (claim(store, [names], owner=name, run_id=run, budget=budget, lease=A_DAY) for names in wanted)
        admitted.append(sum(len(claimed.granted) for claimed in claims))
    return admitted


def number(store: Store, name: str, rounds: int) -> list[str]:
    """The sampling numbers of scopes that others begin at the same time."""
    wait_for_go()
    for scope in range(rounds):
        begin(store, f"{name} {scope}", scope=f"{SCOPE} {scope}")
    return [store.runs.sampling_number(f"{SCOPE} {scope}") for scope in range(rounds)]


def share(store: Store, name: str, count: int) -> list[str]:
    """The questions that this process was granted and answered, of the same ones that others want at the same time."""
    begin(store, name)
    names = [f"key {number}" for number in range(count)]
    by_key = {text_key(each): each for each in names}
    random.Random(name).shuffle(names)
    wait_for_go()
    mine: list[str] = []
    for start in range(0, count, 8):
        wanted = [tuple(names[at : at + 4]) for at in range(start, min(start + 8, count), 4)]
        for one in claim(store, wanted, owner=name, run_id=name).granted:
            own = [by_key[key] for key in one.keys]
            send(store, [one.request], owner=name, run_id=name)
            store.requests.record(name, [reply(one.request, own, says=name, cost=PRICE)])
            mine += own
    return mine


def hold(store: Store, name: str) -> None:
    """Claim `a` and `b`, send `b`, and hang."""
    begin(store, name)
    owner = new_owner()
    _, sent = granted(store, ["a", "b"], owner=owner, run_id=name)
    send(store, [sent], owner=owner, run_id=name)
    wait_for_go()


def fill(store: Store, ballast: str) -> dict[str, Any]:
    """Pay until the disk is full, look at what is kept, make space, and pay on."""
    path = Path(store.name).with_name(ballast)
    path.write_bytes(bytes(3_000_000))
    begin(store)
    acknowledged: list[str] = []
    said: dict[str, Any] = {}
    while "error" not in said:
        batch = [(f"key {len(acknowledged) + number}",) for number in range(50)]
        try:
            pay(store, batch, cost=1)
        except StoreError as full:
            said["error"] = str(full)
        else:
            acknowledged += [name for (name,) in batch]
    said["acknowledged"] = len(acknowledged)
    said["lost"] = len(acknowledged) - len(answers(store, acknowledged))
    said["problems when full"] = store.check.problems()
    path.unlink()
    more = [f"more {number}" for number in range(500)]
    pay(store, [(name,) for name in more], cost=1)
    said["paid once there was space"] = len(answers(store, more))
    said["problems in the end"] = store.check.problems()
    return said


def wait_for_go() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def main(work: str, url: str, *arguments: str) -> None:
    if work == "open":
        wait_for_go()
    with Store.open(url) as store:
        works: dict[str, Callable[..., Any]] = {
            "reserve": reserve,
            "race": race,
            "number": number,
            "share": share,
            "hold": hold,
            "open": open_only,
            "fill": fill,
        }
        name, *numbers = arguments
        print(json.dumps(works[work](store, name, *map(int, numbers))), flush=True)


def open_only(store: Store, name: str) -> str:
    begin(store, name, scope=SCOPE)
    return name


if __name__ == "__main__":
    main(*sys.argv[1:])
