"""What a run says of itself: counts, marks, costs and unusable answers, the same in every place."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.no_prefect import run_without_prefect
from twothirds.discovery import interest_and_distinctness
from twothirds.flows.cli.app import main
from twothirds.flows.discover import flow
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.prefect_api.runs import Caller
from twothirds.models import MICRO, AnswersUnusable
from twothirds.reports import Run
from twothirds.reports.export.card import card_of
from twothirds.reports.export.origins import of_run
from twothirds.reports.page.page import page_context
from twothirds.reports.run import RunSummary
from twothirds.store import Store

ROOT = Path(__file__).parents[4]
ZOO = str(ROOT / "datasets" / "zoo")


def discovered(folder: Path, run_id: str = "one", **settings: Any) -> Run:
    wanted: dict[str, Any] = {"dataset": ZOO, "oracle": "simulated?price=0.001", "queries": 12, "seed": 1}
    made = DiscoverSettings(**wanted | {"store": str(folder / "store.sqlite"), "out": str(folder / "run")} | settings)
    run_discovery(prepare(made), run_id=run_id)
    return Run(folder / "run")


@pytest.fixture(scope="module")
def subset(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that compared 60 of the 101 animals and labelled the others at the end."""
    return discovered(tmp_path_factory.mktemp("subset"), elicit_on=60, label_rest=True)


def without_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "run_flow", run_without_prefect)


def test_positives_are_counted_over_what_was_labelled(subset: Run) -> None:
    table, labels = pd.read_csv(subset.folder / "features.csv"), subset.labels
    assert table["labelled"].tolist() == [101] * len(table)
    for row in table.itertuples():
        known = labels[row.column].dropna()
        assert (row.positives, row.labelled) == (known.sum(), len(known))
    cards = {card["found"].name: card for card in page_context(subset, None)["cards"]}
    assert {name: (card["yes"], card["yes"] + card["no"]) for name, card in cards.items()} == {
        str(row.name): (row.positives, row.labelled) for row in table.itertuples()
    }


def test_the_terminal_counts_as_features_csv_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_prefect(monkeypatch)
    command = ["discover", ZOO, "--oracle", "simulated?price=0.001", "--queries", "1", "--seed", "1"]
    command += ["--elicit-on", "60"]
    command += ["--label-rest", "--yes", "--out", str(tmp_path / "run"), "--store", str(tmp_path / "s.sqlite")]
    assert main(command) == 0
    printed = capsys.readouterr().out
    row = pd.read_csv(tmp_path / "run" / "features.csv").iloc[0]
    assert f" {row.positives}/101 " in printed
    assert "1 feature, 1 interesting and distinct, from 1 query; g " in printed
    assert " (both of 60 sampled); stopped because of queries" in printed
    assert "102 questions asked, 0 from the store, 0.1020 USD; this run in all 0.1020 USD" in printed
    assert main(command) == 0
    assert "0 questions asked, 102 from the store, 0.0000 USD; this run in all 0.1020 USD" in capsys.readouterr().out


def test_what_is_judged_on_a_sample_says_so_beside_counts_of_all_examples(subset: Run) -> None:
    table, labels = pd.read_csv(subset.folder / "features.csv"), subset.labels
    sampled = labels.loc[subset.summary.dataset.compared_ids or []]
    assert table["sampled"].tolist() == [60] * len(table)
    assert table["sampled_positives"].tolist() == [sampled[name].sum() for name in table["column"]]
    assert table["interesting"].tolist() == table["sampled_positives"].between(6, 54).tolist()
    exported = subset.findings.feature_table()
    for column in ("positives", "labelled", "sampled_positives", "sampled", "interesting", "distinct"):
        assert exported[column].tolist() == table[column].tolist()
    cards = {card["found"].name: card["marks"] for card in page_context(subset, None)["cards"]}
    for row in table.itertuples():
        words = [mark for _, mark in cards[str(row.name)]]
        rare = f"rare or nearly always: {row.sampled_positives} of 60 sampled have it"
        assert (rare in words) is not row.interesting
    page = subset.report().path.read_text(encoding="utf-8")
    assert f"<dd>{subset.summary.interesting_distinct}</dd>" in page
    assert "found; judged by labels of 60 sampled</dd>" in page
    assert "share of 60 sampled an example cannot be told from" in page


