"""Who has which questions, how far people are, and what lies ahead of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Clock
from tests.support.asking import ask
from tests.support.made import texts
from tests.support.review_site import Site, Visitor, running_site
from twothirds.discovery.questions import Kind
from twothirds.flows.reviewing.page import UNTOUCHED_SECONDS
from twothirds.models.oracle import Compare, Feature, Label
from twothirds.models.people.human import HumanOracle, HumanTerms
from twothirds.store import Store

BEARD = Feature("beard", "hair on the chin")
TRIPLE = Compare(Kind.TWO_OF_THREE, texts(3))


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[Site]:
    """A page whose clock the test turns."""
    with (
        Store.open(str(tmp_path / "store.sqlite"), clock=clock) as store,
        running_site(store, checks=0, repeats=0) as site,
    ):
        yield site


def test_an_untouched_page_is_handed_on_and_a_touched_one_is_kept(timed: Site, clock: Clock) -> None:
    timed.ask([TRIPLE])
    ann, bob, boss = timed.visitor("ann"), timed.visitor("bob"), timed.visitor("boss", admin=True)
    ann.get()
    assert "unless touched" in boss.get("/admin").text
    clock.now += UNTOUCHED_SECONDS - 60
    assert not bob.get() or not bob.hidden("shown")
    assert ann.post("/touch", {}).status_code == 204
    clock.now += UNTOUCHED_SECONDS
    bob.get()
    assert bob.hidden("shown") == [], "somebody is at work on it"
    clock.now += 900
    bob.get()
    assert len(bob.hidden("shown")) == 3
    clock.now += UNTOUCHED_SECONDS + 1
    ann.get()
    assert len(ann.hidden("shown")) == 3, "nobody has touched it"


def test_the_owner_sees_who_has_questions_and_hands_them_on(site: Site) -> None:
    site.ask([TRIPLE])
    ann, bob, boss = site.visitor("ann"), site.visitor("bob"), site.visitor("boss", admin=True)
    ann.get()
    overview = boss.get("/admin").text
    assert "Who has questions now" in overview
    assert '<td><bdi>ann</bdi></td><td><bdi>main</bdi></td><td>two of three</td><td class="n">1</td>' in overview
    assert boss.post("/admin/release", {"name": "ann"}).status_code == 303
    assert "Nobody has a page" in boss.get("/admin").text
    bob.get()
    assert len(bob.hidden("shown")) == 3


def suggested(visitor: Visitor) -> list[str]:
    return re.findall(r'<option value="([^"]+)"></option>', visitor.get().text)


def test_names_are_suggested_from_the_same_queue_and_data_set_and_none_that_is_forbidden(site: Site) -> None:
    queue = site.store.queue
    for name, people, dataset in (("from here", "a", "x"), ("elsewhere", "b", "x"), ("other data", "a", "y")):
        oracle = HumanOracle(queue, people, dataset=dataset)
        with pytest.raises(Exception, match="wait"):
            list(ask(oracle, [Label(Feature(name), texts(1)[0])]))
    for known in ("hat", "smile"):
        with pytest.raises(Exception, match="wait"):
            list(ask(HumanOracle(queue, "a", dataset="x"), [Label(Feature(known), texts(1)[0])]))
    asked = Compare(Kind.TWO_OF_THREE, texts(3), known=("hat",), exclude=("smile",))
    with pytest.raises(Exception, match="wait"):
        list(ask(HumanOracle(queue, "a", HumanTerms(priority=1), dataset="x"), [asked]))
    assert suggested(site.visitor("ann")) == ["from here"]


def test_progress_counts_questions_and_takes_the_time_of_each_kind(timed: Site, clock: Clock) -> None:
    timed.ask([TRIPLE, *(Label(BEARD, example) for example in texts(24))])
    ann = timed.visitor("ann")
    assert "Question 1 of about 25" in ann.get().text
    clock.now += 100
    ann.answer(shown=[0, 1], name="round")
    assert "Questions 2 to 13 of about 25" in ann.get().text
    clock.now += 120
    ann.answer()
    page = ann.get().text
    assert "Questions 14 to 25 of about 25, about 2 minutes left" in page, "twelve labels of ten seconds"
    assert 'value="13" max="25"' in page


def begin(site: Site, status: str = "running", **settings: Any) -> str:
    chosen = {"oracle": "human", "queries": 3, "votes": 1, "elicit_on": None, **settings}
    site.store.runs.begin(
        "run", "scope", name="n", flow="discover", dataset="toy", oracle="human:main", settings=chosen
    )
    if status != "running":
        site.store.runs.end("run", status, {})
    return "run"


def test_questions_that_a_discovery_will_ask_are_counted_too(site: Site) -> None:
    begin(site)
    site.ask([TRIPLE])
    ann = site.visitor("ann")
    ann.get()
    assert "Question 1 of about 3" in ann.page, "two more comparisons are to come"


def test_waiting_paused_and_finished_are_three_pages(timed: Site, clock: Clock) -> None:
    timed.ask([Label(BEARD, example) for example in texts(4)])
    ann = timed.visitor("ann")
    ann.get()
    first, *_ = ann.hidden("lease")
    begin(timed)
    ann.answer(has=[first])
    seen = {}
    for status in ("running", "waiting", "stopped: queries"):
        if status != "running":
            timed.store.runs.end("run", status, {})
        clock.now += 10
        page = ann.get().text
        seen[status] = re.search(r"<h1>([^<]+)</h1>", page)[1]  # type: ignore[index]
    assert seen == {
        "running": "Nothing to answer just now",
        "waiting": "The review is paused",
        "stopped: queries": "All done",
    }
    assert "Thank you, <bdi>ann</bdi>: 4 answers are saved." in page
    assert "This feature was found:" in page
    assert "<bdi>beard</bdi>" in page
    assert "25\N{NO-BREAK SPACE}% of the answers say yes" in page
