"""What lies before a reviewer, and what becomes of what they send."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.asking import ask
from tests.support.made import texts, write_film
from tests.support.review_site import Site, Visitor, running_site
from twothirds.discovery.questions import Kind
from twothirds.flows.reviewing.page import add_checks, withdraw
from twothirds.models.oracle import AnswersPending, Compare, Exemplar, Feature, Label
from twothirds.models.people.human import HumanOracle, HumanTerms, check_of
from twothirds.sources.dataset import Dataset, Example, picture_at
from twothirds.sources.load import load_dataset
from twothirds.store import Store
from twothirds.store.review.leases import LeaseTerms

BEARD = Feature("beard", "hair on the chin")


@pytest.fixture(scope="module")
def faces() -> Dataset:
    return load_dataset("datasets/faces")


def said(site: Site) -> list[dict[str, Any]]:
    return [row["answer"] for row in site.store.queue.records.answers()]


def problem_of(page: str) -> tuple[str, str]:
    """The field that the problem is said of, and the problem."""
    problem = re.search(r'role="alert" id="problem"><bdi>([^<]+)</bdi>', page)
    field = re.search(r'<(?:input id="(\w+)"|fieldset)[^>]*aria-describedby="problem"', page)
    assert problem, page
    assert field, page
    return field[1] or "fieldset", problem[1]


@pytest.mark.parametrize(
    ("kind", "examples", "without", "fields", "shown"),
    [
        (Kind.TWO_OF_THREE, 3, 0, {"shown": [0, 2]}, [0, 2]),
        (Kind.SHARED, 4, 0, {"shown": [0, 1, 3]}, [0, 1, 3]),
        (Kind.ONE_OR_TWO, 3, 0, {"shown": [1]}, [1]),
        (Kind.ONE_OR_TWO, 3, 0, {"shown": [0, 2]}, [0, 2]),
        (Kind.PAIR, 2, 0, {"shown": [1]}, [1]),
        (Kind.ONE_OF_THREE, 3, 0, {"shown": [1]}, [1]),
        (Kind.LEFT_RIGHT, 2, 2, {}, [0, 1]),
        (Kind.GROUPS, 2, 2, {}, []),
        (Kind.TAG, 1, 0, {}, [0]),
    ],
)
def test_every_kind_of_comparison_can_be_answered(
    site: Site, kind: Kind, examples: int, without: int, fields: dict[str, Any], shown: list[int]
) -> None:
    every = texts(examples + without)
    site.ask([Compare(kind, every[:examples], every[examples:])])
    ann = site.visitor("ann")
    page = ann.get().text
    for example in every:
        assert example.text is not None
        assert example.text in page
    assert ann.answer(**fields, name="  Long   BEARD ", definition="hair on the chin").status_code == 303
    assert said(site) == [
        {"verdict": "feature", "name": "Long BEARD", "definition": "hair on the chin", "shown": shown}
    ]


@pytest.mark.parametrize(
    ("fields", "field", "problem"),
    [
        ({"shown": [0], "name": "beard"}, "fieldset", "Choose the two that share it: 1 is chosen now."),
        ({"shown": [0, 1, 2], "name": "beard"}, "fieldset", "Choose the two that share it: 3 are chosen now."),
        ({"shown": [0, 99], "name": "beard"}, "fieldset", "Choose the two that share it: 1 is chosen now."),
        ({"shown": [0, 1], "name": " "}, "name", "Give it a name of one to five words."),
        ({"shown": [0, 1], "name": "no beard"}, "name", "negation"),
        ({"shown": [0, 1], "name": "Hats"}, "name", "known feature"),
        ({"shown": [0, 1], "name": "nothing"}, "name", "that is no name"),
        ({"shown": [0, 1], "name": "dont know"}, "name", "that is no name"),
        ({"shown": [0, 1], "name": "Both!"}, "name", "that is no name"),
        ({"shown": [0, 1], "name": "123"}, "name", "a name needs letters"),
        ({"shown": [0, 1], "name": "ok", "definition": "x" * 301}, "definition", "at most 300 characters"),
    ],
)
def test_what_is_no_answer_is_put_back_with_what_was_typed_and_the_problem_at_its_field(
    site: Site, fields: dict[str, Any], field: str, problem: str
) -> None:
    site.ask([Compare(Kind.TWO_OF_THREE, texts(3), known=("hat",))])
    ann = site.visitor("ann")
    assert "Something other than" in ann.get().text
    reply = ann.answer(**fields)
    assert reply.status_code == 422
    where, words = problem_of(reply.text)
    assert (where, problem in words) == (field, True)
    assert f'value="{fields["name"]}"' in reply.text
    assert said(site) == []


def test_marked_examples_have_it_unmarked_ones_lack_it_and_unsure_ones_go_to_others(site: Site) -> None:
    site.ask([Label(BEARD, example) for example in texts(3)])
    ann = site.visitor("ann")
    page = ann.get().text
    assert "hair on the chin" in page
    first, _, third = ann.hidden("lease")
    ann.answer(has=[first], unsure=[third])
    states = [(row["state"], row["answer"]) for row in site.store.queue.records.answers()]
    assert sorted(states, key=str) == [
        ("given", {"verdict": "no"}),
        ("given", {"verdict": "yes"}),
        ("skipped", {"skipped": "I cannot tell"}),
    ]
    bob = site.visitor("bob")
    assert len(re.findall(r'class="cell"', bob.get().text)) == 1


def test_the_last_page_can_be_undone_and_given_anew(site: Site) -> None:
    site.ask([Label(BEARD, example) for example in texts(3)])
    ann = site.visitor("ann")
    ann.get()
    leases = ann.hidden("lease")
    ann.answer(has=leases[:1], unsure=leases[2:])
    ann.get()
    assert ann.post("/undo", {}).status_code == 303
    marked = re.findall(r'name="(\w+)" value="(\d+)"[^>]* checked', ann.get().text)
    assert (ann.hidden("lease"), marked) == (leases, [("has", leases[0]), ("unsure", leases[2])])
    ann.answer(has=leases)
    assert said(site) == [{"verdict": "yes"}] * 3


def test_a_question_skipped_with_a_reason_is_not_shown_again(site: Site) -> None:
    site.ask([Compare(Kind.TAG, texts(1))])
    ann = site.visitor("ann")
    ann.get()
    ann.post("/skip", {"lease": ann.hidden("lease"), "reason": "The question is unclear"})
    assert "Nothing to answer just now" in ann.get().text
    assert said(site) == [{"skipped": "The question is unclear"}]
    ann.post("/undo", {})
    assert '<option value="The question is unclear" selected>' in ann.get().text


def test_pictures_are_encoded_anew_and_nothing_else_is_served(site: Site, faces: Dataset) -> None:
    site.ask([Compare(Kind.TWO_OF_THREE, faces.examples[:3])])
    ann = site.visitor("ann")
    addresses = re.findall(r'src="(/media/[^"]+)"', ann.get().text)
    assert len(addresses) == 3
    reply = ann.client.get(addresses[0])
    assert reply.headers["content-type"] == "image/webp"
    assert Image.open(io.BytesIO(reply.content)).format == "WEBP"
    assert ann.client.get(f"/media/{faces.examples[9].digest}/large").status_code == 404  # nobody was asked about it


def test_moving_pictures_move_and_films_are_played(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "moving"
    folder.mkdir()
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "green", "blue")]
    frames[0].save(folder / "animation.gif", save_all=True, append_images=frames[1:], duration=80, loop=0)
    write_film(folder / "film.mp4", ("red", "green"))
    write_film(folder / "old.avi", ("red", "green"))
    animation, film, old = load_dataset(str(folder)).examples
    site.ask([Compare(Kind.TWO_OF_THREE, (animation, film, old))])
    ann = site.visitor("ann")
    page = ann.get().text
    assert page.count("<img") == 3, "the animation also as a still picture"
    assert f'<video src="/media/{film.digest}/large"' in page
    assert frames_of(ann, animation) == 3
    assert frames_of(ann, old) == 1, "what browsers do not play is shown by its first frame"
    reply = ann.client.get(f"/media/{film.digest}/large")
    assert reply.headers["content-type"] == "video/mp4"
    assert reply.content == (folder / "film.mp4").read_bytes()


def frames_of(visitor: Visitor, example: Example) -> int:
    reply = visitor.client.get(f"/media/{example.digest}/large")
    assert reply.headers["content-type"] == "image/webp"
    return int(getattr(Image.open(io.BytesIO(reply.content)), "n_frames", 1))


def test_what_only_has_the_name_of_a_film_is_not_sent(site: Site, tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_text("<script>alert(1)</script>")
    film = picture_at(tmp_path / "film.mp4")
    site.ask([Compare(Kind.TAG, (film,))])
    ann = site.visitor("ann")
    ann.get()
    assert ann.client.get(f"/media/{film.digest}/large").status_code == 404


def test_a_picture_that_is_gone_leaves_the_page_usable(site: Site, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "here.png")
    gone = picture_at(tmp_path / "here.png")
    site.ask([Compare(Kind.TAG, (gone,))])
    (tmp_path / "here.png").unlink()
    ann = site.visitor("ann")
    assert ann.get().status_code == 200
    assert ann.client.get(f"/media/{gone.digest}/large").status_code == 404
    Image.new("RGB", (8, 8)).save(tmp_path / "here.png")
    assert ann.client.get(f"/media/{gone.digest}/large").status_code == 404, "another one is not shown in its place"


def answer_all(visitor: Visitor, yes: bool) -> None:
    visitor.get()
    while leases := (visitor.hidden("lease") if 'class="cell"' in visitor.page else []):
        visitor.answer(has=leases if yes else [])
        visitor.get()


def test_the_overview_shows_who_did_what_and_withdraws_it(site: Site) -> None:
    site.ask([Label(BEARD, example, voter) for example in texts(12) for voter in range(2)])
    ann, bob = site.visitor("Ann"), site.visitor("Bob")
    answer_all(ann, yes=True)
    answer_all(bob, yes=False)
    boss = site.visitor("boss", admin=True)
    page = boss.get("/admin").text
    assert "24 answers" in page
    assert "<bdi>Ann</bdi> labels an example in" in page  # much too fast
    rows = list(csv.DictReader(io.StringIO(boss.client.get("/admin/export.csv").text)))
    assert len(rows) == 24
    assert {(row["by"], row["verdict"]) for row in rows} == {("Ann", "yes"), ("Bob", "no")}
    assert {row["examples"] for row in rows} == {example.id for example in texts(12)}
    assert boss.post("/admin/withdraw", {"name": "Bob"}).status_code == 303
    assert bob.get().status_code == 403
    assert "12 withdrawn" in boss.get("/admin").text
    cyd = site.visitor("Cyd")
    assert "Questions 1 to 12 of about 12" in cyd.get().text
    assert {row["state"] for row in site.store.queue.records.answers() if row["by"] == "Bob"} == {"withdrawn"}


def test_a_link_is_revoked_from_the_overview(site: Site) -> None:
    ann, boss = site.visitor("Ann"), site.visitor("boss", admin=True)
    boss.get("/admin")
    boss.post("/admin/revoke", {"name": "Ann"})
    assert ann.get().status_code == 403


def test_failed_attention_checks_are_reported(tmp_path: Path) -> None:
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        running_site(store, checks=0.5, repeats=0, page_size=4) as site,
    ):
        site.ask([Label(BEARD, example) for example in texts(8)])
        known = [Example(f"k{n}", f"{n:064x}", text=f"known {n}") for n in range(4)]
        store.queue.questions.enqueue([check_of("main", Label(BEARD, example), "no") for example in known])
        answer_all(site.visitor("Ann"), yes=True)
        page = site.visitor("boss", admin=True).get("/admin").text
        assert "<bdi>Ann</bdi> passed 0 of 4 attention checks" in page
        assert [row["purpose"] for row in store.queue.records.answers()].count("check") == 4


def test_people_read_what_the_data_is_about_beside_each_question(site: Site) -> None:
    people = HumanOracle(site.store.queue, "q", HumanTerms(about="Notes of <b>a shop</b>", avoid="brand names"))
    comparison, label = Compare(Kind.TAG, texts(1)), Label(BEARD, texts(2)[1])
    with pytest.raises(AnswersPending):
        list(ask(people, [comparison, label]))
    ann = site.visitor("ann")
    page = ann.get().text
    assert "Notes of &lt;b&gt;a shop&lt;/b&gt;" in page
    assert "Not wanted: <bdi>brand names</bdi>" in page
    ann.answer(name="round")
    page = ann.get().text
    assert "Notes of &lt;b&gt;a shop&lt;/b&gt;" in page
    assert "Not wanted" not in page
    plain = HumanOracle(site.store.queue, "q")
    with pytest.raises(AnswersPending, match="1 question waits"):  # another text is another question
        list(ask(plain, [comparison]))


def test_examples_that_defined_a_feature_stand_beside_its_labels_whatever_is_asked_first(site: Site) -> None:
    """A check entered without words shares the page: it must not take the words from the others."""
    shown = texts(6)
    feature = Feature("beard", "hair on the chin", exemplars=(Exemplar(shown[4], True), Exemplar(shown[5], False)))
    site.ask([Label(feature, example) for example in shown[:2]])
    known = [Example(f"k{n}", f"{n:064x}", text=f"known {n}") for n in range(3)]
    site.store.queue.questions.enqueue([check_of("main", Label(Feature("Beard"), example), "no") for example in known])
    person = site.store.queue.people.add("ann")
    site.store.queue.leases.next_page(person.id, LeaseTerms(checks=1.0))
    page = site.visitor("ann").get().text
    assert page.count('class="cell"') == 4, "two questions and as many checks"
    assert "hair on the chin" in page
    assert "This has it" in page
    assert "This lacks it" in page


def test_checks_named_before_the_feature_was_defined_are_asked(tmp_path: Path) -> None:
    with (
        Store.open(str(tmp_path / "store.sqlite")) as store,
        running_site(store, checks=0.5, repeats=0, page_size=4) as site,
    ):
        known = [Example(f"k{n}", f"{n:064x}", text=f"known {n}") for n in range(2)]
        store.queue.questions.enqueue([check_of("main", Label(Feature("Beard"), example), "no") for example in known])
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
    site.ask([Compare(Kind.TWO_OF_THREE, texts(3)), Compare(Kind.TWO_OF_THREE, examples[3:6])])
    ann, bob, boss = site.visitor("ann"), site.visitor("bob"), site.visitor("boss", admin=True)
    ann.get()
    ann.answer(shown=[0, 1], name="odd thing", definition="as ann has it")
    bob.get()
    bob.answer(shown=[0, 1], name="beard")
    site.ask(
        [Label(Feature("odd thing", "as ann has it"), example, voter) for example in examples[:4] for voter in range(2)]
    )
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
