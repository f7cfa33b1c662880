"""With a model that errs as models do, terminal, features.csv, run.json and report say the same, and nothing that the
server knows to be otherwise."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw

from tests.support.fake_openai import Failings, LifelikeServer
from tests.support.no_prefect import run_without_prefect
from twothirds.flows.cli.app import main
from twothirds.flows.discover import flow
from twothirds.models.prices import parse_price
from twothirds.reports import Run
from twothirds.sources import load_dataset

ROOT = Path(__file__).parents[4]
PRICE = "0.15,0.60,0.075"


def shapes(folder: Path) -> str:
    """Forty drawn pictures of a user, with what is in them as truth."""
    rng, rows = np.random.default_rng(3), []
    folder.mkdir()
    for number in range(40):
        has = dict(zip(("red circle", "blue square", "green line", "dark"), rng.random(4) < 0.45, strict=True))
        picture = Image.new("RGB", (120, 120), "#222222" if has["dark"] else "#eeeeee")
        pen, at = ImageDraw.Draw(picture), [int(value) for value in rng.integers(0, 60, size=4)]
        if has["red circle"]:
            pen.ellipse((at[0], at[1], at[0] + 40, at[1] + 40), fill="red")
        if has["blue square"]:
            pen.rectangle((at[2], at[3], at[2] + 40, at[3] + 40), fill="blue")
        if has["green line"]:
            pen.line((0, at[0] + 20, 120, at[3] + 50), fill="green", width=7)
        pen.point((number, number), fill="white")
        picture.save(folder / f"{number:02d}.png")
        rows.append({"id": f"{number:02d}.png"} | {name: int(value) for name, value in has.items()})
    pd.DataFrame(rows).to_csv(folder / "truth.csv", index=False)
    return str(folder)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("faces", "zoo")]


@pytest.fixture(params=[*SLOW, "a folder of one's own"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    own = request.param not in ("faces", "zoo")
    return shapes(tmp_path / "shapes") if own else str(ROOT / "datasets" / request.param)


def without_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "run_flow", run_without_prefect)


def test_everything_that_is_reported_agrees(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_prefect(monkeypatch)
    dataset = load_dataset(source)
    habits = Failings(label_noise=0.06, slow=0.0)
    with LifelikeServer(dataset, habits, price=parse_price(PRICE), seed=1) as server:
        oracle = f"openai:gpt-4o-mini?base_url={server.base_url}&price={PRICE}"
        command = ["discover", source, "--oracle", oracle, "--queries", "8", "--elicit-on", "24", "--label-rest"]
        command += [
            "--seed",
            "2",
            "--budget",
            "50",
            "--out",
            str(tmp_path / "run"),
            "--store",
            str(tmp_path / "s.sqlite"),
        ]
        assert main(command) == 0
        printed = capsys.readouterr().out
        booked = server.summary()["usd"]
        mind = server.lifelike
    run = Run(tmp_path / "run")
    table, labels, summary = pd.read_csv(run.folder / "features.csv"), run.labels, run.summary
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert len(table) == summary.features > 0
    counted = int((table["interesting"] & table["distinct"] & table["consistent"]).sum())
    assert summary.doubtful == list(table[~table["consistent"]]["name"])
    lines = [line for line in printed.splitlines() if "not counted, and left out of exports" in line]
    assert len(lines) == bool(summary.doubtful)
    assert all(name in lines[0] for name in summary.doubtful)
    assert f"{counted} interesting and distinct" in printed
    judged = f"; judged by labels {summary.of_sampled}" if summary.dataset.compared < summary.dataset.examples else ""
    figures = f'<dd>{counted}</dd><dd class="small">interesting and distinct, of {len(table)} found{judged}</dd>'
    assert f"<dt>features to use</dt>{figures}" in page
    assert (f"(both of {summary.dataset.compared} sampled)" in printed) == bool(judged)
    assert summary.interesting_distinct == counted
    rows: list[Any] = list(table.itertuples())
    for row in rows:
        known = labels[row.column].dropna()
        assert (row.positives, row.labelled) == (known.sum(), len(known))
        assert re.search(rf"\b{row.positives}/{row.labelled}\b", printed)
        card = page[page.index(f'id="feature-{row.order}"') :].split("</article>")[0]
        assert f"{row.positives:,} have it, {row.labelled - row.positives:,} lack it" in card
    assert summary.total_usd == pytest.approx(booked, abs=2e-6)
    assert summary.unusable is not None
    answers = [json.loads(line)["answer"] for line in (run.folder / "answers.jsonl").read_text().splitlines()]
    unusable = sum(answer["verdict"] in ("refused", "unreadable") for answer in answers)
    assert summary.unusable.total == unusable
    problems = page.partition('<section id="problems">')[2].partition("</section>")[0]
    assert ("could not be used" in printed) == (unusable > 0)
    assert (f"{unusable:,} of {summary.unusable.comparisons + summary.unusable.labels:,} answers" in problems) == (
        unusable > 0
    )
    _fits_the_truth(run, table, mind)


def _fits_the_truth(run: Run, table: pd.DataFrame, mind: Any) -> None:
    """Of what the server knows an attribute for, at most as many labels are wrong as its noise explains."""
    wrong, cells = 0, 0
    rows: list[Any] = list(table.itertuples())
    for row in rows:
        column = mind.column_of(str(row.name), str(row.definition))
        if column is None:
            continue
        found = run.labels[row.column]
        truth = mind.truth[:, column]
        known = found.notna().to_numpy()
        said = found.fillna(0).to_numpy().astype(bool)
        wrong += int((said != truth)[known].sum())
        cells += int(known.sum())
        share = row.positives / row.labelled
        errors = float((said != truth)[known].mean())
        assert abs(share - truth[known].mean()) <= errors + 1e-9
    assert cells > 0
    assert wrong / cells <= 0.15
