"""How runs end: one table for Prefect's states, exit statuses and events, which docs/operations.md repeats."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from prefect.client.schemas.objects import StateType

from twothirds.flows.endings import ENDINGS, FAILED, Ending, ending_of, line_of
from twothirds.flows.errors import UsageError
from twothirds.models import AnswersPending, AnswersUnusable, BudgetExhausted, OracleLost, OracleUnavailable, ServerAway
from twothirds.reports.run import RunError, TableBusy
from twothirds.reports.versions import ContractViolated
from twothirds.sources import DatasetError, DatasetMissing
from twothirds.store import StoreFull, StoreUnavailable
from twothirds.tasks.ask import without_tracebacks

ROOT = Path(__file__).parents[3]
SHARED = {1}  # the status of what has no status of its own


def documented() -> list[Ending]:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \((\w+)\) \| (\d+) \| `([\w.-]+)` \| (yes|no) \|", page, re.MULTILINE)
    return [Ending(kind.upper(), name, int(status), event, again == "yes") for name, kind, status, event, again in rows]


def test_the_page_has_the_table_of_the_program() -> None:
    assert documented() == list(ENDINGS)


def test_no_two_endings_are_worded_alike() -> None:
    assert len({one.name for one in ENDINGS}) == len({one.event for one in ENDINGS}) == len(ENDINGS)
    own = [one.status for one in ENDINGS if one.status not in SHARED]
    assert len(set(own)) == len(own)
    assert {one.type for one in ENDINGS} <= {kind.value for kind in StateType}
    assert all(re.fullmatch(r"[A-Za-z]+", one.name) for one in ENDINGS), "Prefect's event is prefect.flow-run.NAME"


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (AnswersPending("3 questions wait"), "Paused"),
        (OracleLost.leaving(Path("out"), "away"), "Partial"),
        (ServerAway("away"), "ServerDown"),
        (OracleUnavailable("the key is refused"), "BadInput"),
        (AnswersUnusable("3 of 3"), "AnswersUnusable"),
        (BudgetExhausted("a probe costs more"), "BadInput"),
        (DatasetMissing("there is no data set"), "DatasetMissing"),
        (DatasetError("no column"), "BadInput"),
        (TableBusy("another run"), "TableBusy"),
        (ContractViolated("3 rows"), "ContractViolated"),
        (RunError("damaged"), "BadInput"),
        (StoreUnavailable("locked"), "StoreUnavailable"),
        (StoreFull("its disk is full"), "MachineFull"),
        (UsageError("--votes"), "BadInput"),
        (ValueError("a defect"), "Failed"),
    ],
)
def test_each_error_has_its_ending(error: Exception, name: str) -> None:
    assert ending_of(error).name == name


def test_a_line_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    assert "secret" not in line_of(ServerAway("the server says: sk-very-secret-0123456789\nis\x1b[31m wrong"))


def test_only_a_defect_is_logged_with_its_traceback() -> None:
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign,assignment]
    log = logging.getLogger("prefect.task_runs")
    log.addHandler(handler)
    try:
        without_tracebacks()
        without_tracebacks()
        for error in (ServerAway("away"), ValueError("a defect")):
            try:
                raise error
            except Exception:
                log.exception("it failed", extra={"send_to_api": False})
    finally:
        log.removeHandler(handler)
    assert [bool(record.exc_info) for record in seen] == [False, True]
    assert ending_of(ValueError()) is FAILED