def test_where_all_examples_are_compared_nothing_is_said_of_a_sample(tmp_path: Path) -> None:
    run = discovered(tmp_path, queries=3)
    assert "sampled" not in str([card["marks"] for card in page_context(run, None)["cards"]])
    assert "sampled" not in run.report().path.read_text(encoding="utf-8").split("<script", maxsplit=1)[0]


def test_the_share_from_which_a_feature_is_interesting_is_a_setting_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_prefect(monkeypatch)
    command = ["discover", ZOO, "--oracle", "simulated", "--queries", "30", "--seed", "1", "--rare", "0.05"]
    command += ["--out", str(tmp_path / "run"), "--store", str(tmp_path / "s.sqlite")]
    assert main(command) == 0
    run, printed = Run(tmp_path / "run"), capsys.readouterr().out
    table = pd.read_csv(run.folder / "features.csv")
    assert run.summary.settings["rare"] == 0.05
    shares = table["positives"] / 101
    assert table["interesting"].tolist() == shares.between(0.05, 0.95).tolist()
    assert (table["interesting"] & ~shares.between(0.1, 0.9)).any()
    marks = interest_and_distinctness(run.findings.matrix, 0.05)
    assert list(zip(table["interesting"], table["distinct"], strict=True)) == marks == run.findings.marks
    counting = sum(all(both) for both in marks)
    assert counting > sum(all(both) for both in interest_and_distinctness(run.findings.matrix))
    assert run.summary.interesting_distinct == run.findings.counting == counting
    assert f"{counting} interesting and distinct (--rare 0.05), from 30 queries" in printed
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "at least 5&nbsp;% of the examples have it" in page
    assert f"<dd>{counting}</dd>" in page
    assert main(["export", str(run.folder), "--to", "features", "--only", "interesting,distinct"]) == 0
    assert len(pd.read_csv(run.folder / "export" / "features.csv")) == counting
    assert main([*command[:-6], "--rare", "0.7"]) == 2
    assert "--rare" in capsys.readouterr().err


def test_distinct_is_what_the_documentation_says(tmp_path: Path) -> None:
    run = discovered(tmp_path, queries=30)
    table = pd.read_csv(run.folder / "features.csv")
    marks = interest_and_distinctness(run.findings.matrix)
    assert list(zip(table["interesting"], table["distinct"], strict=True)) == marks
    plain = table[~table["interesting"]]
    assert plain["distinct"].any(), "features that nearly all lack differ from most others in a tenth"
    assert run.summary.interesting_distinct == sum(all(one) for one in marks)
    assert page_context(run, None)["history"].counting[-1] == run.summary.interesting_distinct


def test_features_csv_has_the_twins(tmp_path: Path) -> None:
    truth = pd.read_csv(Path(ZOO) / "truth.csv")
    truth.insert(2, "no such hair", 1 - truth[truth.columns[1]])
    shutil.copy(Path(ZOO) / "animals.csv", tmp_path)
    truth.to_csv(tmp_path / "truth.csv", index=False)
    run = discovered(tmp_path, dataset=str(tmp_path), queries=40, strategy="random-triple")
    table = pd.read_csv(run.folder / "features.csv", keep_default_na=False).set_index("name")
    pair = [name for name in (truth.columns[1], "no such hair") if name in table.index]
    assert len(pair) == 2
    earlier, later = sorted(pair, key=list(table.index).index)
    assert table.loc[later, "twin"] == f"complement of {earlier}"
    marks = {card["found"].name: card["marks"] for card in page_context(run, None)["cards"]}
    assert ("plain", f"the opposite of “{earlier}”") in marks[later]


def test_what_features_cost_includes_the_rest_and_adds_up_to_the_run(subset: Run) -> None:
    table = pd.read_csv(subset.folder / "features.csv")
    each = 0.001 * (101 + 1)  # a vote on every example, and the question
    assert table["cost_usd"].tolist() == pytest.approx([each] * len(table))
    asked = 0.001 * sum(one.feature is None or one.feature not in set(table["name"]) for one in _comparisons(subset))
    repeated = 0.001 * subset.summary.repeated_names
    assert table["cost_usd"].sum() + asked + repeated == pytest.approx(subset.summary.total_usd)
    with Store.open(str(subset.folder.parent / "store.sqlite")) as store:
        assert store.costs.totals("one").paid == round(1e6 * float(subset.summary.total_usd or 0))


