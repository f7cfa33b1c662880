"""The review page: serve it, invite and revoke people, enter attention checks, export votes."""

from __future__ import annotations

import csv
import gc
import json
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twothirds.discovery import same_name
from twothirds.flows.errors import UsageError
from twothirds.flows.reviewing.mturk import PRODUCTION, SANDBOX
from twothirds.models import Feature, Label
from twothirds.models.people import check_of
from twothirds.models.prompting import clean, name_fault
from twothirds.reports import QualityTerms, ReviewerQuality, csv_lines, quality_of
from twothirds.sources import ANY, Columns, Example, load_dataset, printable_lines
from twothirds.store import Store
from twothirds.store.review import ADMIN, REVIEWER, Invitation, LeaseTerms, Queue, ReviewQuestion, Withdrawal
from twothirds.studio.review import LINK, SECRET, ReviewConfig, Signer, create_app

if TYPE_CHECKING:
    from fastapi import FastAPI

_log = logging.getLogger(__name__)
ADDRESS = "address"  # the name under which the store remembers where the page was last served
DEFAULT_ADDRESS = "http://127.0.0.1:8765"
DAY = 86_400.0
RESUME_SECONDS = 2.0
UNTOUCHED_SECONDS = 180.0  # after which a page that nobody has touched goes to another person
LISTENING = "listening"  # the name under which the store remembers host and port of the page
CONNECTIONS = 16
INTERVAL_SECONDS = 60.0  # of the log
MOST_OF_A_KIND = 5  # records in that time
MAX_KINDS = 1000


class FewOfAKind(logging.Filter):
    """Lets a few records of each kind through a minute: visitors must not be able to fill the disk with the log."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[tuple[Any, ...]] = Counter()
        self._began = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        if time.monotonic() - self._began > INTERVAL_SECONDS or len(self._seen) > MAX_KINDS:
            self._seen, self._began = Counter(), time.monotonic()
        error = record.exc_info[0] if record.exc_info else None
        kind = record.name, record.levelno, str(record.msg)[:80], error
        self._seen[kind] += 1
        if self._seen[kind] == MOST_OF_A_KIND:
            record.msg = f"{record.msg} (others like this one are not logged for up to a minute)"
        return self._seen[kind] <= MOST_OF_A_KIND


class PrintableFormatter(logging.Formatter):
    """What servers and libraries log may quote a visitor or a file, in tracebacks above all."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"printable": {"()": PrintableFormatter, "format": "%(levelname)s: %(message)s"}},
    "filters": {"few": {"()": FewOfAKind}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "printable", "filters": ["few"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}


@dataclass(frozen=True)
class PageSettings:
    host: str = "127.0.0.1"
    port: int = 8765
    base_url: str | None = None  # under which people reach it, if not host and port
    queue: str | None = None  # show questions of this queue only
    page_size: int = 12
    lease_minutes: float = 15.0
    checks: float = 0.05
    repeats: float = 0.05
    pass_mark: float = 0.8
    training: int = 0
    submit_addresses: tuple[str, ...] = (SANDBOX.submit, PRODUCTION.submit)

    def __post_init__(self) -> None:
        for name in ("checks", "repeats", "pass_mark"):
            if not 0 <= getattr(self, name) <= 1:
                flag = name.replace("_", "-")
                raise UsageError(f"--{flag} {getattr(self, name)} is not a share: give a value from 0 to 1")
        if not 1 <= self.page_size <= 100 or not 0 < self.lease_minutes <= 24 * 60:
            raise UsageError("--page-size must be from 1 to 100 and --lease-minutes from 0 to 1440")

        if not 0 <= self.training <= 100:
            raise UsageError(f"--training {self.training}: give a number of questions from 0 to 100")

    @property
    def address(self) -> str:
        return (self.base_url or f"http://{_reachable(self.host)}:{self.port}").rstrip("/")

    def config(self) -> ReviewConfig:
        terms = LeaseTerms(
            page_size=self.page_size,
            lease_seconds=60 * self.lease_minutes,
            queue=self.queue,
            checks=self.checks,
            repeats=self.repeats,
            untouched_seconds=UNTOUCHED_SECONDS,
            training=self.training,
        )
        marks = QualityTerms(pass_mark=self.pass_mark)

        def quality(records: Iterable[dict[str, Any]], consensus: dict[int, str]) -> ReviewerQuality:
            return quality_of(records, consensus, marks, now=time.time())

        return ReviewConfig(
            clean=clean,
            name_problem=name_fault,
            quality=quality,
            export=csv_lines,
            base_url=self.address,
            terms=terms,
            submit_addresses=self.submit_addresses,
        )


def make_app(store: Store, settings: PageSettings) -> FastAPI:
    return create_app(store.queue, settings.config())


def serve(store: Store, settings: PageSettings) -> None:
    """Serve the page until it is interrupted, and resume suspended runs as soon as their answers are there."""
    store.queue.people.remember(ADDRESS, settings.address)
    serve_app(store, settings, make_app(store, settings))


def serve_app(store: Store, settings: PageSettings, app: FastAPI) -> None:
    import uvicorn

    from twothirds.flows.reviewing.connections import backlog, bounded_protocol, most_open_files

    _assert_free(settings)
    store.queue.people.remember(LISTENING, json.dumps([_here(settings.host), settings.port]))
    _warm_up(store.queue, settings)
    with resuming(store.queue):
        uvicorn.run(
            app,
            host=settings.host,
            port=settings.port,
            log_config=LOGGING,
            log_level="warning",
            access_log=False,  # addresses hold links, and links are keys
            server_header=False,
            timeout_graceful_shutdown=2,
            http=bounded_protocol(most_open_files()),
            ws="none",
            backlog=backlog(most_open_files()),
        )


def _warm_up(queue: Queue, settings: PageSettings) -> None:
    """Open connections and build statements before the first visitor waits for them, and have the collector of garbage
    leave alone what stays for good."""
    no_person = 0
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(lambda _: queue.records.progress(no_person, settings.queue), range(4 * CONNECTIONS)))
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _assert_free(settings: PageSettings) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            raise UsageError(f"cannot listen at {where} ({error.strerror}): give another --port or --host") from None


