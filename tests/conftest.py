"""What tests share: an environment of their own, and one Prefect server per worker for those that need it."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.support.fake_openai import FakeOpenAI
    from tests.support.review_site import Site
    from tests.support.studio_site import StudioSite

PATIENT = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])  # with a busy machine
# The same examples everywhere, so that what passed once passes; more of them, others each time, by `make test-slow`.
settings.register_profile("suite", PATIENT, derandomize=True, max_examples=25)
settings.register_profile("search", PATIENT, derandomize=False)
settings.load_profile("suite")

for name in [name for name in os.environ if name.startswith("PREFECT_")]:
    del os.environ[name]  # the user's own server and profile are not for tests
os.environ.update(HF_HUB_OFFLINE="1", DO_NOT_TRACK="1", PREFECT_SERVER_ANALYTICS_ENABLED="false")
os.environ["TWOTHIRDS_SERVER_MINUTES"] = "0.05"  # no server goes on for long when a test has ended
# Nothing is fetched from the web, and every HTTP client reads the authorities that it trusts: one is read soonest.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "support" / "one_certificate.pem")

MEMORY, ROOM = Path("/dev/shm"), 6 << 30


def _keep_files_in_memory() -> None:
    """Where there is room: a store waits for the disk at every commit. PostgreSQL and other processes follow."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    found = os.statvfs(MEMORY)
    executable = not found.f_flag & os.ST_NOEXEC  # what tests compile is loaded from there
    if executable and found.f_bavail * found.f_frsize > ROOM and os.access(MEMORY, os.W_OK):
        tempfile.tempdir = os.environ["TMPDIR"] = str(MEMORY)


_keep_files_in_memory()
gc.disable()  # while tests are collected: whatever is imported stays


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # else Python looks through all of it again and again
    gc.enable()
    if getattr(session.config.option, "loadgroup", False):  # set in the workers of pytest-xdist
        apart = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        if apart:
            raise pytest.UsageError(f"{apart[0]} is not grouped: this pytest-xdist does not fit this pytest")


SHARED = ("prefect_url", "chromium")  # costly to start: the tests that need one run in the same worker


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        group = next((name for name in SHARED if name in getattr(item, "fixturenames", ())), None) or _group(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str | None:
    """What is imported or made once for a whole module need not be so in every worker."""
    module = getattr(item, "module", None)
    if any(getattr(one, "__module__", "") == "tests.support.tiny_models" for one in vars(module).values()):
        return "transformers"
    made = getattr(item, "_fixtureinfo", None)
    scopes = [fixture[-1].scope for fixture in made.name2fixturedefs.values()] if made else []
    return str(item.path) if "module" in scopes else None


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing is read from or written to the user's folders."""
    from tests.support.prefect_home import SHARED as SHARED_FOLDER

    home, base = tmp_path_factory.mktemp("home"), tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PREFECT_HOME"):
            patch.setenv(variable, str(home / variable.lower()))
        patch.setenv(SHARED_FOLDER, str(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base))
        yield


@pytest.fixture(scope="session")
def prefect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Named in the environment for other processes, and kept for this one, which may have read its settings already."""
    from tests.support.prefect_home import prefect_home
    from twothirds.flows.prefect_api.environment import prefect_environment, state_folder
    from twothirds.flows.prefect_api.servers import NOTE, PASSWORD, own_server

    os.environ.update(prefect_environment())
    prefect_home(Path(os.environ["PREFECT_HOME"]))
    with own_server(Path(tmp_path_factory.mktemp("server"))) as server, pytest.MonkeyPatch.context() as patch:
        password = server.password.get_secret_value()
        patch.setenv("PREFECT_API_URL", server.url)
        patch.setenv("PREFECT_API_AUTH_STRING", password)
        state_folder().mkdir(parents=True, exist_ok=True)
        (state_folder() / NOTE).write_text(json.dumps({"url": server.url}), encoding="utf-8")
        (state_folder() / PASSWORD).write_text(password, encoding="utf-8")
        yield server.url
        (state_folder() / NOTE).unlink()


@pytest.fixture
def sampling_number(monkeypatch: pytest.MonkeyPatch) -> str:
    """The random number of every new scope, known: samples for predicted labels are the same in every store."""
    monkeypatch.setattr("twothirds.store.runs.new_sampling_number", lambda: "1")
    return "1"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    """A model server that knows which words are in a text."""
    from tests.support.fake_openai import FakeModel, FakeOpenAI
    from tests.support.fake_openai.examples import WORDS

    with FakeOpenAI(FakeModel(WORDS)) as running:
        yield running


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Sixteen texts with those words."""
    from tests.support.fake_openai.examples import texts_table

    return texts_table(tmp_path, 16)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The review page of a new store, which shows nothing but what is asked."""
    from tests.support.review_site import running_site
    from twothirds.store import Store

    with Store.open(str(tmp_path / "store.sqlite")) as store, running_site(store, checks=0, repeats=0) as running:
        yield running


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[StudioSite]:
    """Over the runs that a test makes."""
    from tests.support.studio_site import own_studio

    with own_studio(tmp_path) as running:
        yield running
