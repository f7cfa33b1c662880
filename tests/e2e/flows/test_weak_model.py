"""A real model that is no good, SmolLM2-135M-Instruct, through the whole path of texts: every page says so.

`make test-slow` fetches it (tests/install_smollm2.sh). What it answers is not asserted, but what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]
MODEL = Path(os.environ.get("TWOTHIRDS_SMOLLM2", ROOT / ".venv" / "smollm2"))
ORACLE = f"vlm:{MODEL}?dtype=float32&max_new_tokens=96&batch=8"
ANIMALS = 32  # the test whether it may replace somebody takes 30
FEATURES = "feathers: The animal has feathers.; aquatic: The animal lives in water."

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not (MODEL / "config.json").exists(), reason="SmolLM2 is not here: tests/install_smollm2.sh"),
]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first animals, with their truth."""
    folder = tmp_path_factory.mktemp("zoo")
    for name in ("animals.csv", "truth.csv"):
        pd.read_csv(ROOT / "datasets" / "zoo" / name).head(ANIMALS).to_csv(folder / name, index=False)
    return folder


def run(folder: Path, *words: str) -> str:
    """The command, in a world of its own; its output."""
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    environment = {**os.environ, **homes, "PREFECT_HOME": str(folder / "prefect"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "flows", *words, "--store", f"sqlite:///{folder / 'store.sqlite'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_a_comparison_with_the_truth_says_that_it_may_not_replace_anybody(zoo: Path) -> None:
    out = zoo / "compared"
    words = ("--oracles", ORACLE, "simulated", "--features", FEATURES, "--votes", "3", "--comparisons", "0")
    said = run(zoo, "compare", str(zoo / "animals.csv"), *words, "--out", str(out))
    comparison = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    weak = next(one for one in comparison["quality"] if one["oracle"].startswith("vlm"))
    page = (out / "compare.html").read_text(encoding="utf-8")
    assert "may not replace one of simulated" in " ".join(said.split())
    assert "may not" in page
    assert (
        " ".join(said.split()).count("no better than giving each feature's more frequent label to every example") == 1
    )
    assert weak["majority"]["value"] > 0.5  # by saying no, which looks better than it is
    assert "share of yes that it says, and that is true" in page  # calibration
    assert weak["against_reference"]["errors in common"]["value"] is not None


def test_a_discovery_marks_what_the_model_contradicts_and_what_it_could_not_say(zoo: Path) -> None:
    out = zoo / "discovered"
    settings = ("--oracle", ORACLE, "--queries", "2", "--votes", "1", "--look", "0", "--no-ask-same")
    run(zoo, "discover", str(zoo / "animals.csv"), *settings, "--out", str(out))
    summary = json.loads((out / "run.json").read_text(encoding="utf-8"))
    answers = summary["unusable"]
    assert answers["comparisons"] == 2
    features = pd.read_csv(out / "features.csv")
    assert summary["queries"] == 2
    page = (out / "report.html").read_text(encoding="utf-8")
    if answers["contradicted"]:
        assert "contradict" in page
    if len(features):
        matched = summary["truth"]["mean_balanced_accuracy"]
        assert matched is None or matched < 0.9  # it is weak, and the run says how weak


def test_people_decide_where_it_is_in_doubt(zoo: Path) -> None:
    out = zoo / "escalated"
    settings = ("--oracle", "simulated", "--labeller", ORACLE, "--escalate", "0.4", "--people", "simulated?seed=1")
    run(zoo, "discover", str(zoo / "animals.csv"), *settings, "--queries", "1", "--votes", "1", "--out", str(out))
    summary = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert summary["people"]["escalated"] > 0


def test_its_labels_are_not_certified_by_chance(zoo: Path) -> None:
    """Predicted labels promise to agree with the model, however bad it is; of so few nothing is promised."""
    out = zoo / "table"
    features = zoo / "features.csv"
    features.write_text("name,definition\\naquatic,The animal lives in water.\\n", encoding="utf-8")
    settings = ("--features", str(features), "--oracle", ORACLE, "--votes", "1", "--agree", "0.9")
    said = run(zoo, "enrich", str(zoo / "animals.csv"), *settings, "--out", str(out))
    assert "certified" in said or "asked" in said