@contextmanager
def resuming(queue: Queue) -> Iterator[None]:
    """While the block runs, resume every suspended run whose questions are answered."""
    stopping = threading.Event()

    def look() -> None:
        while not stopping.wait(RESUME_SECONDS):
            try:
                if queue.waits.ready_runs():
                    resume(queue)
            except Exception:  # the Prefect API is away for a moment: it is asked again
                _log.exception("a suspended run could not be resumed")

    thread = threading.Thread(target=look, name="resume", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()


def resume(queue: Queue) -> list[str]:
    """Resume what can go on, at the Prefect API this account is pointed at; nothing where there is none."""
    from prefect.settings import get_current_settings

    from twothirds.flows.prefect_api.connection import pointing_at
    from twothirds.flows.prefect_api.environment import state_folder
    from twothirds.flows.prefect_api.servers import kept_server
    from twothirds.flows.reviewing.suspension import resume_ready_runs

    pointed_at = get_current_settings().api.url
    running = kept_server(state_folder(), pointed_at)
    if running is None and not pointed_at:
        return []
    with pointing_at(running) if running else nullcontext():
        return resume_ready_runs(queue)


def _here(host: str) -> str:
    """Where a page that listens at this address is reached from the same machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not listened at


def _reachable(host: str) -> str:
    """As a link names it: one that stands for all addresses of this machine is none that a browser can open."""
    if _here(host) != host:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def is_running(store: Store) -> bool:
    """Whether the page answers where it was last served from this machine."""
    remembered = store.queue.people.remembered(LISTENING)
    if remembered is None:
        return False
    host, port = json.loads(remembered)
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def link_of(queue: Queue, invitation: Invitation, address: str | None = None) -> str:
    """The personal link of an invitation."""
    where = address or queue.people.remembered(ADDRESS) or DEFAULT_ADDRESS
    return f"{where.rstrip('/')}/i/{Signer(queue.people.secret(SECRET)).sign(invitation.id, LINK)}"


def invite(
    store: Store, name: str, *, days: float, admin: bool = False, address: str | None = None, by: str = ""
) -> str:
    """The link of a new invitation; the page tells who it is from."""
    called = clean(name)
    if not called or len(called) > 80:
        raise UsageError(f"NAME {name!r} is empty or longer than 80 characters: give the name of a person")
    if not 0 < days <= 366:
        raise UsageError(f"--days {days:g}: an invitation lasts more than 0 and at most 366 days")
    role = ADMIN if admin else REVIEWER
    return link_of(store.queue, store.queue.people.invite(called, role, days * DAY, clean(by)[:80]), address)


def revoke(store: Store, name: str) -> int:
    ended = store.queue.people.revoke(name)
    if not ended:
        invitations = store.queue.people.invitations()
        known = sorted({invitation.person.name for invitation in invitations if not invitation.revoked_at})
        raise UsageError(f"nobody called {name!r} has an invitation: {', '.join(known) or 'nobody'} has")
    return ended


def withdraw(store: Store, name: str, *, really: bool) -> Withdrawal:
    """Set a reviewer's answers aside and end their invitations, or only say what that would do."""
    person = store.queue.people.find(name)
    if person is None:
        raise UsageError(f"nobody called {name!r} has answered: `twothirds review export FILE` says who has")
    if not really:
        return store.queue.votes.preview_withdrawal(person.id)
    store.queue.people.revoke(name)
    return store.queue.votes.withdraw(person.id)


def export(store: Store, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(store.queue.records.answers()))


ANSWERS = {"yes": "yes", "1": "yes", "true": "yes", "no": "no", "0": "no", "false": "no"}


@dataclass(frozen=True)
class EnteredChecks:
    """How many attention checks were entered, and what keeps some of them from being asked."""

    count: int
    remarks: list[str]


def add_checks(store: Store, dataset: str, path: Path, queue: str, columns: Columns = ANY) -> EnteredChecks:
    """Enter the rows of a CSV file (feature, id, answer, optionally definition) as checks."""
    examples = {example.id: example for example in load_dataset(dataset, columns).examples}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path} ({error}): give a CSV file in UTF-8") from None
    checks = [_check(number, row, examples, path, queue) for number, row in enumerate(rows, start=2)]
    store.queue.questions.enqueue(checks)
    return EnteredChecks(len(checks), _unasked(store, [row["feature"] for row in rows], queue))


