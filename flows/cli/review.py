"""The command `review`: serve the page, invite people, see how far they are, and ask on Mechanical Turk.

On Mechanical Turk nothing is posted or paid without a printed estimate and --yes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from twothirds.flows.cli.options import STORE, StoreOutput, action, command_group, flag, option
from twothirds.flows.cli.terminal import messages
from twothirds.flows.errors import UsageError
from twothirds.flows.settings import account_name, open_store, read_usd

if TYPE_CHECKING:
    from twothirds.store import Store

review = command_group("review", "review invite Ann; twothirds review")
BaseUrl = Annotated[str | None, option("URL", "address under which people reach the page, if not host and port")]
Queue = Annotated[str | None, option("QUEUE", "only the questions of --oracle human:QUEUE")]
Days = Annotated[float, option("DAYS", "how long the invitation lasts")]
PageSize = Annotated[int, option("N", "labels on one page")]
Production = Annotated[bool, flag("for real; without it, in the sandbox")]
Yes = Annotated[bool, flag("do it; without, it is only shown")]
People = Annotated[str, option("NAME", "names of people")]


@action(review, "review serve --host 0.0.0.0 --base-url https://review.example.org")
@review.default
def serve(
    *,
    host: Annotated[str, option("HOST", "address to listen at")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "port to listen at")] = 8765,
    base_url: BaseUrl = None,
    queue: Queue = None,
    page_size: PageSize = 12,
    lease_minutes: Annotated[float, option("MINUTES", "time for one page")] = 15.0,
    checks: Annotated[float, option("SHARE", "share of questions that are attention checks")] = 0.05,
    repeats: Annotated[float, option("SHARE", "share of questions that are asked twice")] = 0.05,
    pass_mark: Annotated[float, option("SHARE", "share of attention checks to pass")] = 0.8,
    training: Annotated[int, option("N", "agreed questions with feedback that a new reviewer answers first")] = 0,
    days: Days = 14.0,
    output: StoreOutput = STORE,
) -> None:
    """Serve the page on which people answer (the default)."""
    from twothirds.flows.reviewing import page

    opened = open_store(output.store)
    settings = page.PageSettings(
        host=host, port=port, base_url=base_url, queue=queue, page_size=page_size,
        lease_minutes=lease_minutes, checks=checks, repeats=repeats, pass_mark=pass_mark, training=training,
    )  # fmt: skip
    _say(f"the page answers at {settings.address}; Ctrl-C ends it")
    where = f" --store {output.store}" if output.store else ""
    _say(f"invite people with: twothirds review invite NAME{where}")
    _say(f"overview: {page.invite(opened, 'admin', days=days, admin=True, address=settings.address)}")
    page.serve(opened, settings)
    _say("the page has ended: every answer is kept; run the same command again to go on")


@action(review, "review invite Ann --days 3")
def invite(
    *names: People,
    days: Days = 14.0,
    admin: Annotated[bool, flag("to the view of the whole review")] = False,
    sender: Annotated[
        str | None, option("SENDER", "who invites, as the page tells them (default: this account)")
    ] = None,
    base_url: BaseUrl = None,
    output: StoreOutput = STORE,
) -> None:
    """Print a link for each person who may answer."""
    from twothirds.flows.reviewing import page

    opened, by = _named("invite", names, output.store), account_name() if sender is None else sender
    links = {name: page.invite(opened, name, days=days, admin=admin, address=base_url, by=by) for name in names}
    lines = [link if len(links) == 1 else f"{name}: {link}" for name, link in links.items()]
    output.print(links, lines)
    if base_url is None and not page.is_running(opened):
        where = f" --store {output.store}" if output.store else ""
        _say(f"the page is not running, and the links work only while it is: twothirds review{where}")


@action(review, "review revoke Ann")
def revoke(*names: People, output: StoreOutput = STORE) -> None:
    """End the invitations of people."""
    from twothirds.flows.reviewing import page

    opened = _named("revoke", names, output.store)
    ended = {name: page.revoke(opened, name) for name in names}
    output.print(ended, [f"{name}: {count} invitations revoked" for name, count in ended.items()])


@action(review, "review withdraw Ann --yes")
def withdraw(*names: People, yes: Yes = False, output: StoreOutput = STORE) -> None:
    """Set aside all answers of people, and take back the features that only they have named."""
    from twothirds.flows.reviewing import page

    opened = _named("withdraw", names, output.store)
    effects = {name: page.withdraw(opened, name, really=yes) for name in names}
    lines = [
        f"{name}: {effect.answers} answers set aside, {effect.reopened} questions asked again of others, "
        f"{effect.used} answers used by runs; features taken back: {', '.join(effect.features) or 'none'}"
        for name, effect in effects.items()
    ]
    output.print({name: asdict(effect) for name, effect in effects.items()}, lines)
    if not yes:
        _say("nothing was withdrawn: add --yes to do it")


@action(review, "review status")
def status(*, output: StoreOutput = STORE) -> None:
    """Show how many questions wait and how many votes were given."""
    states = open_store(output.store).queue.records.states()
    lines = [
        f"{state.queue}: {state.questions} {state.kind} questions {state.state}, "
        f"{state.given} of {state.wanted} votes given"
        for state in states
    ]
    output.print([asdict(state) for state in states], lines or ["no question has been asked yet"])


@action(review, "review export answers.csv")
def export(file: Annotated[str, option("FILE", "the CSV file to write")], /, *, output: StoreOutput = STORE) -> None:
    """Write all answers of people to a CSV file."""
    from twothirds.flows.reviewing import page

    path = Path(file)
    try:
        page.export(open_store(output.store), path)
    except OSError as error:
        remedy = "give a file in a folder that can be written"
        raise UsageError(f"cannot write {path} ({error.strerror}): {remedy}") from None
    output.print(str(path), [str(path)])


@action(review, "review checks datasets/faces checks.csv --queue main")
def checks(
    dataset: Annotated[str, option("DATASET", "the data set whose examples are checked")],
    file: Annotated[str, option("FILE", "a CSV file with the columns feature, id and answer")],
    /,
    *,
    queue: Annotated[str, option("QUEUE", "the queue of --oracle human:QUEUE")] = "main",
    id_column: Annotated[str | None, option("ID-COLUMN", "column of the ids, as in discover")] = None,
    text_column: Annotated[str | None, option("TEXT-COLUMN", "column of the texts, as in discover")] = None,
    image_column: Annotated[str | None, option("IMAGE-COLUMN", "column of the pictures, as in discover")] = None,
    output: StoreOutput = STORE,
) -> None:
    """Add attention checks: labels whose answer is known."""
    from twothirds.flows.reviewing.page import add_checks
    from twothirds.sources import Columns

    columns = Columns(id_column, text_column, image_column)
    entered = add_checks(open_store(output.store), dataset, Path(file), queue, columns)
    output.print(entered.count, [f"{entered.count} attention checks in queue {queue}"])
    for line in entered.remarks:
        _say(line)


@action(review, "review publish --mturk --reward 0.05 --cap 20")
def publish(
    *,
    mturk: Annotated[bool, flag("on Amazon Mechanical Turk")] = False,
    production: Production = False,
    reward: Annotated[str, option("USD", "USD per page of questions")] = "0.05",
    cap: Annotated[str | None, option("USD", "USD that all of it may cost, fees included")] = None,
    assignments: Annotated[int | None, option("N", "people per page (default: the votes missing)")] = None,
    lifetime_hours: Annotated[float, option("HOURS", "how long a task can be taken")] = 72.0,
    duration_minutes: Annotated[float, option("MINUTES", "time for one page")] = 30.0,
    approved_percent: Annotated[int, option("N", "of a worker's past assignments, at least")] = 95,
    locale: Annotated[str | None, option("CC", "country of the workers, e.g. US")] = None,
    qualification: Annotated[list[str] | None, option("ID", "type that workers must have; repeatable")] = None,
    queue: Queue = None,
    page_size: PageSize = 12,
    base_url: BaseUrl = None,
    yes: Yes = False,
    output: StoreOutput = STORE,
) -> None:
    """Post the questions that wait as paid tasks."""
    from twothirds.flows.reviewing.mturk import PRODUCTION, SANDBOX, HitTerms, plan_tasks
    from twothirds.flows.reviewing.mturk import publish as post
    from twothirds.flows.reviewing.page import ADDRESS, DEFAULT_ADDRESS

    if not mturk:
        raise UsageError("review publish: say where: --mturk")
    if cap is None:
        raise UsageError("--cap is missing: give the USD that all tasks together may cost")
    opened = open_store(output.store)
    terms = HitTerms(
        reward=read_usd(reward, "--reward"),
        cap=read_usd(cap, "--cap"),
        market=PRODUCTION if production else SANDBOX,
        assignments=assignments,
        lifetime_hours=lifetime_hours,
        duration_minutes=duration_minutes,
        approved_percent=approved_percent,
        locale=locale,
        qualifications=tuple(qualification or ()),
    )
    plan = plan_tasks(opened, terms, queue=queue, page_size=page_size)
    print(plan)
    if plan.tasks and not yes:
        print("nothing was posted: add --yes to post it")
    elif plan.tasks:
        address = base_url or opened.queue.people.remembered(ADDRESS) or DEFAULT_ADDRESS
        posted = post(opened, client_of(terms.market.endpoint), plan, address)
        print(f"{posted} tasks posted; collect their answers with: twothirds review collect")


@action(review, "review collect --bonus 0.10 --yes")
def collect(
    *,
    production: Production = False,
    bonus: Annotated[str | None, option("USD", "USD for every assignment that is approved")] = None,
    yes: Yes = False,
    output: StoreOutput = STORE,
) -> None:
    """Approve, pay and count what workers of Mechanical Turk handed in."""
    from twothirds.flows.reviewing import mturk, page

    opened, market = open_store(output.store), mturk.PRODUCTION if production else mturk.SANDBOX
    amount = read_usd(bonus, "--bonus") if bonus else None
    if amount is not None and (amount <= 0 or amount != round(amount, 2)):
        raise UsageError(f"--bonus {bonus}: give whole cents, at least 0.01")
    if amount is not None and not yes:
        people = sum(hit.terms["people"] for hit in opened.queue.mturk.hits() if hit.terms["market"] == market.name)
        print(f"a bonus of {amount:.2f} USD each for at most {people} assignments: add --yes to pay it")
        return
    result = mturk.collect(opened, client_of(market.endpoint), market.name, bonus=amount)
    if opened.queue.waits.ready_runs():
        page.resume(opened.queue)
    output.print(vars(result), result.lines())


def client_of(endpoint: str) -> Any:
    """Amazon's client; the usual AWS variables and profiles say who pays."""
    import boto3

    return boto3.client("mturk", region_name="us-east-1", endpoint_url=endpoint)


