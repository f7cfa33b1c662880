"""What a run does when Prefect's API fails: which errors count, and that it is reported once."""

from __future__ import annotations

from concurrent.futures import Future

import httpx
import pytest
from prefect import task
from prefect.exceptions import Abort
from prefect.settings import PREFECT_API_URL, temporary_settings

from tests.support.heard import Heard
from twothirds.flows.prefect_api.executor import TaskExecutor, is_failure_of_prefect

URL = "http://127.0.0.1:4200/api"


def failed(url: str) -> httpx.ConnectError:
    return httpx.ConnectError("All connection attempts failed", request=httpx.Request("POST", url))


def wrapped(error: Exception) -> Exception:
    """As Prefect raises what went wrong while it asked for a slot."""
    outer = RuntimeError("Unable to acquire concurrency slots")
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "of_prefect"),
    [
        (failed(f"{URL}/task_runs/"), True),
        (wrapped(failed(f"{URL}/v2/concurrency_limits")), True),
        (httpx.ReadTimeout("from a worker of a cluster"), True),
        (failed("https://huggingface.co/api/models"), False),
        (ValueError("a defect"), False),
        (wrapped(ValueError("a defect")), False),
    ],
)
def test_only_requests_to_prefect_count(error: Exception, of_prefect: bool) -> None:
    with temporary_settings({PREFECT_API_URL: URL}):
        assert is_failure_of_prefect(error) is of_prefect


def test_it_is_reported_once_and_tasks_become_plain_functions() -> None:
    said, asked = Heard(), list[int]()

    def tell() -> None:
        asked.append(1)
        raise failed(f"{URL}/artifacts/")

    @task
    def double(number: int) -> int:
        return 2 * number

    executor = TaskExecutor(said.stream)
    with temporary_settings({PREFECT_API_URL: URL}):
        assert executor.tell(tell) is None
        assert executor.tell(tell) is None
        assert executor.call(double, 21) == 42
    assert (executor.lost, len(asked)) == (True, 1)
    [line] = said.said
    assert line == (
        f"the Prefect server at {URL} no longer answers (All connection attempts failed): "
        "the run goes on without it, and its history ends here"
    )


def test_other_errors_and_signals_pass() -> None:
    def defect() -> None:
        raise ValueError("a defect")

    def suspended() -> None:
        raise Abort("suspended")

    executor = TaskExecutor()
    with pytest.raises(ValueError, match="a defect"):
        executor.tell(defect)
    with pytest.raises(Abort):
        executor.tell(suspended)
    assert not executor.lost


def test_what_was_begun_before_is_still_waited_for() -> None:
    executor = TaskExecutor()
    executor.lost = True
    submitted: Future[str] = Future()
    submitted.set_result("begun")
    assert executor.result_of(submitted, lambda: "again") == "begun"
