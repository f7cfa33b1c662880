"""Money for tasks that are not on Mechanical Turk is not kept from the run; for one that may be there, it is."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from tests.contracts.store.test_machine import an_owner_that_is_dead
from tests.integration.flows.reviewing.test_mturk import (
    ADDRESS,
    BOUND,
    HIT,
    enqueued,
    expect_created,
    expect_left,
    expect_listed,
    expected_request,
    plan,
    turk,
)
from tests.support.store_steps import claim
from twothirds.flows.errors import UsageError
from twothirds.flows.reviewing import mturk
from twothirds.flows.reviewing.mturk import collect, post_planned, publish
from twothirds.store import Store
from twothirds.store.review.leases import LeaseTerms

__all__ = ["turk"]
Turk = tuple[Any, Stubber]


class Killed(BaseException):
    """Nothing is cleaned up after it."""


def killed_when(store: Store, patch: pytest.MonkeyPatch, at: str, turk: Turk) -> None:
    """A publish whose process dies before it writes down the plan, before it posts, or while it does."""

    def dies(*_about: Any, **_more: Any) -> Any:
        raise Killed

    places: dict[str, tuple[object, str]] = {
        "plan": (type(store.queue.mturk), "plan"),
        "post": (mturk, "post_planned"),
        "create": (mturk, "_create"),
    }
    if at == "create":
        turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    with patch.context() as during:
        during.setattr(mturk, "new_owner", an_owner_that_is_dead)
        during.setattr(*places[at], dies)
        during.setattr(type(store.requests), "release", lambda *_about, **_more: 0)
        with pytest.raises(Killed):
            publish(store, turk[0], plan(store), ADDRESS)


def other_run_claims(store: Store, budget: int) -> bool:
    """Whether a question of the same scope fits the budget now."""
    granted = claim(store, ["another"], run_id="run", price=budget, budget=budget, owner="o").granted
    store.requests.release("o", [one.request for one in granted])
    return bool(granted)


def test_a_budget_that_allows_only_some_tasks_gives_all_of_it_back(store: Store, turk: Turk) -> None:
    enqueued(store, questions=30, budget="0.30")  # three tasks of 0.12
    with pytest.raises(UsageError, match=r"budget of 0\.30 USD of run faces does not allow it"):
        publish(store, turk[0], plan(store), ADDRESS)
    assert store.queue.mturk.hits() == []
    assert store.runs.spent("scope") == (0, 0)
    assert other_run_claims(store, 300_000)


@pytest.mark.parametrize("at", ["plan", "post"])
def test_a_publish_that_dies_before_it_posts_blocks_no_money(
    store: Store, turk: Turk, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    enqueued(store, budget="0.12")
    killed_when(store, monkeypatch, at, turk)
    assert store.runs.spent("scope") == (0, 2 * BOUND)
    assert other_run_claims(store, 2 * BOUND)
    assert store.runs.spent("scope") == (0, 0)
    assert store.check.problems() == []


def test_what_died_before_it_was_posted_is_posted_by_the_next_collect(
    store: Store, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued(store, budget="0.12")
    killed_when(store, monkeypatch, "post", turk)
    expect_created(turk[1])
    expect_listed(turk[1])
    expect_left(turk[1], available=2)
    assert collect(store, turk[0], "production").waiting == 1
    assert store.runs.spent("scope") == (0, 2 * BOUND)
    expect_listed(turk[1])
    expect_left(turk[1])  # nobody took it
    collect(store, turk[0], "production")
    assert store.runs.spent("scope") == (0, 0)


def test_what_the_budget_no_longer_allows_goes_back_to_the_page(
    store: Store, turk: Turk, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued(store, budget="0.12")
    killed_when(store, monkeypatch, "post", turk)
    claim(store, ["another"], run_id="run", price=1, budget=2 * BOUND)
    turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    lines = collect(store, turk[0], "production").lines()
    assert "budget of 0.12 USD of run faces does not allow it" in lines[1]
    assert store.runs.spent("scope") == (0, 1)
    ann = store.queue.people.add("ann").id
    assert len(store.queue.leases.next_page(ann, LeaseTerms())) == 5
    assert post_planned(store, turk[0], "production") == 0


@pytest.mark.parametrize("there", [True, False])
def test_of_a_publish_that_dies_while_it_posts_the_money_stays_until_the_next_one_has_looked(
    store: Store, turk: Turk, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    enqueued(store, budget="0.12")
    killed_when(store, monkeypatch, "create", turk)
    assert not other_run_claims(store, 2 * BOUND), "it may be there"
    assert store.runs.spent("scope") == (2 * BOUND, 0)
    (hit,) = store.queue.mturk.hits()
    if there:
        listed = {"HITs": [{"HITId": HIT, "RequesterAnnotation": hit.token}]}
        turk[1].add_response("list_hits", listed, {"MaxResults": 100})
    else:
        turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
        turk[1].add_response("create_hit", {"HIT": {"HITId": HIT}}, expected_request())
    assert post_planned(store, turk[0], "production") == 1
    assert store.runs.spent("scope") == (0, 2 * BOUND), "reserved once, whatever is left of the budget"
    assert store.check.problems() == []
    expect_listed(turk[1])
    expect_left(turk[1])
    collect(store, turk[0], "production")
    assert store.runs.spent("scope") == (0, 0)


@pytest.mark.parametrize(("code", "certain"), [("AccessDeniedException", True), ("RequestTimeout", False)])
def test_what_amazon_refuses_is_given_back_at_once_and_what_may_be_there_is_not(
    store: Store, turk: Turk, code: str, certain: bool
) -> None:
    enqueued(store)
    turk[1].add_response("list_hits", {"HITs": []}, {"MaxResults": 100})
    turk[1].add_client_error("create_hit", code, "no", expected_params=expected_request())
    with pytest.raises(UsageError, match="run the same command again"):
        publish(store, turk[0], plan(store), ADDRESS)
    assert store.runs.spent("scope") == ((0, 0) if certain else (2 * BOUND, 0))
    expect_created(turk[1])
    assert post_planned(store, turk[0], "production") == 1
    assert store.runs.spent("scope") == (0, 2 * BOUND)
