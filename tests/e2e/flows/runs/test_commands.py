"""`report`, `export` and `features` as a person types them, on a real run of a simulated crowd."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.support.run_folders import HOSTILE
from twothirds.discovery import Kind
from twothirds.flows.cli.app import main
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.reports.analysis import target as target_analysis
from twothirds.reports.finished_run import Run
from twothirds.reports.page.feature_cards import ASKED_FOR

ROOT = Path(__file__).parents[4]
TYPES = ("mammal", "bird", "reptile", "fish", "amphibian", "insect", "invertebrate")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A discovery on the zoo, whose table has the animal's type and a weight as further columns."""
    folder = tmp_path_factory.mktemp("zoo")
    animals = pd.read_csv(ROOT / "datasets" / "zoo" / "animals.csv")
    truth = pd.read_csv(ROOT / "datasets" / "zoo" / "truth.csv")
    animals["type"] = truth[list(TYPES)].idxmax(axis=1)
    animals["weight"] = 10 * truth["catsize"] + range(len(animals))
    animals["note"] = [HOSTILE[row % 2] for row in range(len(animals))]
    animals.to_csv(folder / "animals.csv", index=False)
    shutil.copy(ROOT / "datasets" / "zoo" / "truth.csv", folder / "truth.csv")
    settings = DiscoverSettings(
        dataset=str(folder / "animals.csv"),
        oracle="simulated?flip=0.03&price=0.001",
        queries=14,
        votes=3,
        store=str(folder / "store.sqlite"),
        out=str(folder / "run"),
    )
    run_discovery(prepare(settings), run_id="zoo")
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the run that the test may change; the store and the data set are shared."""
    shutil.copytree(original / "run", tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls of a target from a few draws, where a test is not about how certain they are."""
    monkeypatch.setattr(target_analysis, "DRAWS", 5)
    monkeypatch.setattr(target_analysis, "REFITS", 10)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def error(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    assert main(arguments) == status
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if not line.endswith("…")]
    assert len(lines) == 1, printed.err
    return lines[0]


def test_report_writes_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert str(folder / "report.html") in said(capsys, "report", str(folder))
    page = (folder / "report.html").read_text(encoding="utf-8")
    for name in Run(folder).features["name"]:
        assert f"<bdi>{name}</bdi>" in page
    said(capsys, "report", str(folder), "--out", str(folder / "other.html"))
    assert (folder / "other.html").exists()


def column_of(folder: Path, name: str) -> str:
    """Of a feature in tables of labels."""
    return str(Run(folder).features.set_index("name").loc[name, "column"])


def tagged(folder: Path, out: Path, **changed: str) -> Path:
    """A tagging run on the run's data set, or on another."""
    settings = Run(folder).summary.settings | {"strategy": "tagging", "queries": 40, "out": str(out)} | changed
    run_discovery(prepare(DiscoverSettings.model_validate(settings)), run_id=f"tagging {out}")
    return out


