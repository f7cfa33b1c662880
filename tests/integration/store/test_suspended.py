"""PostgreSQL: a process that is suspended inside a transaction holds up the others for a while, not for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer
from tests.support.store_steps import begin, claim
from twothirds.store import Store, text_key
from twothirds.store.engine import LIMITS

SUSPENDED = """
import json, os, signal, sys
from twothirds.store import Store
import twothirds.store.engine, twothirds.store.requests
from twothirds.store.runs import lock_budget
from tests.support.store_steps import begin, claim
twothirds.store.engine.LIMITS["idle_in_transaction_session_timeout"] = "1s"
opened = Store.open(sys.argv[1], patience=0.5)
begin(opened, "run-1")
times = []

def lock_and_stop(connection, run):
    lock_budget(connection, run)
    times.append(1)
    if len(times) == 1:
        print("locked", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)

twothirds.store.requests.lock_budget = lock_and_stop
granted = claim(opened, ["a", "b"], owner="suspended").granted
print(json.dumps({"granted": [one.keys for one in granted], "tries": len(times)}), flush=True)
"""


def test_the_others_go_on_and_the_one_that_wakes_tries_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "lock_timeout", "200ms")
    monkeypatch.setattr("twothirds.store.engine._SILENT_SECONDS", 0.1)
    said: list[str] = []
    url = postgres.fresh_schema()
    with Store.open(url, say=said.append) as store:
        begin(store)
        sleeper = subprocess.Popen([sys.executable, "-c", SUSPENDED, url], stdout=subprocess.PIPE, text=True)
        try:
            assert sleeper.stdout is not None
            assert sleeper.stdout.readline() == "locked\n"
            os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
            began = time.monotonic()
            assert claim(store, ["a"], owner="awake").granted
            assert time.monotonic() - began < 20
            assert len(said) == 1
            assert "waiting for store" in said[0]
            assert "lock timeout" in said[0]
            time.sleep(1)
            sleeper.send_signal(signal.SIGCONT)
            result = json.loads(sleeper.communicate(timeout=30)[0])
            assert result == {"granted": [[text_key("b")]], "tries": 2}
        finally:
            sleeper.kill()
            sleeper.wait()
        assert store.check.problems() == []


def test_every_connection_has_the_limits(postgres: PostgresServer) -> None:
    with Store.open(postgres.fresh_schema()) as store, store.engine.connect() as connection:
        for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
            assert connection.exec_driver_sql(f"SHOW {setting}").scalar_one() == LIMITS[setting]


def test_a_file_that_a_suspended_process_holds_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite cannot end another process's transaction: the wait ends in one line that says what to do."""
    monkeypatch.setattr("twothirds.store.engine._PRAGMAS", {"synchronous": 3, "foreign_keys": 1, "busy_timeout": 50})
    monkeypatch.setattr("twothirds.store.engine._SILENT_SECONDS", 0.1)
    path, said = str(tmp_path / "store.sqlite"), list[str]()
    with Store.open(path) as other, Store.open(path, patience=1, say=said.append) as store:
        begin(store)
        with (
            other.engine.execution_options(writes=True).begin(),
            pytest.raises(Exception, match=r"stayed locked by another process .* end that process and run again"),
        ):
            claim(store, ["a"])
    assert [line.partition(" (")[0] for line in said] == [f"waiting for store {path}"]
