"""`review publish --mturk` and `review collect`: nothing is posted or paid without a printed estimate and --yes."""

from __future__ import annotations

import argparse
from typing import Any

from flows.options import UsageError
from flows.printing import print_result


def add_mturk_options(review: argparse.ArgumentParser) -> None:
    turk = review.add_argument_group("Mechanical Turk")
    turk.add_argument("--mturk", action="store_true", help="publish: on Amazon Mechanical Turk")
    turk.add_argument("--production", action="store_true", help="for real; without it, in the sandbox")
    turk.add_argument("--reward", metavar="USD", default="0.05", help="per page of questions (default: 0.05)")
    turk.add_argument("--cap", metavar="USD", help="what all of it may cost, fees included")
    turk.add_argument("--assignments", type=int, metavar="N", help="people per page (default: the votes missing)")
    turk.add_argument("--lifetime-hours", type=float, default=72.0, metavar="H", help="(default: 72)")
    turk.add_argument("--duration-minutes", type=float, default=30.0, metavar="M", help="for one page (default: 30)")
    turk.add_argument("--approved-percent", type=int, default=95, metavar="N", help="of a worker's past (default: 95)")
    turk.add_argument("--locale", metavar="CC", help="country of the workers, as in US")
    turk.add_argument("--qualification", action="append", default=[], metavar="ID", help="a type that they must have")
    turk.add_argument("--bonus", metavar="USD", help="collect: for every assignment that is approved")
    turk.add_argument("--yes", action="store_true", help="do it; without, it is only shown")


def publish_command(arguments: argparse.Namespace, store: Any) -> None:
    from flows.mturk_publish import plan_tasks, publish
    from flows.mturk_terms import PRODUCTION, SANDBOX, HitTerms, usd
    from flows.reviewing import ADDRESS, DEFAULT_ADDRESS

    if not arguments.mturk:
        raise UsageError("review publish: say where: --mturk")
    if arguments.cap is None:
        raise UsageError("--cap is missing: give the USD that all tasks together may cost")
    terms = HitTerms(
        reward=usd(arguments.reward, "--reward"),
        cap=usd(arguments.cap, "--cap"),
        market=PRODUCTION if arguments.production else SANDBOX,
        assignments=arguments.assignments,
        lifetime_hours=arguments.lifetime_hours,
        duration_minutes=arguments.duration_minutes,
        approved_percent=arguments.approved_percent,
        locale=arguments.locale,
        qualifications=tuple(arguments.qualification),
    )
    plan = plan_tasks(store, terms, queue=arguments.queue, page_size=arguments.page_size)
    print(plan)
    if not plan.tasks:
        return
    if not arguments.yes:
        print("nothing was posted: add --yes to post it")
        return
    address = arguments.base_url or store.queue.remembered(ADDRESS) or DEFAULT_ADDRESS
    posted = publish(store, client_of(terms.market.endpoint), plan, address)
    print(f"{posted} tasks posted; collect their answers with: python -m flows review collect")


def collect_command(arguments: argparse.Namespace, store: Any) -> None:
    from flows.mturk_collect import collect
    from flows.mturk_terms import PRODUCTION, SANDBOX, usd
    from flows.reviewing import resume

    market = PRODUCTION if arguments.production else SANDBOX
    bonus = usd(arguments.bonus, "--bonus") if arguments.bonus else None
    if bonus is not None and (bonus <= 0 or bonus != round(bonus, 2)):
        raise UsageError(f"--bonus {arguments.bonus}: give whole cents, at least 0.01")
    if bonus is not None and not arguments.yes:
        people = sum(hit.terms["people"] for hit in store.queue.hits() if hit.terms["market"] == market.name)
        print(f"a bonus of {bonus:.2f} USD each for at most {people} assignments: add --yes to pay it")
        return
    result = collect(store, client_of(market.endpoint), market.name, bonus=bonus)
    if store.queue.ready_runs():
        resume(store.queue)
    print_result(vars(result), result.lines(), json=arguments.json)


def client_of(endpoint: str) -> Any:
    """Amazon's client; who pays is told by the usual AWS variables and profiles."""
    import boto3

    return boto3.client("mturk", region_name="us-east-1", endpoint_url=endpoint)
