"""Many people at once, and a server that dies among them."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

import httpx
import pytest

from flows.reviewing import invite
from models.human import HumanOracle
from models.oracle import AnswersPending, Feature, Label, Question
from store import Store
from tests.made import texts
from tests.review_site import free_port, start_page

VOTES = 3
SLOWEST_PAGE = 0.3  # seconds, of 99 in 100


@dataclass
class Crowd:
    """People who answer over HTTP until nothing is left, and remember what the server said it had saved."""

    address: str
    think: float  # seconds over a page of twelve, about half more or less
    acknowledged: list[tuple[str, str, str]] = field(default_factory=list)  # who, which lease, what
    seconds: list[float] = field(default_factory=list)  # each page took
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, name: str, link: str) -> None:
        chance = Random(name)
        with httpx.Client(base_url=self.address, timeout=30) as client:
            time.sleep(chance.random() * self.think)  # they come within the time that a page takes
            self._patiently(client, "GET", link)
            page = self._patiently(client, "GET", "/")
            while leases := re.findall(r'name="has" value="(\d+)"', page):
                time.sleep(self.think * (0.5 + chance.random()))
                has = [lease for lease in leases if chance.random() < 0.3]
                csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
                self._patiently(client, "POST", "/answer", {"csrf": csrf, "lease": leases, "has": has})
                with self.lock:
                    self.acknowledged += [(name, lease, "yes" if lease in has else "no") for lease in leases]
                page = self._patiently(client, "GET", "/")

    def _patiently(self, client: httpx.Client, method: str, address: str, form: dict[str, object] | None = None) -> str:
        """As a person does whose page did not load: try again."""
        for _ in range(200):
            began = time.monotonic()
            try:
                reply = client.request(method, address, data=form)
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            assert reply.status_code in (200, 303), reply.text
            with self.lock:
                self.seconds.append(time.monotonic() - began)
            return reply.text
        raise AssertionError("the page did not come back")


def ask(store: Store, questions: int) -> HumanOracle:
    features = [Feature(f"feature {letter}") for letter in "abcdefghij"]
    examples = texts(questions // len(features))
    wanted: list[Question] = [Label(f, e, voter) for f in features for e in examples for voter in range(VOTES)]
    with pytest.raises(AnswersPending, match=f"^{questions} questions wait for {VOTES} votes each"):
        list(HumanOracle(store.queue).ask(wanted))
    return HumanOracle(store.queue)


def assert_exact(store: Store, crowd: Crowd, questions: int) -> None:
    """Every question has its votes, from different people, and every acknowledged answer is there, word for word."""
    kept = {(row["by"], str(row["id"]), row["answer"]["verdict"]): row for row in store.queue.records()}
    assert set(crowd.acknowledged) <= set(kept)
    votes = Counter(row["item"] for row in kept.values() if row["state"] == "given" and row["purpose"] == "vote")
    assert len(votes) == questions
    assert set(votes.values()) == {VOTES}
    pairs = Counter((row["item"], row["by"]) for row in kept.values() if row["purpose"] == "vote")
    assert set(pairs.values()) == {1}
    assert store.queue.waiting() == []


def run_crowd(store: Store, crowd: Crowd, people: int) -> None:
    links = {f"person {n}": invite(store, f"person {n}", days=1, address=crowd.address) for n in range(people)}
    with ThreadPoolExecutor(people) as pool:
        for done in [pool.submit(crowd.work, name, link) for name, link in links.items()]:
            done.result()


def percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[int(share * (len(seconds) - 1))]


def many_people_at_once(url: str, people: int, questions: int, think: float) -> Crowd:
    port = free_port()
    with Store.open(url) as store:
        ask(store, questions)
        page = start_page(url, port)
        crowd = Crowd(f"http://127.0.0.1:{port}", think)
        try:
            run_crowd(store, crowd, people)
        finally:
            page.kill()
            page.communicate()
        assert_exact(store, crowd, questions)
    print(f"{len(crowd.seconds)} pages, 99 % within {1000 * percentile(crowd.seconds, 0.99):.0f} ms")
    return crowd


def test_several_people_at_once_fill_every_place_exactly(store_url: str) -> None:
    many_people_at_once(store_url, people=12, questions=200, think=0.05)


@pytest.mark.slow
def test_fifty_people_answer_two_thousand_questions_quickly(store_url: str) -> None:
    crowd = many_people_at_once(store_url, people=50, questions=2000, think=3.0)
    assert percentile(crowd.seconds, 0.99) < SLOWEST_PAGE


def test_a_page_that_is_killed_and_restarted_loses_no_acknowledged_answer(store_url: str) -> None:
    port = free_port()
    with Store.open(store_url) as store:
        ask(store, 120)
        page = start_page(store_url, port)
        crowd = Crowd(f"http://127.0.0.1:{port}", think=0.02)
        working = threading.Thread(target=run_crowd, args=(store, crowd, 6))
        working.start()
        try:
            for wanted in (40, 160):
                while len(crowd.acknowledged) < wanted and working.is_alive():
                    time.sleep(0.005)
                page.send_signal(signal.SIGKILL)
                page.communicate()
                page = start_page(store_url, port)
            working.join()
        finally:
            page.kill()
            page.communicate()
        assert_exact(store, crowd, 120)
