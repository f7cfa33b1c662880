"""Features to start with, and names that are not wanted: what is known is not paid, found again or counted as found."""

from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest

from tests.support.fake_openai import CHAT, FakeModel, FakeOpenAI
from tests.support.fake_openai.examples import WORDS, texts
from tests.support.fake_openai.mind import Page
from tests.support.growing_worlds import TellingWorld
from tests.support.people import TruthfulPerson
from twothirds.flows.discover.forecast import forecast_discovery
from twothirds.flows.discover.outcome import Outcome, answers_in_order
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.errors import UsageError
from twothirds.flows.runs.curate import CurationRequest, curate
from twothirds.models.oracle import AnswersPending, Label
from twothirds.models.prompting.comparisons import EXCLUDED
from twothirds.reports import Run
from twothirds.reports.export import export_run
from twothirds.reports.versions import read_table
from twothirds.sources import load_dataset

COUNT = 16
ZOO = "datasets/zoo"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Texts; the column `Cat` says which mention one, and leaves one out."""
    rows = [{"id": f"t{n}", "text": one.text} for n, one in enumerate(texts(COUNT))]
    table = pd.DataFrame(rows)
    table["Cat"] = ["yes" if "cat" in text else "no" for text in table["text"]]
    table.loc[3, "Cat"] = ""
    table["dog"] = "brown"
    table.to_csv(tmp_path / "texts.csv", index=False)
    return tmp_path / "texts.csv"


def settings(dataset: Path | str, oracle: str, folder: Path, **changes: Any) -> DiscoverSettings:
    usual = {"dataset": str(dataset), "oracle": oracle, "queries": 3, "store": str(folder / "store.sqlite")}
    return DiscoverSettings.model_validate(usual | {"out": str(folder / str(uuid4()))} | changes)


def discovered(given: DiscoverSettings) -> Outcome:
    return run_discovery(prepare(given), run_id=str(uuid4()))


def by_server(server: FakeOpenAI, dataset: Path, **changes: Any) -> DiscoverSettings:
    oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,2"
    return settings(dataset, oracle, dataset.parent, **changes)


def asked_labels(outcome: Outcome, name: str) -> list[str]:
    """The examples of which an oracle was asked."""
    known = [one for one in outcome.progress.known if one.feature.name == name]
    answers = [answer for one in known for answer in one.votes if answer.note != "known"]
    return sorted(a.question.example.id for a in answers if isinstance(a.question, Label))


def test_labels_come_from_a_column_of_yes_and_no_and_what_it_leaves_open_is_asked(dataset: Path) -> None:
    known = "cat: It mentions a cat.; dog: It mentions a dog."
    with FakeOpenAI(FakeModel(WORDS)) as server:
        outcome = discovered(by_server(server, dataset, known=known))
    assert asked_labels(outcome, "cat") == ["t3"]
    assert len(asked_labels(outcome, "dog")) == COUNT  # a column of colours says nothing
    run = Run(Path(str(outcome.settings.out)))
    assert run.features["question"].tolist()[:2] == ["known", "known"]
    assert run.labels["cat"].tolist() == [int("cat" in str(one.text)) for one in texts(COUNT)]
    assert not {"cat", "dog"} & {one.feature.name for one in outcome.progress.findings}
    summary = run.summary
    assert (summary.features, len(run.features)) == (len(outcome.progress.findings), summary.features + 2)
    assert summary.given is not None
    assert (summary.given.labels_taken, summary.given.labels_asked) == (COUNT - 1, COUNT + 1)
    assert summary.given.labels_from == {"cat": "column Cat", "dog": "oracle"}
    each = summary.per_question
    assert each is not None
    assert each.features == round(summary.features / summary.queries, 3)
    answers = [json.loads(line) for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    assert {row["answer"]["by"] for row in answers if row["answer"]["note"] == "known"} == {"column Cat"}
    page = run.report().path.read_text()
    assert "and 2 features known at the start" in page
    assert re.search(r"labels by (<[^>]+>)?column Cat", page)


def test_questions_list_them_as_known_and_their_names_do_not_come_back(tmp_path: Path) -> None:
    simulated = settings(ZOO, "simulated", tmp_path, known="milk; feathers", queries=12, strategy="auto")
    outcome = discovered(simulated)
    listed = [answer.question.known for _, answer in outcome.progress.asked if answer.question.known]  # type: ignore[union-attr]
    assert listed
    assert all(names[:2] == ("milk", "feathers") for names in listed)
    assert not {"milk", "feathers"} & {one.feature.name for one in outcome.progress.findings}
    assert outcome.progress.g_known < 1
    assert outcome.progress.g <= outcome.progress.g_known
    # the strategy knows them: the first question of an adaptive strategy is one that they leave open
    adaptive = discovered(settings(ZOO, "simulated", tmp_path, known="milk", strategy="adaptive-triple"))
    first = adaptive.progress.asked[0][0].examples
    assert len({int(adaptive.progress.known_features[0].labels[row]) for row in first}) == 1


def test_a_run_of_the_same_contents_brings_its_labels_for_nothing(dataset: Path, tmp_path: Path) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server:
        first = discovered(by_server(server, dataset, queries=1, strategy="adaptive-triple"))
        folder = Path(str(first.settings.out))
        [name] = [one.feature.name for one in first.progress.findings]
        other = f"openai:gpt-4o-mini?base_url={server.base_url}&price=1,2&temperature=0.5"  # has answered nothing yet
        again = discovered(settings(dataset, other, tmp_path, known=folder))
        assert asked_labels(again, name) == []
        assert again.summary().given is not None
        grown = tmp_path / "grown.csv"  # other ids, and two contents more
        table = pd.read_csv(dataset).drop(columns=["Cat", "dog"])
        table["id"] = [f"new {n}" for n in range(COUNT)]
        more = pd.DataFrame({"id": ["x", "y"], "text": ["a cat and a dog", "a tree"]})
        pd.concat([table, more]).to_csv(grown, index=False)
        third = discovered(settings(grown, other, tmp_path, known=str(folder)))
        assert asked_labels(third, name) == ["x", "y"]
        shutil.move(dataset, tmp_path / "elsewhere.csv")  # whose contents these were is not known any more
        fourth = discovered(settings(grown, other, tmp_path, known=str(folder), seed=1))
        assert len(asked_labels(fourth, name)) == COUNT + 2


def test_the_estimate_prices_labels_that_are_asked_and_no_others(dataset: Path) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server:
        plain, column, asked = (
            forecast_discovery(prepare(by_server(server, dataset, known=known)))
            for known in (None, "cat: It mentions a cat.", "owl: It mentions an owl.")
        )
    assert plain.known.features == 0
    assert (column.known.labels_asked, column.known.labels_taken) == (1, COUNT - 1)
    assert (asked.known.labels_asked, asked.known.labels_taken) == (COUNT, 0)
    assert asked.known.cost > column.known.cost > 0
    assert asked.likely > plain.likely
    assert asked.most_questions == plain.most_questions + COUNT
    assert asked.to_json()["known"]["labels_asked"] == COUNT


def test_an_interrupted_run_goes_on_and_a_repeated_one_pays_nothing(dataset: Path, tmp_path: Path) -> None:
    zoo = settings(ZOO, "simulated?price=0.01", tmp_path, known="milk", budget="0.5")
    poor = discovered(zoo)
    assert (poor.progress.stopped, poor.progress.queries, poor.crowd.ledger.paid_calls) == ("budget", 0, 50)
    assert discovered(zoo.model_copy(update={"budget": Decimal(50)})).crowd.ledger.cached_calls == 50
    with FakeOpenAI(FakeModel(WORDS)) as server:
        terms = by_server(server, dataset, known="owl: It mentions an owl.; cat: It mentions a cat.")
        whole, again = discovered(terms), discovered(terms)
        assert again.crowd.ledger.paid_calls == 0
        assert again.features() == whole.features()
        assert discovered(by_server(server, dataset)).crowd.ledger.paid_calls > 0
        assert discovered(by_server(server, dataset)).crowd.ledger.paid_calls == 0


def test_they_are_curated_exported_and_enriched_like_others(dataset: Path, tmp_path: Path) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server:
        outcome = discovered(by_server(server, dataset, known="cat: It mentions a cat.", queries=2))
        folder = Path(str(outcome.settings.out))
        request = CurationRequest("define", ["cat", "It speaks of a cat."], confirmed=True, budget="1")
        assert curate(Run(folder), request).data["done"]
        assert curate(Run(folder), CurationRequest("rename", ["cat", "kitten"], confirmed=True)).data["done"]
        run = Run(folder)
        assert run.features["name"].tolist()[0] == "kitten"
        assert run.features["question"].tolist()[0] == "known"
        written = export_run(run, ["wide-csv"], load_dataset(str(dataset)), tmp_path / "export")
        assert any("kitten" in path.read_text() for path in written if path.suffix == ".csv")
        enriched = EnrichSettings(
            dataset=str(dataset),
            oracle=outcome.settings.oracle,
            features=str(folder),
            store=str(tmp_path / "store.sqlite"),
            out=str(tmp_path / "table"),
        )
        enrich_with(enriched)
    assert "kitten" in read_table(tmp_path / "table").table_schema.names


def test_people_label_what_is_not_known_before_they_are_asked_to_compare(tmp_path: Path) -> None:
    given = settings(ZOO, "human:q", tmp_path, known="milk", queries=1)
    prepared = prepare(given)
    with pytest.raises(AnswersPending, match="101 questions wait"):
        run_discovery(prepared, run_id="first")
    person = TruthfulPerson(prepared.store.queue, "ann", prepared.dataset)
    for _ in range(500):
        try:
            outcome = run_discovery(prepare(given), run_id=str(uuid4()))
            break
        except AnswersPending:
            while person.answer_page():
                pass
    assert [one.feature.name for one in outcome.progress.known_features] == ["milk"]
    assert "milk" not in {one.feature.name for one in outcome.progress.findings}


def test_what_is_given_is_never_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = TellingWorld(tmp_path / "world", 700)
    dataset = load_dataset(world.spec)
    assert dataset.truth is not None
    name = dataset.truth.columns[0]
    first = discovered(
        settings(world.spec, "simulated", tmp_path, elicit_on=60, agree=0.9, known=f"{name}", strategy="auto")
    )
    assert first.predicted is not None
    table = pd.DataFrame({"id": [one.id for one in dataset.examples], name: dataset.truth.matrix[:, 0]})
    assert len(table) == 700
    labelled = Run(Path(str(first.settings.out)))
    asked = int((~pd.isna(labelled.labels[name])).sum())
    assert asked == 700
    again = discovered(
        settings(world.spec, "simulated", tmp_path, elicit_on=60, agree=0.9, known=labelled, strategy="auto", seed=1)
    )
    predicted_before = labelled.findings.found[0].predicted
    assert again.predicted is not None
    now = Run(Path(str(again.settings.out))).findings.found[0]
    rows = ~predicted_before
    assert not now.predicted[rows].any()
    assert (now.labels[rows] == labelled.findings.found[0].labels[rows]).all()


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        ("nowhere.csv", "--known 'nowhere.csv' is not there"),
        (";", "--known ';' names no feature"),
        ("a: one; a: two", "names 'a' twice"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_asked(tmp_path: Path, known: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        prepare(settings(ZOO, "simulated", tmp_path, known=known))


def test_the_target_itself_is_refused(dataset: Path) -> None:
    table = pd.concat([pd.read_csv(dataset)] * 4)
    table["id"] = range(len(table))
    table.to_csv(dataset, index=False)
    with pytest.raises(UsageError, match="is the target itself"):
        prepare(settings(dataset, "human", dataset.parent, known="Cat", target="Cat"))


class Stubborn(FakeModel):
    """Names what it sees first, wanted or not."""

    def compare(self, page: Page) -> dict[str, Any]:
        page.known = []
        return super().compare(page)


def test_names_that_are_not_wanted_do_not_come_up(dataset: Path) -> None:
    with FakeOpenAI(FakeModel(WORDS)) as server:
        plain = discovered(by_server(server, dataset, queries=6, strategy="adaptive-triple"))
        assert "cat" in {one.feature.name for one in plain.progress.findings}
        without = discovered(by_server(server, dataset, queries=6, strategy="adaptive-triple", exclude="a cat; owl"))
        assert "cat" not in {one.feature.name for one in without.progress.findings}
        assert without.progress.findings
        shown = [text for text in map(json.dumps, server.bodies(CHAT)) if EXCLUDED in text]
        assert shown
        again = discovered(by_server(server, dataset, queries=6, strategy="adaptive-triple"))
        assert again.crowd.ledger.paid_calls == 0  # without it nothing is asked that was answered
    compared = {answer.question.content["exclude"] == ["a cat", "owl"] for _, answer in without.progress.asked}
    assert compared == {True}
    labels = [
        one.content
        for one in (answer.question for answer in answers_in_order(without.progress, without.remaining))
        if isinstance(one, Label)
    ]
    assert not any("exclude" in content for content in labels)


def test_a_model_that_names_them_all_the_same_is_asked_again_and_then_repeats(dataset: Path) -> None:
    with FakeOpenAI(Stubborn(["cat"])) as server:
        outcome = discovered(by_server(server, dataset, queries=2, strategy="adaptive-triple", exclude="cat"))
    assert outcome.progress.findings == []
    repeats = [answer for _, answer in outcome.progress.asked if answer.features]
    assert repeats
    assert all("not wanted" in answer.note and answer.usage.requests == 2 for answer in repeats)
    assert outcome.progress.repeated == len(repeats)
    assert outcome.unusable.total == 0


@pytest.mark.parametrize(
    "oracle", ["simulated", "simulated:salience", pytest.param("contrastive", marks=pytest.mark.slow)]
)
def test_other_oracles_leave_them_out_too(tmp_path: Path, oracle: str) -> None:
    dataset = "datasets/faces" if oracle == "contrastive" else ZOO
    usual = {"queries": 4, "elicit_on": 40}
    plain = discovered(settings(dataset, oracle, tmp_path, **usual))
    names = [one.feature.name for one in plain.progress.findings]
    other = discovered(settings(dataset, oracle, tmp_path, **usual, exclude="; ".join(names)))
    assert other.progress.findings
    assert not set(names) & {one.feature.name for one in other.progress.findings}


def test_they_can_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("hat\n  red   scarf; hat\n")
    given = settings(ZOO, "simulated", tmp_path, exclude=str(tmp_path / "names.txt"))
    assert given.excluded == ("hat", "red scarf")
    assert given.scope(load_dataset(ZOO), prepare(given).members.identity) != settings(
        ZOO, "simulated", tmp_path
    ).scope(load_dataset(ZOO), prepare(given).members.identity)
