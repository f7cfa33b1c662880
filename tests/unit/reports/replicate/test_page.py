from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np

from discovery.simulation.worlds import leafy_tree
from reports.drawing.plots import Plot, PlotLine, PlotPanel, svg_of
from reports.replicate.claim import TRIAL, ClaimResult, ClaimTable, ClaimVerdict, jobs_of, run_jobs
from reports.replicate.page import TOPICS, page_of
from reports.replicate.proposition_4_3 import PrintedHybrid

PLOT = Plot(
    [
        PlotPanel(
            "p",
            "x",
            "y",
            [PlotLine("a", [1, 10], [1, 2], [0.5, 1], [2, 3]), PlotLine("b", [1, 10], [2, 2])],
            log_y=True,
        )
    ],
    "alt",
)


def a_finding(title: str = "Lemma 9.9: it is so") -> ClaimResult:
    table = ClaimTable(("a", "b"), [("1", "2")], "caption")
    return ClaimResult(
        title, "claim", "simulated", 7, ClaimVerdict.HOLDS, "because", [table], ("a remark",), {"p.svg": PLOT}
    )


def test_a_plot_has_the_same_bytes_every_time_and_no_date() -> None:
    svg = svg_of(PLOT)
    assert svg == svg_of(PLOT)
    assert not re.search(r"20\d\d-\d\d", svg)
    assert ET.fromstring(svg).tag.endswith("svg")
    assert "alt" in svg


def test_the_page_names_claim_runs_verdict_and_remarks_and_links_to_its_sections() -> None:
    page = page_of([a_finding()], "Written just now.")
    assert "[Lemma 9.9](#lemma-99): it is so | 7 | holds |" in page
    assert "## Lemma 9.9\n" in page
    assert "**Verdict: holds.** Because" in page
    assert "- **Lemma 9.9.** a remark" in page
    assert "![alt](p.svg)" in page
    assert page.count("Written just now.") == 1


def test_every_claim_of_the_paper_is_there() -> None:
    names = [topic.name for topic in TOPICS]
    claims = [f"Proposition {name}" for name in ("4.1", "4.2", "4.3", "6.1")]
    claims += [f"Lemma {name}" for name in ("4.4", "5.1", "5.2", "5.3", "5.4")]
    assert {*claims, "Table 1 and Figure 4", "Figure 3"} <= set(names)


def draw(low: int, rng: np.random.Generator) -> int:
    return low + int(rng.integers(1000))


def test_each_job_has_a_seed_of_its_own_and_results_keep_the_order_of_the_jobs() -> None:
    jobs = jobs_of(draw, [{"low": 0}, {"low": 1000}], (1, 2), repeats=3)
    results = run_jobs(jobs, None)
    assert len(set(results)) == 6
    assert [result >= 1000 for result in results] == [False] * 3 + [True] * 3
    assert run_jobs(jobs, None) == results


def test_another_seed_gives_other_runs() -> None:
    topic = next(topic for topic in TOPICS if topic.name == "Lemma 5.3")
    assert run_jobs(topic.plan(TRIAL, 0), None) != run_jobs(topic.plan(TRIAL, 1), None)


def test_the_printed_hybrid_is_complete_with_specifists_and_misses_features_with_generalists() -> None:
    complete = {"specifist": 0, "generalist": 0}
    for seed in range(8):
        for crowd in complete:
            rng = np.random.default_rng(seed)
            world = leafy_tree(15, 2, rng)
            found, queries = PrintedHybrid(world.truth, world.crowd(crowd, 0), 30, rng).run()
            assert queries > 0
            complete[crowd] += len(found) == 15
    assert complete["specifist"] == 8
    assert complete["generalist"] < 8