def studio(
    *folders: Annotated[str, option("FOLDER", "folders in which runs and tables are (default: runs and enriched)")],
    host: Annotated[str, option("HOST", "address to listen at")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "port to listen at")] = 8765,
    base_url: BaseUrl = None,
    days: Days = 14.0,
    output: StoreOutput = STORE,
) -> None:
    """Runs, their features and labels, and the review in one place. Open the link that it prints; invite editors and
    reviewers from there."""
    from twothirds.flows.reviewing.page import PageSettings
    from twothirds.flows.serving.app import StudioSettings, owner_link, serve_studio

    opened = open_store(output.store)
    page = PageSettings(host=host, port=port, base_url=base_url)
    settings = StudioSettings(folders, page, days) if folders else StudioSettings(page=page, days=days)
    _ = settings.folders  # says at once what is wrong with them
    _say(f"the studio answers at {settings.page.address}; Ctrl-C ends it")
    _say(f"your link, which is as good as a password: {owner_link(opened, settings)}")
    serve_studio(opened, settings, output.store or "")
    _say("the studio has ended; run the same command again to go on")


def _named(action: str, names: tuple[str, ...], url: str | None) -> Store:
    if not names:
        raise UsageError(f"review {action} takes the NAME of a person, not ''")
    return open_store(url)


def _say(line: str) -> None:
    messages().print(line, soft_wrap=True)
