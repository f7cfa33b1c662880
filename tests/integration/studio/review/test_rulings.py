"""Disputed labels are decided in one view, and new reviewers practise on what others agree on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import ask
from tests.support.made import texts
from tests.support.review_site import Site, Visitor, running_site
from tests.support.store_steps import SCOPE, begin
from twothirds.models.cached import CachedOracle
from twothirds.models.ledger import RunLedger
from twothirds.models.oracle import AnswersPending, Exemplar, Feature, Label, Question, Verdict
from twothirds.models.people.human import HumanOracle
from twothirds.store import Store

SHOWN = texts(6)
BEARD = Feature("beard", "hair on the chin", exemplars=(Exemplar(SHOWN[4], True), Exemplar(SHOWN[5], False)))


def votes_on(site: Site, voters: int = 2, features: tuple[Feature, ...] = (BEARD,)) -> list[Question]:
    wanted: list[Question] = [
        Label(feature, one, voter) for feature in features for one in SHOWN[:4] for voter in range(voters)
    ]
    site.ask(wanted)
    return wanted


def answer(visitor: Visitor, digests: tuple[str, ...] = ()) -> None:
    """Yes to these examples and no to the others of the page."""
    page = visitor.get().text
    leases = visitor.hidden("lease")
    shown = re.findall(r'<span class="text"[^>]*>([^<]+)</span>', page.partition("<fieldset")[2])
    has = [lease for lease, text in zip(leases, shown, strict=True) if text in digests]
    assert visitor.answer(has=has).status_code == 303


def test_disputed_labels_are_shown_with_their_votes_and_decided_for_good(site: Site) -> None:
    wanted = votes_on(site)
    yes = SHOWN[0].text or ""
    answer(site.visitor("ann"), (yes,))
    answer(site.visitor("bob"))
    boss = site.visitor("boss", admin=True)
    assert "1 disputed label" in boss.get("/admin").text
    page = boss.get("/admin/disputed").text
    assert page.count('class="dispute"') == 1
    assert yes in page
    assert "hair on the chin" in page
    assert "This has it" in page
    assert re.search(
        r"<dt>has it, say</dt><dd><bdi>ann</bdi></dd>\s*<dt>lacks it, say</dt><dd><bdi>bob</bdi></dd>", page
    )
    (item,) = boss.hidden("item")
    assert boss.post("/admin/rule", {"item": item, f"rule-{item}": "yes"}).status_code == 303
    assert "do not disagree" in boss.get("/admin/disputed").text
    said = list(ask(HumanOracle(site.store.queue), wanted))
    about = [one for one in said if isinstance(one.question, Label) and one.question.example == SHOWN[0]]
    assert [(one.verdict, one.by, one.cost) for one in about] == [(Verdict.YES, "boss", 0)] * 2
    more = list(ask(HumanOracle(site.store.queue), [Label(BEARD, SHOWN[0], voter) for voter in range(5)]))
    assert {one.verdict for one in more} == {Verdict.YES}, "nobody is asked again"


def test_a_ruling_replaces_answers_that_a_run_has_taken(site: Site) -> None:
    store = site.store
    wanted = votes_on(site)
    answer(site.visitor("ann"), (SHOWN[0].text or "",))
    answer(site.visitor("bob"))
    run_id = begin(store)

    def ask() -> list[Verdict]:
        recorded = CachedOracle(HumanOracle(store.queue), RunLedger(store, run_id, SCOPE))
        return [one.verdict for one in recorded.ask(wanted)]

    before = ask()
    assert before.count(Verdict.YES) == 1
    (one,) = store.queue.quality.disputed()
    boss = store.queue.people.add("boss")
    assert store.queue.quality.rule(boss.id, {one.item: True, 999: False}) == 1
    assert store.queue.quality.rule(boss.id, {one.item: False}) == 0, "the first ruling stays"
    assert ask().count(Verdict.YES) == 2
    assert store.check.problems() == []


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Site]:
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        running_site(store, checks=0, repeats=0, training=3) as site,
    ):
        yield site


def test_new_reviewers_practise_on_agreed_labels_with_feedback(strict: Site) -> None:
    yes = (SHOWN[0].text or "", SHOWN[1].text or "")
    ann, bob = strict.visitor("ann"), strict.visitor("bob")
    votes_on(strict)
    for one in (ann, bob):  # nobody agrees on anything yet: no training
        assert "questions to practise" not in one.get().text
        answer(one, yes)
    votes_on(strict, 1, (Feature("hat"),))
    cyd = strict.visitor("cyd")
    page = cyd.get().text
    assert "questions to practise" in page
    assert page.count('name="has"') == 3
    assert "hair on the chin" in page
    reply = cyd.answer(has=cyd.hidden("lease"))
    assert reply.headers["location"] == "/training"
    page = cyd.get("/training").text
    assert "Others agree that this has “beard”." in page or "Others agree that this does not have “beard”." in page
    right = page.count("As the others")
    assert right + page.count("Others see it differently") == 3
    assert f"You agree with the others on {right} of 3." in page
    page = cyd.get("/").text
    assert "questions to practise" not in page
    assert "hat" in page
    purposes = [row["purpose"] for row in strict.store.queue.records.answers() if row["by"] == "cyd"]
    assert purposes == ["check"] * 3, "no votes"
    assert "practise" not in ann.get("/").text, "ann is no new reviewer"
    with pytest.raises(AnswersPending):
        list(ask(HumanOracle(strict.store.queue), [Label(Feature("hat"), SHOWN[0])]))
