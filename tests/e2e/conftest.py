from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import MISSING, find_chromium, running_chromium

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient


@pytest.fixture(scope="module")  # while it is open, its event loop runs in this thread and no other can
def chromium() -> Iterator[Browser]:
    """One Chromium per test module; a test takes a context of its own. Without Chromium it skips, and fails in CI."""
    executable = find_chromium()
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with running_chromium(executable) as browser:
        yield browser


@pytest.fixture
def prefect_client(prefect_url: str) -> Iterator[SyncPrefectClient]:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    password = os.environ["PREFECT_API_AUTH_STRING"]
    settings = {PREFECT_API_URL: prefect_url, PREFECT_API_AUTH_STRING: password}
    with temporary_settings(settings), SyncPrefectClient(prefect_url, auth_string=password) as opened:
        yield opened
