"""A real model that is no good, SmolLM2-135M-Instruct, through the whole path of texts: every page says so.

`make test-slow` fetches it (tests/install_smollm2.sh). What the model answers is not asserted, but that what is said of
it is so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]
MODEL = Path(os.environ.get("TWOTHIRDS_SMOLLM2", ROOT / ".venv" / "smollm2"))
ORACLE = f"vlm:{MODEL}?dtype=float32&max_new_tokens=64&batch=8"
TEXTS = 32  # the test whether it may replace somebody takes 30
ZOO = {"feathers": "The animal has feathers.", "aquatic": "The animal lives in water."}
UNUSABLE = 1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.xdist_group("weak model"),
    pytest.mark.skipif(not (MODEL / "config.json").exists(), reason="SmolLM2 is not here: tests/install_smollm2.sh"),
]


class Data(NamedTuple):
    folder: Path
    table: Path
    features: Path
    truth: pd.DataFrame  # of these features


class Ended(NamedTuple):
    status: int
    said: str  # in one line


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """The first texts and two features, with their truth."""
    source, folder = ROOT / "datasets" / "zoo", tmp_path_factory.mktemp("zoo")
    texts, truth = (pd.read_csv(source / name).head(TEXTS) for name in ("animals.csv", "truth.csv"))
    texts.to_csv(folder / "texts.csv", index=False)
    truth.to_csv(folder / "truth.csv", index=False)
    pd.DataFrame({"name": [*ZOO], "definition": [*ZOO.values()]}).to_csv(folder / "features.csv", index=False)
    return Data(folder, folder / "texts.csv", folder / "features.csv", truth[[*ZOO]])


def run(data: Data, command: str, *words: str) -> Ended:
    homes = {f"XDG_{name}_HOME": str(data.folder / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    environment = {**os.environ, **homes, "PREFECT_HOME": str(data.folder / "prefect"), "OMP_NUM_THREADS": "1"}
    store = ("--store", f"sqlite:///{data.folder / 'store.sqlite'}")
    line = [sys.executable, "-m", "twothirds", command, str(data.table), *words, *store, "--yes"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert "Traceback" not in done.stderr
    return Ended(done.returncode, " ".join((done.stdout + done.stderr).split()))


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_a_comparison_with_the_truth_says_that_it_may_not_replace_anybody(data: Data) -> None:
    out = data.folder / "compared"
    words = ("--features", str(data.features), "--votes", "3", "--comparisons", "2", "--out", str(out))
    ended = run(data, "compare", "--oracles", ORACLE, "simulated", *words)
    assert ended.status == 0, ended.said
    comparison = read(out, "comparison.json")
    weak = next(one for one in comparison["quality"] if one["oracle"].startswith("vlm"))
    page = (out / "compare.html").read_text(encoding="utf-8")
    assert "may not replace one of simulated" in ended.said
    assert "without looking" in page
    blind = float(pd.concat([data.truth.mean(), 1 - data.truth.mean()], axis=1).max(axis=1).mean())
    assert ("is right in" in ended.said and "no better than giving each" in ended.said) == (
        weak["majority"]["value"] <= blind + 1e-12
    )
    said = pd.read_csv(out / "votes-1.csv").groupby("feature")["label"].nunique()
    assert ("gives every example the same label" in ended.said) == bool((said == 1).any())
    assert "share of yes that it says, and that is true" in page  # calibration
    brier = weak["against_reference"]["Brier score"]["value"]
    assert ("It knows nothing of single examples" in page) == (
        brier >= float((data.truth.mean() * (1 - data.truth.mean())).mean())
    )
    assert weak["against_reference"]["errors in common"]["value"] > 0.5  # three wordings are hardly three votes
    assert "unusable" in page


def test_a_discovery_by_answers_that_cannot_be_used_fails_and_says_so(data: Data) -> None:
    out = data.folder / "discovered"
    ended = run(data, "discover", "--oracle", ORACLE, "--queries", "2", "--votes", "1", "--out", str(out))
    assert (out / "report.html").exists(), ended.said
    summary, page = read(out, "run.json"), (out / "report.html").read_text(encoding="utf-8")
    unusable = summary["unusable"]
    assert unusable["comparisons"] >= 2
    if 2 * unusable["unusable_comparisons"] > unusable["comparisons"]:
        assert ended.status == UNUSABLE
        assert "could not be used" in ended.said
        assert "Nothing suggests that more questions" not in page
    else:
        assert ended.status == 0, ended.said
    assert ("not counted, and left out of exports" in page) == bool(summary.get("doubtful"))
