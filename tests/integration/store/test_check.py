"""`store check` on both databases: what is as it was written passes, whatever was altered is named."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.integration.conftest import Clock
from tests.support.filled_stores import SCOPE, keep, labels, recorded
from tests.support.store_steps import LEASE, begin, claim
from tests.support.stored_answers import every_answer
from twothirds.flows.cli.app import main
from twothirds.flows.cli.store_check import MAX_PROBLEM_LINES, CheckResult, check
from twothirds.store import Store, StoreError

FIRST = "WHERE id = (SELECT min(id) FROM requests)"
SOME_KEY = "WHERE key = (SELECT key FROM questions ORDER BY key LIMIT 1)"
TAMPERINGS = {
    "question taken away": (f"DELETE FROM questions {SOME_KEY}", "12 answers, but 11 questions lead to them"),
    "question led astray": (f"UPDATE questions SET request = 77 {SOME_KEY}", "1 questions lead to no request"),
    "places exchanged": (f"UPDATE questions SET position = 1 - position {SOME_KEY}", "are not those of its oracle"),
    "content": (f"UPDATE requests SET content = checksum {FIRST}", "are no JSON objects"),
    "checksum": (f"UPDATE requests SET checksum = content {FIRST}", "are not what was written"),
    "count": (f"UPDATE requests SET answered = answered + 1 {FIRST}", "it has 12 answers, but 13 are counted"),
    "oracle": ("UPDATE oracles SET identity = replace(identity, 'simulated', 'emulated')", "the description of"),
    "cost": (f"UPDATE requests SET cost = cost + 1 {FIRST}", "120000 micro-dollars booked, but 120001 charged"),
    "booked": (f"UPDATE requests SET booked = booked - 1 {FIRST}", "120000 micro-dollars booked, but 119999 add up"),
    "budget": ("UPDATE runs SET booked = booked - 1", "119999 micro-dollars booked, but 120000 add up"),
    "state": (f"UPDATE requests SET state = 'sent' {FIRST}", "its state is not what was written"),
    "missing request": (f"DELETE FROM requests {FIRST}", "12 questions lead to no request"),
}


def tamper(store: Store, statement: str) -> None:
    with store.engine.execution_options(writes=True).begin() as connection:
        assert connection.execute(text(statement)).rowcount == 1


@pytest.mark.parametrize("what", TAMPERINGS)
def test_whatever_is_altered_by_hand_is_named(store: Store, what: str) -> None:
    keep(store, 12)
    statement, line = TAMPERINGS[what]
    tamper(store, statement)
    problems = check(store).problems
    assert any(line in problem for problem in problems), problems
    assert all("\n" not in problem for problem in problems)


def test_many_problems_of_one_kind_are_counted_and_not_all_listed(store: Store) -> None:
    for _ in range(MAX_PROBLEM_LINES + 7):
        run, voter = recorded(store), len(store.runs.overview())
        assert len(list(run.ask([type(one)(one.feature, one.example, voter) for one in labels(1)]))) == 1
    with store.engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE requests SET checksum = content"))
    problems = check(store).problems
    assert len(problems) == MAX_PROBLEM_LINES + 1
    assert problems[-1] == "7 more: altered"


def test_what_is_no_problem_is_a_note(store: Store, clock: Clock) -> None:
    keep(store, 3)
    begin(store, "run-9", scope=SCOPE)
    claim(store, ["a", "b"], run_id="run-9")
    assert check(store).notes == []
    clock.now += 2 * LEASE
    found = check(store)
    assert found.problems == []
    assert [note.partition(":")[0] for note in found.notes] == ["2 requests of runs that have died hold 0.200000 USD"]


def test_the_command_says_what_is_wrong_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "store.sqlite")
    with Store.open(url) as store:
        keep(store, 12)
    assert main(["store", "check", "--store", url]) == 0
    size, last = capsys.readouterr().out.splitlines()
    assert size.startswith("size 0.")
    assert last == f"store {url}: 12 answers; every key, checksum and sum is right"
    with Store.open(url) as store:
        tamper(store, TAMPERINGS["budget"][0])
    assert main(["store", "check", "--store", url, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["answers"] == 12
    [problem] = said["problems"]
    assert problem.endswith(": 119999 micro-dollars booked, but 120000 add up")


@pytest.mark.parametrize(
    "arguments", [["check", "a"], ["backup"], ["restore"], ["mend"], ["check", "--store", "no.db"]]
)
def test_bad_input_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert not Path("no").exists()


def damage(content: bytes, seed: int) -> bytes:
    """Some bytes overwritten somewhere: in the header, or in a page."""
    chance = random.Random(seed)
    start = chance.randrange(100) if seed % 4 == 0 else chance.randrange(len(content) - 64)
    noise = chance.randbytes(chance.choice([1, 4, 16, 64]))
    return content[:start] + noise + content[start + len(noise) :]


def verdicts_of(path: Path) -> dict[str, Any]:
    with Store.open(str(path)) as store:
        return {one.key: one.answer for one in every_answer(store)}


def refusal(path: Path) -> str | None:
    try:
        Store.open(str(path)).close()
    except StoreError as refused:
        return str(refused)
    return None


@pytest.mark.parametrize("files", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_damaged_bytes_are_refused_or_found_or_hit_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: int
) -> None:
    """Files with bytes overwritten at random. None is ever believed where an answer is not what it was."""
    path = tmp_path / "store.sqlite"
    with Store.open(str(path)) as store:
        for voter in range(5):
            asked = [type(one)(one.feature, one.example, voter) for one in labels(400)]
            assert len(list(recorded(store).ask(asked))) == 400
    good, kept = path.read_bytes(), verdicts_of(path)
    counts = {"refused": 0, "found": 0, "harmless": 0}
    for seed in range(files):
        path.write_bytes(damage(good, seed))
        before = path.read_bytes()
        refused = refusal(path)
        if refused is not None:
            assert "\n" not in refused
            assert path.read_bytes() == before
            counts["refused"] += 1
            continue
        status = main(["store", "check", "--store", str(path)])
        said = capsys.readouterr().err
        assert "Traceback" not in said
        if status == 2:  # the schema itself is damaged where opening does not look
            assert [line for line in said.splitlines() if line.startswith("error: ") and path.name in line], said
        else:
            assert status in (0, 1)
        if status == 0:
            assert verdicts_of(path) == kept
        counts[("harmless", "found", "refused")[status]] += 1
    assert counts["refused"] >= files // 6, counts
    assert counts["found"] >= files // 12, counts


@pytest.mark.slow
def test_the_memory_of_a_check_does_not_grow_with_the_store(tmp_path: Path) -> None:
    import tracemalloc

    peaks = []
    with Store.open(str(tmp_path / "store.sqlite")) as store:
        for voters in (20, 80):  # more than one page of requests
            oracle = recorded(store)
            questions = [type(one)(one.feature, one.example, voter) for one in labels(400) for voter in range(voters)]
            assert sum(1 for _ in oracle.ask(questions)) == 400 * voters
            tracemalloc.start()
            assert check(store) == CheckResult(answers=400 * voters)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