@pytest.mark.usefixtures("few_draws")
def test_a_report_written_again_keeps_its_sections(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def sections() -> list[str]:
        page = (folder / "report.html").read_text(encoding="utf-8")
        return [part for part in ("features", "target", "groups", "browse") if f'<section id="{part}"' in page]

    other = str(shutil.copytree(folder, folder.parent / "other"))
    tagging = str(tagged(folder, folder.parent / "tagging"))
    said(capsys, "report", str(folder), "--target", "type", "--tagging", tagging)
    said(capsys, "report", str(folder), "--against", other)
    assert sections() == ["features", "target", "groups", "browse"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.index('id="features"') < page.index('id="target"') < page.index('id="groups"')
    assert "no tagging run was given" not in page
    said(capsys, "features", str(folder), "rename", str(Run(folder).features["name"][0]), "new name", "--yes")
    assert "type: balanced accuracy" in said(capsys, "report", str(folder))
    Run(folder).report()
    assert sections() == ["features", "target", "groups", "browse"]
    shutil.rmtree(other)
    said(capsys, "report", str(folder))
    assert sections() == ["features", "target", "browse"]
    assert "had before is left out" in (folder / "report.html").read_text(encoding="utf-8")
    said(capsys, "report", str(folder), "--plain")
    assert sections() == ["features", "browse"]
    said(capsys, "report", str(folder))
    assert sections() == ["features", "browse"]


def test_only_a_tagging_run_of_the_same_examples_is_a_control(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["report", str(folder), "--target", "type", "--tagging"]
    assert "is a run with --strategy auto" in error(capsys, *wanted, str(folder))
    fewer = folder.parent / "fewer.csv"
    pd.read_csv(Run(folder).summary.settings["dataset"]).head(50).to_csv(fewer, index=False)
    pd.read_csv(ROOT / "datasets" / "zoo" / "truth.csv").head(50).to_csv(folder.parent / "truth.csv", index=False)
    elsewhere = tagged(folder, folder.parent / "fewer", dataset=str(fewer))
    assert "is about other examples" in error(capsys, *wanted, str(elsewhere))


def test_how_it_was_made_tells_of_the_questions_that_were_asked(folder: Path) -> None:
    kinds = Run(folder).summary.settings["strategy"], [one.kind for one in Run(folder).findings.comparisons]
    page = Run(folder).report().path.read_text(encoding="utf-8")
    made = page.partition('<section id="method">')[2].partition("</section>")[0]
    asked = {Kind(kind): [*kinds[1]].count(kind) for kind in set(kinds[1])}
    for kind, words in ASKED_FOR.items():
        assert (f'<span class="number">{asked[kind]}</span> {words}' in made) if kind in asked else (words not in made)


@pytest.mark.usefixtures("few_draws")
def test_a_target_is_predicted_against_three_controls(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tagging = tagged(folder, folder.parent / "tagging")
    printed = said(capsys, "report", str(folder), "--target", "type", "--tagging", str(tagging), "--json")
    target = json.loads(printed)["target"]
    scores = {one["name"]: one["estimate"]["value"] for one in target["raters"]}
    assert list(scores) == ["discovered features", "first names of tagging", "random features", "shuffled target"]
    assert scores["discovered features"] > 0.6
    assert max(scores["random features"], scores["shuffled target"]) < 0.35
    assert len({one["columns"] for one in target["raters"]}) == 1
    assert target["better_than"] == target["draws"]
    assert "What they are good for" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("few_draws")
def test_a_tagging_control_that_costs_money_is_made_only_within_a_budget(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder), "--target", "weight"]) == 0
    printed = capsys.readouterr()
    assert "no tagging control" in printed.err
    assert "--budget" in printed.err
    assert "first names of tagging" not in printed.out
    assert "first names of tagging" in said(capsys, "report", str(folder), "--target", "weight", "--budget", "50")


def test_groups_are_compared_by_a_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = json.loads(said(capsys, "report", str(folder), "--by", "type", "--json"))["groups"]
    labels = Run(folder).labels
    table = pd.read_csv(Run(folder).summary.settings["dataset"]).set_index("id")
    for one in groups["differences"]:
        inside = labels.loc[table.index[table["type"] == one["group"]], column_of(folder, one["name"])].dropna()
        assert one["share"] == pytest.approx(inside.mean())
        assert one["low"] <= one["share"] - one["share_other"] <= one["high"]
        assert one["corrected"] >= one["p"]
    halves = json.loads(said(capsys, "report", str(folder), "--by", "weight", "--json"))["groups"]["groups"]
    assert [name.split()[0] for name, _ in halves] == ["above", "up"]


def test_hostile_values_of_a_column_are_shown_as_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "report", str(folder), "--by", "note")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;document" in page
    assert "<script>document" not in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "size"], "no column 'size'"),
        (["--by", "size"], "no column 'size'"),
        (["--target", "type", "--budget", "-1"], "--budget '-1'"),
        (["--target", "type", "--budget", "much"], "--budget 'much'"),
        (["--against", "no/such/run"], "no/such/run"),
    ],
)
def test_bad_wishes_of_a_report_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in error(capsys, "report", str(folder), *arguments)


def test_a_data_set_that_is_gone_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no/such/data" in error(capsys, "report", str(folder), "--dataset", "no/such/data", status=5)


