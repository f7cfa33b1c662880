from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import MISSING, find_chromium, running_chromium


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
