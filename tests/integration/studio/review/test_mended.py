"""The page as people use it: each of these went wrong once."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discovery.questions import Kind
from flows.__main__ import main
from flows.reviewing.page import UNTOUCHED_SECONDS, PageSettings, add_checks, is_running, serve, withdraw
from models.oracle import Compare, Exemplar, Feature, Label
from models.people.human import HumanOracle, HumanTerms, check_of
from sources.dataset import Example
from store import Store
from store.review.leases import LeaseTerms
from tests.integration.conftest import Clock
from tests.support.made import texts
from tests.support.review_site import Site, Visitor, running_site

BEARD = Feature("beard", "hair on the chin")
TRIPLE = Compare(Kind.TWO_OF_THREE, texts(3))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(tmp_path: Path, clock: Clock) -> Iterator[Site]:
    """A page whose clock the test turns."""
    with (
        Store.open(str(tmp_path / "store.sqlite"), clock=clock) as store,
        running_site(store, checks=0, repeats=0) as site,
    ):
        yield site


def problem_of(page: str) -> tuple[str, str]:
    """The field that the problem is said of, and the problem."""
    said = re.search(r'role="alert" id="problem"><bdi>([^<]+)</bdi>', page)
    field = re.search(r'<(?:input id="(\w+)"|fieldset)[^>]*aria-describedby="problem"', page)
    assert said, page
    assert field, page
    return field[1] or "fieldset", said[1]


def test_undo_brings_back_what_was_chosen_and_what_could_not_be_told(site: Site) -> None:
    site.ask([Label(BEARD, example) for example in texts(4)])
    ann = site.visitor("ann")
    ann.get()
    first, second, *_ = leases = ann.hidden("lease")
    ann.answer(has=[first], unsure=[second])
    ann.get()
    ann.post("/undo", {})
    page = ann.get().text
    assert ann.hidden("lease") == leases
    assert re.findall(r'name="(\w+)" value="(\d+)"[^>]* checked', page) == [("has", first), ("unsure", second)]


def test_undo_brings_back_values_that_were_missing_and_the_reason_of_a_skip(site: Site) -> None:
    site.ask([TRIPLE])
    ann = site.visitor("ann")
    ann.get()
    ann.post("/skip", {"lease": ann.hidden("lease"), "reason": "The question is unclear"})
    ann.get()
    ann.post("/undo", {})
    assert '<option value="The question is unclear" selected>' in ann.get().text


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
            list(oracle.ask([Label(Feature(name), texts(1)[0])]))
    for known in ("hat", "smile"):
        with pytest.raises(Exception, match="wait"):
            list(HumanOracle(queue, "a", dataset="x").ask([Label(Feature(known), texts(1)[0])]))
    asked = Compare(Kind.TWO_OF_THREE, texts(3), known=("hat",), exclude=("smile",))
    with pytest.raises(Exception, match="wait"):
        list(HumanOracle(queue, "a", HumanTerms(priority=1), dataset="x").ask([asked]))
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


def test_examples_that_defined_a_feature_stand_beside_its_labels_whatever_is_asked_first(site: Site) -> None:
    """A check entered without words shares the page: it must not take the words from the others."""
    shown = texts(6)
    feature = Feature("beard", "hair on the chin", exemplars=(Exemplar(shown[4], True), Exemplar(shown[5], False)))
    site.ask([Label(feature, example) for example in shown[:2]])
    known = [Example(f"k{n}", f"{n:064x}", text=f"known {n}") for n in range(3)]
    site.store.queue.items.enqueue([check_of("main", Label(Feature("Beard"), one), "no") for one in known])
    person = site.store.queue.people.add("ann", "reviewer")
    site.store.queue.leases.next_page(person.id, LeaseTerms(checks=1.0))
    page = site.visitor("ann").get().text
    assert page.count('class="cell"') == 4, "two questions and as many checks"
    assert "hair on the chin" in page
    assert "This has it" in page
    assert "This lacks it" in page


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"shown": [0], "name": "beard"}, "fieldset", "Choose the two that share it: 1 is chosen now."),
        ({"shown": [0, 1], "name": ""}, "name", "Give it a name of one to five words."),
        ({"shown": [0, 1], "name": "nothing"}, "name", "that is no name"),
        ({"shown": [0, 1], "name": "dont know"}, "name", "that is no name"),
        ({"shown": [0, 1], "name": "Both!"}, "name", "that is no name"),
        ({"shown": [0, 1], "name": "123"}, "name", "a name needs letters"),
        ({"shown": [0, 1], "name": "ok", "definition": "x" * 301}, "definition", "at most 300 characters"),
    ],
)
def test_a_problem_stands_at_the_field_that_has_it(site: Site, fields: dict[str, Any], field: str, said: str) -> None:
    site.ask([TRIPLE])
    ann = site.visitor("ann")
    ann.get()
    reply = ann.answer(**fields)
    assert reply.status_code == 422
    where, what = problem_of(reply.text)
    assert where == field
    assert said in what


@pytest.mark.parametrize(("how", "said"), [("expired", "expired on"), ("revoked", "was revoked on")])
def test_a_link_that_has_ended_says_so_and_whom_to_ask(timed: Site, clock: Clock, how: str, said: str) -> None:
    link = timed.link("ann", by="Carla")
    ann = timed.stranger().open(link)
    assert "<bdi>Carla</bdi> has invited you" in ann.page
    if how == "expired":
        clock.now += 2 * 86_400
    else:
        timed.store.queue.people.revoke("ann")
    for reply in (ann.get(), timed.stranger().get(link)):
        assert reply.status_code == 403
        assert said in reply.text
        assert "Ask Carla, who invited you, for a new one." in reply.text


def test_checks_named_before_the_feature_was_defined_are_asked(tmp_path: Path) -> None:
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        running_site(store, checks=0.5, repeats=0, page_size=4) as site,
    ):
        known = [Example(f"k{n}", f"{n:064x}", text=f"known {n}") for n in range(2)]
        store.queue.items.enqueue([check_of("main", Label(Feature("Beard"), one), "no") for one in known])
        site.ask([Label(BEARD, example) for example in texts(4)])
        page = site.visitor("ann").get().text
        assert page.count('class="cell"') == 6
        assert "hair on the chin" in page


def test_entering_checks_that_nobody_can_be_asked_is_said(site: Site, tmp_path: Path) -> None:
    site.ask([Label(BEARD, example) for example in texts(2)])
    file = tmp_path / "checks.csv"
    file.write_text("feature,id,answer\nBeard,face-001,no\nbread,face-002,yes\n", encoding="utf-8")
    entered = add_checks(site.store, "datasets/faces", file, "main")
    assert entered.count == 2
    assert len(entered.remarks) == 1
    assert entered.remarks[0].startswith("nobody is asked about 'bread' yet: 1 check waits")
    (remark,) = add_checks(site.store, "datasets/faces", file, "elsewhere").remarks
    assert remark == "no question waits in queue elsewhere, so these checks cannot be asked: there are main"


def test_withdrawing_tells_what_it_reopens_and_takes_back_features_of_that_person_alone(site: Site) -> None:
    queue, examples = site.store.queue, texts(8)
    site.ask([TRIPLE, Compare(Kind.TWO_OF_THREE, examples[3:6])])
    ann, bob, boss = site.visitor("ann"), site.visitor("bob"), site.visitor("boss", admin=True)
    ann.get()
    ann.answer(shown=[0, 1], name="odd thing", definition="as ann has it")
    bob.get()
    bob.answer(shown=[0, 1], name="beard")
    site.ask([Label(Feature("odd thing", "as ann has it"), one, voter) for one in examples[:4] for voter in range(2)])
    site.ask([Label(Feature("beard"), examples[0])])
    ann.get()
    ann.answer()  # four labels of her own feature
    page = boss.get("/admin/withdraw?name=ann").text
    assert "5 answers are discarded" in page
    assert "1 question is asked again of other reviewers." in page
    assert "<bdi>odd thing</bdi>" in page
    assert ann.get().status_code == 200, "nothing has happened yet"
    assert boss.post("/admin/withdraw", {"name": "ann"}).status_code == 303
    waiting = queue.records.waiting()
    assert sorted(item["kind"] for item in waiting) == ["label", "two-of-three"], "the odd thing is asked about no more"
    site.ask([Label(Feature("odd thing", "as ann has it"), examples[0])])
    assert len(queue.records.waiting()) == 3, "unless it is named again"
    with pytest.raises(Exception, match="nobody called"):
        withdraw(site.store, "nobody", really=False)


def test_inviting_knows_where_the_page_runs_and_whether_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store_of = ["--store", str(tmp_path / "store.sqlite")]
    with Store.open(store_of[1]) as store, socket.create_server(("127.0.0.1", 0)) as listening:
        everywhere = PageSettings(host="0.0.0.0", port=listening.getsockname()[1])
        assert everywhere.address == f"http://{socket.gethostname()}:{everywhere.port}", "what a browser can open"
        assert main(["review", "invite", "Ann", *store_of]) == 0
        assert "the page is not running" in capsys.readouterr().err
        monkeypatch.setattr("flows.reviewing.page._assert_free", lambda _settings: None)
        monkeypatch.setattr("uvicorn.run", lambda *_arguments, **_options: None)
        serve(store, everywhere)
        assert is_running(store)
    with socket.create_server(("127.0.0.1", everywhere.port)):
        assert main(["review", "invite", "Bob", *store_of]) == 0
        printed = capsys.readouterr()
        assert printed.out.startswith(f"{everywhere.address}/i/")
        assert printed.err == ""