def test_a_folder_that_is_no_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["report"], ["export"], ["features"]):
        extra = ["list"] if command == ["features"] else []
        assert "is not a run folder" in error(capsys, *command, str(tmp_path), *extra)


def test_export_writes_what_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = said(capsys, "export", str(folder), "--to", "wide-csv,card", "--to", "jsonl", "--out", str(folder / "x"))
    assert sorted(path.name for path in (folder / "x").iterdir()) == ["README.md", "labels.jsonl", "wide.csv"]
    assert len(printed.splitlines()) == 3
    assert "'xml'" in error(capsys, "export", str(folder), "--to", "xml")
    assert "has texts" in error(capsys, "export", str(folder), "--to", "imagefolder")


def test_a_change_is_shown_first_and_done_only_when_sure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Run(folder).features["name"][:2]
    before, kept, gone = Run(folder).labels, column_of(folder, first), column_of(folder, second)
    shown = said(capsys, "features", str(folder), "merge", first, second)
    conflict = int((before[kept] != before[gone]).fillna(False).sum())
    assert f"asks {conflict} labels of {first!r} again" in shown
    assert f"{3 * conflict:,} questions at most and {0.003 * conflict:.4f} USD at most" in shown
    assert "nothing was changed" in shown
    pd.testing.assert_frame_equal(Run(folder).labels, before)
    assert "done" in said(capsys, "features", str(folder), "merge", first, second, "--yes")
    after = Run(folder).labels
    assert gone not in after.columns
    agreed = (before[kept] == before[gone]).fillna(False).astype(bool)
    pd.testing.assert_series_equal(after[kept][agreed], before[kept][agreed])
    assert after[kept].isna().sum() == 0


def test_without_asking_labels_stay_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(Run(folder).features["name"][0])
    printed = said(capsys, "features", str(folder), "define", name, "in other words", "--no-ask", "--yes")
    assert "leaves 101 labels" in printed
    assert Run(folder).labels[column_of(folder, name)].isna().all()
    assert "took back define" in said(capsys, "features", str(folder), "undo")
    assert not Run(folder).labels[column_of(folder, name)].isna().all()


def test_renaming_listing_and_the_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = str(Run(folder).features["name"][1])
    assert "keeps 101 labels" in said(capsys, "features", str(folder), "rename", name, "something else", "--yes")
    listed = json.loads(said(capsys, "features", str(folder), "list", "--json"))
    assert listed[1]["name"] == "something else"
    assert "rename" in said(capsys, "features", str(folder), "log")
    said(capsys, "report", str(folder))
    assert "something else" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rename", "one"], "rename takes two names"),
        (["merge", "one"], "merge takes two names"),
        (["split", "one", "two"], "split takes a name and two new ones"),
        (["define", "one"], "define takes a name and one definition"),
        (["drop"], "drop takes one name"),
        (["paint", "one"], "unknown action 'paint'"),
    ],
)
def test_bad_wishes_of_features_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in error(capsys, "features", str(folder), *arguments)


def test_the_feature_tree_is_printed_and_exported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = said(capsys, "tree", str(folder), "--tolerance", "0.2")
    assert "── " in printed
    tree = json.loads(said(capsys, "tree", str(folder), "--tolerance", "0.2", "--json"))
    below = [child["name"] for node in tree["features"] for child in node["below"]]
    assert below
    assert all(name in printed for name in below)
    assert said(capsys, "tree", str(folder), "--dot").startswith("digraph features {")

    said(capsys, "export", str(folder), "--to", "tree-json,tree-dot", "--with", "doubtful")
    exported = json.loads((folder / "export" / "tree.json").read_text(encoding="utf-8"))
    assert exported == json.loads(said(capsys, "tree", str(folder), "--json"))
    assert (folder / "export" / "tree.dot").read_text(encoding="utf-8") == said(capsys, "tree", str(folder), "--dot")


def test_a_tolerance_or_support_that_makes_no_sense_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--tolerance 0.7" in error(capsys, "tree", str(folder), "--tolerance", "0.7")
    assert "--support 0" in error(capsys, "tree", str(folder), "--support", "0")
    assert "--support" in error(capsys, "tree", str(folder), "--support", "some")
