"""A simulated crowd that is free computes its labels: what is written is as if it were asked, and no label is kept."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.growing_worlds import TellingWorld, World, night, table
from tests.support.slow import slow
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich import batches
from twothirds.flows.enrich.batches import Labeller, Resources
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.enrich.summary import EnrichSummary
from twothirds.models import Feature, LabelBatch, collect_votes
from twothirds.models.people.simulated import Behaviour
from twothirds.sources import Example, iter_examples
from twothirds.store import Store

pytestmark = pytest.mark.usefixtures("sampling_number")

ERRING = "simulated?flip=0.2&refuse=0.15"
OF_THE_MOMENT = {"seconds", "finished_at"}
Written = dict[str, pd.DataFrame | dict[str, Any]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world", 60)


def written(world: World, **changed: Any) -> Written:
    """All that a night leaves in the folder of the table, but for times."""
    out = world.folder / "out"
    night(world, "the run", **{"oracle": "simulated"} | changed)
    files = [path for path in sorted(out.rglob("*")) if path.suffix in (".json", ".parquet")]
    found: Written = {}
    for path in files:
        name = str(path.relative_to(out))
        if path.suffix == ".parquet":
            found[name] = pd.read_parquet(path, partitioning=None)
        else:
            found[name] = {
                key: value for key, value in json.loads(path.read_text()).items() if key not in OF_THE_MOMENT
            }
    assert len([name for name in found if name.endswith(".parquet")]) >= 3
    return found


def assert_as_asked(
    made: type[World], folder: Path, monkeypatch: pytest.MonkeyPatch, rows: int = 60, **changed: Any
) -> None:
    """The same command, once with a crowd whose labels are computed and once with one that is asked."""
    world = made(folder / "world", rows)
    computed = written(world, **changed)
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert {line.kind for line in store.costs.lines()} == {"computed"}
    world.folder.rename(folder / "computed")
    monkeypatch.setattr(Behaviour, "is_free", False)
    world = made(folder / "world", rows)
    asked = written(world, **changed)
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert {line.kind for line in store.costs.lines()} == {"label"}
    assert list(computed) == list(asked)
    for name, one in asked.items():
        other = computed[name]
        if isinstance(one, pd.DataFrame) and isinstance(other, pd.DataFrame):
            pd.testing.assert_frame_equal(other, one)
        else:
            assert other == one


class Gaps(World):
    """The truth of some cells is not known."""

    def write(self) -> None:
        super().write()
        truth = pd.read_csv(self.folder / "truth.csv").astype({"red": "Int64"})
        truth.loc[::7, "red"] = pd.NA
        truth.to_csv(self.folder / "truth.csv", index=False)


class OneSided(World):
    def truth(self, name: str) -> list[int]:
        return [1 for _ in super().truth(name)]


@pytest.mark.parametrize("votes", [3, *slow(1)])
@pytest.mark.parametrize("oracle", ["simulated", "simulated?flip=0.3", "simulated?refuse=0.3", ERRING])
@pytest.mark.parametrize("made", [World, Gaps, OneSided])
def test_what_is_computed_is_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: type[World], oracle: str, votes: int
) -> None:
    assert_as_asked(made, tmp_path, monkeypatch, oracle=oracle, votes=votes)


@pytest.mark.parametrize("oracle", ["simulated", ERRING])
def test_a_feature_that_the_truth_lacks_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oracle: str
) -> None:
    features = "red: It is red.; zebra; heavy: It is heavy."
    assert_as_asked(World, tmp_path, monkeypatch, oracle=oracle, features=features, votes=3)
    reasons = json.loads((tmp_path / "computed" / "out" / "enrich.json").read_text())["unusable"]["reasons"]
    assert {one["verdict"] for one in reasons} == (
        {"unreadable"} if oracle == "simulated" else {"unreadable", "refused"}
    )


@pytest.mark.parametrize("changed", [{}, {"oracle": "simulated?flip=0.02", "votes": 3}])
def test_predicted_labels_are_those_of_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert_as_asked(TellingWorld, tmp_path, monkeypatch, 800, agree=0.9, **changed)
    summary = EnrichSummary.read(tmp_path / "computed" / "out")
    assert summary.predicted_labels > 0


def test_a_free_crowd_that_labels_first_is_computed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_asked(World, tmp_path, monkeypatch, 800, agree=0.9, cheap="simulated?flip=0.02&seed=3")
    assert EnrichSummary.read(tmp_path / "computed" / "out").predicted_labels > 0


def test_a_free_crowd_that_labels_first_and_a_paid_one_are_booked_apart(tmp_path: Path) -> None:
    world = World(tmp_path / "world", 800)
    summary = night(world, agree=0.9, cheap="simulated?flip=0.02")
    [made] = summary["predictions"]
    with Store.open(str(world.folder / "store.sqlite")) as store:
        lines = {line.kind: line.paid_calls for line in store.costs.lines()}
        assert lines == {"computed": 2_400, "label": made["asked_labels"]}
        assert store.requests.count() == made["asked_labels"]


@pytest.mark.parametrize("votes", [1, 3])
def test_the_store_has_the_number_of_labels_only(world: World, store_url: str, votes: int) -> None:
    summary = night(world, oracle="simulated?flip=0.1&refuse=0.1", store=store_url, votes=votes)
    with Store.open(store_url) as store:
        assert store.requests.count() == 0
        assert [(one.kind, one.paid_calls) for one in store.costs.lines()] == [("computed", summary["paid_calls"])]
        assert store.check.problems() == []


@pytest.mark.parametrize("terms", ["price=0.000001", "latency=0.001"])
def test_a_crowd_that_is_paid_or_waited_for_is_asked_and_its_answers_are_kept(world: World, terms: str) -> None:
    night(world, oracle=f"simulated?{terms}")
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert store.requests.count() == 180
        assert [(one.kind, one.paid_calls) for one in store.costs.lines()] == [("label", 180)]


def test_labels_of_a_discovery_are_kept(world: World) -> None:
    store = str(world.folder / "store.sqlite")
    settings = DiscoverSettings(
        dataset=world.spec, oracle="simulated", queries=3, store=store, out=str(world.folder / "r")
    )
    run_discovery(prepare(settings), run_id="run")
    with Store.open(store) as kept:
        assert "label" in {line.kind for line in kept.costs.lines()}
        assert "computed" not in {line.kind for line in kept.costs.lines()}
        assert kept.requests.count() > 60


def test_a_run_that_was_killed_computes_again(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = World(tmp_path / "undisturbed", 60)
    night(undisturbed, oracle=ERRING, votes=3)
    monkeypatch.setattr("twothirds.flows.enrich.update.LABELS_AT_ONCE", 90)
    real, left = collect_votes, [3]

    def dies(*about: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return real(*about)

    monkeypatch.setattr(batches, "collect_votes", dies)
    with pytest.raises(KeyboardInterrupt):
        night(world, "the run", oracle=ERRING, votes=3)
    summary = night(world, "the run", oracle=ERRING, votes=3)
    assert summary["stopped_because"] == "done"
    pd.testing.assert_frame_equal(table(world), table(undisturbed))
    with Store.open(str(world.folder / "store.sqlite")) as store:
        assert store.check.problems() == []
        assert store.requests.count() == 0


def test_copies_of_one_content_have_the_labels_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the truth says of each."""

    class Copies(World):
        def write(self) -> None:
            self.texts = {name: f"text {int(name[1:]) // 2}" for name in self.texts}
            super().write()

    tables = {}
    for way in ("computed", "asked"):
        world = Copies(tmp_path / way, 60)
        night(world, oracle="simulated?flip=0.1", votes=3)
        tables[way] = table(world)
        monkeypatch.setattr(Behaviour, "is_free", False)
    pd.testing.assert_frame_equal(tables["computed"], tables["asked"])
    labels = tables["computed"][list(World(tmp_path / "other", 1).traits)]
    assert (labels.iloc[::2].to_numpy() == labels.iloc[1::2].to_numpy()).all()


def test_another_process_computes_the_same(world: World) -> None:
    store = str(world.folder / "store.sqlite")
    settings = EnrichSettings(dataset=world.spec, features="red; round", oracle=ERRING, votes=3, store=store)
    with Store.open(store) as opened:
        opened.runs.begin("run", "scope", name="n", flow="enrich", dataset="d", oracle="o", settings={})
    examples = [one for one in iter_examples(world.spec) if isinstance(one, Example)]
    batch = LabelBatch(examples, [Feature("red"), Feature("round")], 3)
    labeller = Labeller(settings, "run", "scope", Resources())
    here, there = labeller(batch), pickle.loads(pickle.dumps(labeller))(batch)
    assert (here.votes.labels == there.votes.labels).all()
    assert here.votes.asked == there.votes.asked