def _unasked(store: Store, named: list[str], queue: str) -> list[str]:
    """Of checks about features that nobody in the queue is asked about, when they will be."""
    queues = sorted({state.queue for state in store.queue.records.states() if state.state != "check"})
    if queues and queue not in queues:
        return [f"no question waits in queue {queue}, so these checks cannot be asked: there are {', '.join(queues)}"]
    asked = store.queue.records.features_asked(queue)
    lost = {
        name: named.count(name) for name in dict.fromkeys(named) if not any(same_name(name, other) for other in asked)
    }
    so_far = f" (so far: {', '.join(asked[:8])})" if asked else ""
    return [
        f"nobody is asked about {name!r} yet: {count} check{'s wait' if count > 1 else ' waits'} until a feature has "
        f"that name{so_far}"
        for name, count in lost.items()
    ]


def _check(number: int, row: dict[str, str], examples: dict[str, Example], path: Path, queue: str) -> ReviewQuestion:
    for column in ("feature", "id", "answer"):
        if not row.get(column):
            raise UsageError(f"{path}, line {number}: no {column!r}: the columns are feature, id and answer")
    if row["id"] not in examples:
        raise UsageError(f"{path}, line {number}: no example {row['id']!r} in the data set")
    if row["answer"].lower() not in ANSWERS:
        raise UsageError(f"{path}, line {number}: answer {row['answer']!r}: write yes or no")
    feature = Feature(row["feature"], row.get("definition") or "")
    return check_of(queue, Label(feature, examples[row["id"]]), ANSWERS[row["answer"].lower()])
