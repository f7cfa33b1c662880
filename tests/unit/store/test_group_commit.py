"""Writes of several threads in one transaction: each gets its own result, and fails alone unless none could succeed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from store.transactions import BatchExecutor, GroupCommit, Work

NO_CONNECTION = cast("Connection", None)


class Book:
    """Transactions that note what was committed together; the first waits until it is told to go on."""

    def __init__(self) -> None:
        self.committed: list[Any] = []
        self.may_go_on = threading.Event()
        self.begun = threading.Event()

    def transact(self, work: Work) -> Any:
        if not self.begun.is_set():
            self.begun.set()
            self.may_go_on.wait(120)
        result = work(NO_CONNECTION)
        self.committed.append(result)
        return result


def returning(value: object) -> Work:
    return lambda _connection: value


def failing(_connection: Connection) -> None:
    raise ValueError("this one only")


def test_what_comes_while_another_is_written_is_written_together_and_a_failure_is_nobody_elses() -> None:
    book = Book()
    together = GroupCommit(book.transact)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(together.write, returning("first"))
        assert book.begun.wait(120)
        good = [pool.submit(together.write, returning(number)) for number in range(5)]
        bad = pool.submit(together.write, failing)
        while len(together._queue) < 6:
            pass
        book.may_go_on.set()
        assert first.result() == "first"
        assert [one.result() for one in good] == list(range(5))
        with pytest.raises(ValueError, match="this one only"):
            bad.result()
    assert sorted(map(str, book.committed[1:])) == [f"[{number}]" for number in range(5)], (
        "each alone after the failure"
    )


def test_five_that_wait_are_one_transaction() -> None:
    book = Book()
    together = GroupCommit(book.transact)
    with ThreadPoolExecutor(8) as pool:
        pool.submit(together.write, returning("first"))
        assert book.begun.wait(120)
        waiting = [pool.submit(together.write, returning(number)) for number in range(5)]
        while len(together._queue) < 5:
            pass
        book.may_go_on.set()
        assert [one.result() for one in waiting] == list(range(5))
    assert [len(batch) for batch in book.committed] == [1, 5]


def test_an_interrupt_of_the_thread_that_writes_leaves_the_others_to_go_on() -> None:
    book = Book()
    together = GroupCommit(book.transact)

    def interrupted(_connection: Connection) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(together.write, interrupted)
        assert book.begun.wait(120)
        second = pool.submit(together.write, returning("second"))
        while not together._queue:
            pass
        book.may_go_on.set()
        with pytest.raises(KeyboardInterrupt):
            first.result()
        assert second.result() == "second"
    assert together.write(returning("third")) == "third"


def test_an_error_that_each_would_meet_alone_fails_all_at_once() -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    tried: list[int] = []

    def unreachable(items: list[int]) -> list[int]:
        tried.append(len(items))
        begun.set()
        may_go_on.wait(120)
        raise ConnectionError("nobody answers")

    together = BatchExecutor(unreachable, fails_all=(ConnectionError,))
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(together.put, 0)]
        assert begun.wait(120)
        waiting += [pool.submit(together.put, number) for number in range(1, 6)]
        while len(together._queue) < 5:
            pass
        may_go_on.set()
        assert all(isinstance(one.exception(), ConnectionError) for one in waiting)
    assert tried == [1, 5]


def test_after_several_at_once_the_first_waits_for_the_others() -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    done: list[list[int]] = []

    def note(items: list[int]) -> list[int]:
        if not done:
            begun.set()
            assert may_go_on.wait(120)
        done.append(items)
        return items

    together = BatchExecutor(note, delay=120.0)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(together.put, 0)]
        assert begun.wait(120)
        waiting += [pool.submit(together.put, number) for number in (1, 2)]
        while len(together._queue) < 2:
            pass
        may_go_on.set()
        assert [one.result() for one in waiting] == [0, 1, 2], "alone before: nobody waits longer than for the commit"
        together._delay = 0.5
        assert together.put(3) == 3, "nobody comes"
        assert together.put(4) == 4
    assert [len(items) for items in done] == [1, 2, 1, 1]


def test_a_first_thread_that_is_interrupted_while_it_waits_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    together = BatchExecutor[int, int](list, delay=120.0)
    together._were_several = True
    waits, may_interrupt = threading.Event(), threading.Event()
    wait = threading.Event.wait

    def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
        if timeout != together._delay:
            return wait(event, timeout)
        waits.set()
        assert wait(may_interrupt, 60)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(threading.Event, "wait", interrupted)
        first = pool.submit(together.put, 1)
        assert wait(waits, 60)
        second = pool.submit(together.put, 2)
        while len(together._queue) < 2:
            pass
        may_interrupt.set()
        with pytest.raises(KeyboardInterrupt):
            first.result()
        assert second.result() == 2