def _comparisons(run: Run) -> list[Any]:
    return list(run.findings.comparisons)


def card(run: Run) -> str:
    return card_of(of_run(run))


def test_a_card_of_one_vote_labels_says_that_doubt_is_unknown(tmp_path: Path) -> None:
    one = card(discovered(tmp_path / "one", queries=4))
    assert "which of them are doubtful is not known" in one
    assert "0 of" not in one
    three = card(discovered(tmp_path / "three", queries=4, votes=3))
    assert "0 of 404 labels are doubtful" in three


@pytest.mark.parametrize("refuse", [0.2, 1.0])
def test_unusable_answers_are_reported_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refuse: float
) -> None:
    without_prefect(monkeypatch)
    command = ["discover", ZOO, "--oracle", f"simulated?refuse={refuse}", "--queries", "6", "--seed", "3"]
    status = main([*command, "--out", str(tmp_path / "run"), "--store", str(tmp_path / "s.sqlite")])
    printed = capsys.readouterr()
    summary = RunSummary.read(tmp_path / "run")
    answers = (tmp_path / "run" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    verdicts = [json.loads(line)["answer"]["verdict"] for line in answers]
    assert summary.unusable is not None
    assert summary.unusable.total == verdicts.count("refused") > 0
    line = summary.unusable.lines()[0]
    assert f"{summary.unusable.total:,} of {len(verdicts):,} answers could not be used" in line
    assert "by simulated:" in line
    assert line in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    if refuse < 0.5:
        assert status == 0
        assert line in " ".join(printed.out.split())
    else:
        assert status == 1
        assert printed.err.strip().splitlines()[-1].startswith(f"error: {line}")
        assert "--retry-unusable" in printed.err


def test_from_python_a_run_without_usable_answers_raises_once_its_folder_is_written(tmp_path: Path) -> None:
    where = {"store": str(tmp_path / "s.sqlite"), "out": str(tmp_path / "run")}
    prepared = prepare(DiscoverSettings(dataset=ZOO, oracle="simulated?refuse=1", queries=3, **where))
    with pytest.raises(AnswersUnusable, match="3 of 3 answers could not be used"):
        run_without_prefect(flow.discover_flow, prepared.settings, Caller(prepared=prepared))
    assert Run(tmp_path / "run").summary.features == 0


def test_answers_that_another_run_has_paid_cost_nothing_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the books: the second run asks what the first one asked, and more."""
    without_prefect(monkeypatch)
    store = tmp_path / "s.sqlite"

    def run(name: str, *more: str) -> tuple[Run, str]:
        command = ["discover", ZOO, "--oracle", "simulated?price=0.001", "--queries", "4", "--budget", "5", *more]
        assert main([*command, "--out", str(tmp_path / name), "--store", str(store)]) == 0
        return Run(tmp_path / name), capsys.readouterr().out

    run("first")
    second, printed = run("second", "--votes", "3")
    with Store.open(str(store)) as opened:
        booked = opened.costs.totals(second.summary.run_id)
        kinds = {line.kind: line.paid / MICRO for line in opened.costs.lines(second.summary.run_id)}
    assert booked.cached_calls > 300, "the first vote on every label is stored"
    assert pd.read_csv(second.folder / "features.csv")["cost_usd"].sum() == pytest.approx(booked.paid / MICRO)
    usd = second.summary.booked_usd
    assert sum(usd.values()) == pytest.approx(booked.paid / MICRO)
    assert usd["labels"] == pytest.approx(kinds["label"])
    assert second.findings.feature_table()["cost_usd"].sum() == pytest.approx(booked.paid / MICRO)
    assert page_context(second, None)["history"].usd[-1] == pytest.approx(booked.paid / MICRO)
    in_all = f"{booked.paid / MICRO:.4f} USD"
    assert re.search(
        rf", {in_all}; this run in all {in_all}: (questions .*, )?labels {kinds['label']:.4f} USD\n", printed
    )
    again, _ = run("second", "--votes", "3")
    assert again.features.equals(second.features), "resuming is running again"
