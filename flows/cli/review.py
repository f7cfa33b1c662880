"""`review publish --mturk` and `review collect`: nothing is posted or paid without a printed estimate and --yes.

The command `review`: serve the page, invite people, see how far they are."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.cli.runs import Command
from flows.cli.terminal import print_result
from flows.errors import UsageError


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
    from flows.money import read_usd
    from flows.reviewing.mturk.publish import plan_tasks, publish
    from flows.reviewing.mturk.terms import PRODUCTION, SANDBOX, HitTerms
    from flows.reviewing.page import ADDRESS, DEFAULT_ADDRESS

    if not arguments.mturk:
        raise UsageError("review publish: say where: --mturk")
    if arguments.cap is None:
        raise UsageError("--cap is missing: give the USD that all tasks together may cost")
    terms = HitTerms(
        reward=read_usd(arguments.reward, "--reward"),
        cap=read_usd(arguments.cap, "--cap"),
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
    from flows.money import read_usd
    from flows.reviewing.mturk.collect import collect
    from flows.reviewing.mturk.terms import PRODUCTION, SANDBOX
    from flows.reviewing.page import resume

    market = PRODUCTION if arguments.production else SANDBOX
    bonus = read_usd(arguments.bonus, "--bonus") if arguments.bonus else None
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


EXAMPLE = "example: python -m flows review invite Ann; python -m flows review"
DONE = 0
ACTIONS = "serve|invite|revoke|withdraw|status|export|checks|publish|collect"


def add_review_commands(command: Command) -> None:
    review = command("review", "the page on which people answer, and who may", EXAMPLE, _review)
    review.add_argument("action", nargs="?", default="serve", metavar=ACTIONS, help="what to do (default: serve)")
    review.add_argument("names", nargs="*", metavar="NAME", help="of a person; with export the file, with checks too")
    review.add_argument("--store", metavar="STORE", help="URL or path of the store")
    review.add_argument("--host", default="127.0.0.1", metavar="HOST", help="serve: address to listen at")
    review.add_argument("--port", type=int, default=8765, metavar="PORT", help="serve: (default: 8765)")
    review.add_argument("--base-url", metavar="URL", help="under which people reach the page, if not host and port")
    review.add_argument("--queue", metavar="QUEUE", help="only the questions of --oracle human:QUEUE")
    review.add_argument(
        "--page-size", type=int, default=12, metavar="N", help="serve: labels on one page (default: 12)"
    )
    review.add_argument("--lease-minutes", type=float, default=15.0, metavar="M", help="serve: time for a page (15)")
    review.add_argument("--checks", type=float, default=0.05, metavar="SHARE", help="serve: attention checks (0.05)")
    review.add_argument("--repeats", type=float, default=0.05, metavar="SHARE", help="serve: asked twice (0.05)")
    review.add_argument("--pass-mark", type=float, default=0.8, metavar="SHARE", help="serve: checks to pass (0.8)")
    review.add_argument("--days", type=float, default=14.0, metavar="DAYS", help="invite: how long (default: 14)")
    add_mturk_options(review)
    review.add_argument("--admin", action="store_true", help="invite: to the view of the whole review")


def _review(arguments: argparse.Namespace) -> int:
    doing = {
        "serve": _serve,
        "invite": _invite,
        "revoke": _revoke,
        "withdraw": _withdraw,
        "status": _status,
        "export": _export,
        "checks": _checks,
        "publish": publish_command,
        "collect": collect_command,
    }
    if arguments.action not in doing:
        raise UsageError(f"unknown action {arguments.action!r}: choose one of {', '.join(doing)}")
    from flows.cli.progress import TerminalDisplay
    from flows.cli.terminal import messages
    from flows.settings import open_store

    doing[arguments.action](arguments, open_store(arguments.store, TerminalDisplay(messages())))
    return DONE


def _serve(arguments: argparse.Namespace, store: Any) -> None:
    from flows.cli.terminal import messages
    from flows.reviewing.page import PageSettings, invite, serve

    _expect(arguments, 0, "nothing")
    named = ("host", "port", "base_url", "queue", "page_size", "lease_minutes", "checks", "repeats", "pass_mark")
    settings = PageSettings(**{name: getattr(arguments, name) for name in named})
    say: Callable[[str], None] = lambda line: messages().print(line, soft_wrap=True)  # noqa: E731
    say(f"the page answers at {settings.address}; Ctrl-C ends it")
    say("invite people with: python -m flows review invite NAME")
    say(f"overview: {invite(store, 'admin', days=arguments.days, admin=True, address=settings.address)}")
    serve(store, settings)
    say("the page has ended: every answer is kept; run the same command again to go on")


def _invite(arguments: argparse.Namespace, store: Any) -> None:
    from flows.reviewing.page import invite

    _expect(arguments, 1, "the NAME of a person")
    links = {
        name: invite(store, name, days=arguments.days, admin=arguments.admin, address=arguments.base_url)
        for name in arguments.names
    }
    lines = [link if len(links) == 1 else f"{name}: {link}" for name, link in links.items()]
    print_result(links, lines, json=arguments.json)


def _revoke(arguments: argparse.Namespace, store: Any) -> None:
    from flows.reviewing.page import revoke

    _expect(arguments, 1, "the NAME of a person")
    ended = {name: revoke(store, name) for name in arguments.names}
    print_result(ended, [f"{name}: {count} invitations revoked" for name, count in ended.items()], json=arguments.json)


def _withdraw(arguments: argparse.Namespace, store: Any) -> None:
    from flows.reviewing.page import withdraw

    _expect(arguments, 1, "the NAME of a person")
    counts = {name: withdraw(store, name) for name in arguments.names}
    print_result(counts, [f"{name}: {count} answers set aside" for name, count in counts.items()], json=arguments.json)


def _status(arguments: argparse.Namespace, store: Any) -> None:
    from dataclasses import asdict

    _expect(arguments, 0, "nothing")
    states = store.queue.states()
    lines = [
        f"{one.queue}: {one.questions} {one.kind} questions {one.state}, {one.given} of {one.wanted} votes given"
        for one in states
    ]
    print_result([asdict(one) for one in states], lines or ["no question has been asked yet"], json=arguments.json)


def _export(arguments: argparse.Namespace, store: Any) -> None:
    from flows.reviewing.page import export

    _expect(arguments, 1, "the CSV file to write")
    path = Path(arguments.names[0])
    try:
        export(store, path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path} ({error.strerror}): give a file in a folder that can be written"
        ) from None
    print_result(str(path), [str(path)], json=arguments.json)


def _checks(arguments: argparse.Namespace, store: Any) -> None:
    from flows.reviewing.page import add_checks

    if len(arguments.names) != 2:
        raise UsageError("review checks takes DATASET and a CSV file with the columns feature, id and answer")
    count = add_checks(store, arguments.names[0], Path(arguments.names[1]), arguments.queue or "main")
    print_result(count, [f"{count} attention checks in queue {arguments.queue or 'main'}"], json=arguments.json)


def _expect(arguments: argparse.Namespace, fewest: int, what: str) -> None:
    if len(arguments.names) < fewest or (fewest == 0 and arguments.names):
        raise UsageError(f"review {arguments.action} takes {what}, not {' '.join(arguments.names)!r}")
