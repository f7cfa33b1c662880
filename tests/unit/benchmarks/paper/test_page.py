"""The command that replicates the paper, and the page it leaves."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from benchmarks.paper.__main__ import CLAIMS, TOPICS, main, page_of, replicate
from benchmarks.paper.claim import TRIAL, ClaimTable, Finding, Verdict, run_trials, trials_of
from benchmarks.paper.plots import Plot, PlotLine, PlotPanel, svg_of

LINES = [PlotLine("a", [1, 10], [1, 2], [0.5, 1], [2, 3]), PlotLine("b", [1, 10], [2, 2])]
PLOT = Plot([PlotPanel("p", "x", "y", LINES, log_y=True)], "alt")


def test_a_plot_has_the_same_bytes_every_time_and_no_date() -> None:
    svg = svg_of(PLOT)
    assert svg == svg_of(PLOT)
    assert not re.search(r"20\d\d-\d\d", svg)
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "alt" in svg


def test_the_page_names_claim_runs_verdict_and_remarks_and_links_to_its_sections() -> None:
    table = ClaimTable("a | b", [(1, "2")], "caption")
    finding = Finding("simulated", Verdict.HOLDS, "because", [table], {"p.svg": PLOT}, runs=7)
    page = page_of({"Lemma 5.3": finding}, "Written just now.")
    assert f"[Lemma 5.3](#lemma-53): {CLAIMS['Lemma 5.3']['title']} | 7 | holds |" in page
    assert "## Lemma 5.3\n" in page
    assert "caption\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n" in page
    assert "**Verdict: holds.** Because" in page
    assert "- **Lemma 5.3.** For equal q" in page
    assert "![alt](p.svg)" in page
    assert page.count("Written just now.") == 1


def test_every_claim_of_the_paper_is_tested() -> None:
    claims = [f"Proposition {number}" for number in ("4.1", "4.2", "4.3", "6.1")]
    claims += [f"Lemma {number}" for number in ("4.4", "5.1", "5.2", "5.3", "5.4")]
    assert {*claims, "Algorithm 1", "Table 1 and Figure 4", "Figure 3"} == set(CLAIMS) == set(TOPICS)


def draw(low: int, rng: np.random.Generator) -> int:
    return low + int(rng.integers(1000))


def test_each_simulation_has_a_seed_of_its_own_and_results_keep_the_order_of_the_plan() -> None:
    plan = trials_of(draw, [{"low": 0}, {"low": 1000}], (1, 2), 3)
    (_, low), (_, high) = run_trials(plan, None)
    assert len({*low, *high}) == 6
    assert max(low) < 1000 <= min(high)
    assert run_trials(plan, None) == [(plan[0], low), (plan[1], high)]


def test_another_seed_gives_other_runs() -> None:
    first, second = ([results for _, results in run_trials(TOPICS["Lemma 5.3"].plan(TRIAL, s), None)] for s in (0, 1))
    assert first != second


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page written in this process from the smallest simulations that there are."""
    out = tmp_path_factory.mktemp("page")
    assert list(replicate(out, TRIAL, 0, 1)) == list(CLAIMS)
    return out


@pytest.mark.slow
def test_the_page_does_not_depend_on_the_number_of_processes(folder: Path, tmp_path: Path) -> None:
    replicate(tmp_path, TRIAL, 0, 2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }


def test_every_picture_of_the_page_is_there_and_no_other(folder: Path) -> None:
    page = (folder / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^]]*\]\(([^)]+)\)", page))
    assert {"figure-3.svg", "figure-4.svg"} <= shown == {path.name for path in folder.glob("*.svg")}
    assert (folder / "figure-3.svg").read_text(encoding="utf-8").count("<image ") == 15
    headings = {line[3:].lower().replace(".", "").replace(" ", "-") for line in page.splitlines() if line[:3] == "## "}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "-1"], "--seed must not be negative"),
        (["--processes", "0"], "'0' is not 1 or more"),
        (["--out", f"{__file__}/page"], "give another folder with --out"),
    ],
)
def test_bad_options_are_refused_before_anything_is_simulated(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_quick_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--out", str(tmp_path)])
    assert capsys.readouterr().out.count("runs)") == len(TOPICS)
    assert "`python -m benchmarks.paper --quick --seed 0`" in (tmp_path / "README.md").read_text(encoding="utf-8")
