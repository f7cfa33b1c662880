"""The question before money is spent, on a terminal: yes goes on within the budget, no and Ctrl-C spend nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from tests.support.fake_openai import CHAT, FakeOpenAI
from twothirds.flows.cli.money import ask_on_terminal
from twothirds.flows.cli.terminal import terminal_events
from twothirds.flows.errors import UsageError
from twothirds.flows.estimate import Estimate, agreed_budget

SECONDS = 60
CTRL_C = b"\x03"
OWN_TERMINAL = """
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("twothirds", run_name="__main__", alter_sys=True)
"""


def read_until(terminal: int, words: bytes) -> bytes:
    """What the terminal shows until it has shown this, or the command has ended."""
    shown, until = b"", time.monotonic() + SECONDS
    while words not in shown and time.monotonic() < until:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
    return shown


@pytest.mark.parametrize(("typed", "status", "said"), [(b"n\n", 2, "nothing was asked or spent"), (CTRL_C, 130, "")])
def test_who_says_no_spends_nothing(
    server: FakeOpenAI, dataset: Path, tmp_path: Path, typed: bytes, status: int, said: str
) -> None:
    ours, theirs = pty.openpty()
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=0.15,0.60"
    places = ["--store", str(tmp_path / "store.sqlite"), "--out", str(tmp_path / "table")]
    command = ["enrich", str(dataset), "--features", "cat: A cat.", "--oracle", oracle, *places]
    # A session of its own, in which the terminal is the controlling one: otherwise Ctrl-C is a letter like others.
    words = [sys.executable, "-c", OWN_TERMINAL, *command]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        shown = read_until(ours, b"go on? [y/N]")
        assert b"openai:gpt-4o-mini will likely cost" in shown
        os.write(ours, typed)
        after = read_until(ours, b"no such words")
        assert process.wait(SECONDS) == status
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert said in " ".join(after.decode().split())
    assert b"Traceback" not in after
    assert server.count(CHAT) == 0
    assert not (tmp_path / "table" / "enrich.json").exists()


@pytest.mark.parametrize("typed", [b"y\n", b"YES\n", b"\n"])
def test_who_says_yes_gets_the_highest_price_as_a_budget(typed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Estimate("texts", "openai:gpt-4o-mini", 12, 900_000, 2_000_000, questions=10, most_questions=20)
    ours, theirs = pty.openpty()
    with open(theirs, closefd=False) as stdin, open(theirs, "w", closefd=False) as stderr:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        os.write(ours, typed)
        agreed = partial(
            agreed_budget,
            lambda: expected,
            budget=None,
            oracles=["openai:gpt-4o-mini"],
            agree=ask_on_terminal(yes=False, events=terminal_events()),
            events=terminal_events(),
        )
        if typed == b"\n":
            with pytest.raises(UsageError, match="nothing was asked or spent"):
                agreed()
        else:
            assert agreed() == Decimal(2)
        monkeypatch.undo()
    os.close(theirs)
    shown = read_until(ours, b"no such words")
    os.close(ours)
    assert b"will likely cost 0.90 USD, at most 2.00 USD" in shown
    assert shown.count(b"go on? [y/N]") == 1
