"""A real language model that follows instructions, Qwen2.5-Coder-1.5B, through discover, enrich, compare and predicted
labels. `make test-slow` fetches it and a server for it (tests/install_qwen.sh).

What is asserted holds of every model that is worth asking: its labels are better than not looking, comparisons can be
used, nothing is sent twice in the same form, and a run that takes long says how far it is. TWOTHIRDS_NEWS is a folder
with news.csv (id, text) and truth.csv to take instead of those that were written for this test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.support.llama_server import MODEL, is_here, llama_server
from tests.support.news import TOPICS, write_news
from tests.support.recording_proxy import RecordingProxy, recording_proxy
from twothirds.reports.label_table import LabelTable

ROOT = Path(__file__).resolve().parents[3]
ANIMALS = 16
ZOO = {
    "feathers": "The animal has feathers.",
    "aquatic": "The animal lives in water.",
    "milk": "The animal gives milk to its young.",
    "airborne": "The animal can fly.",
}
LONGEST_SILENCE = 120  # seconds
MALFORMED = 0.05

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3500),
    pytest.mark.xdist_group("language model"),
    pytest.mark.skipif(not is_here(), reason="Qwen2.5-Coder is not here: tests/install_qwen.sh"),
]


class Data(NamedTuple):
    folder: Path
    table: Path
    features: Path
    truth: pd.DataFrame  # of these features, by id


class Ended(NamedTuple):
    status: int
    said: str
    silence: float  # seconds, the longest


@pytest.fixture(scope="module", name="server")
def _server() -> Iterator[RecordingProxy]:
    with llama_server() as url, recording_proxy(url) as proxy:
        yield proxy


@pytest.fixture(scope="module", name="zoo")
def _zoo(tmp_path_factory: pytest.TempPathFactory) -> Data:
    source, folder = ROOT / "datasets" / "zoo", tmp_path_factory.mktemp("zoo")
    chosen = np.sort(np.random.default_rng(7).permutation(101)[:ANIMALS])
    texts, truth = (pd.read_csv(source / name).iloc[chosen] for name in ("animals.csv", "truth.csv"))
    texts.to_csv(folder / "texts.csv", index=False)
    truth.to_csv(folder / "truth.csv", index=False)
    return Data(folder, folder / "texts.csv", _features(folder, ZOO), truth.set_index("id")[[*ZOO]])


@pytest.fixture(scope="module", name="news")
def _news(tmp_path_factory: pytest.TempPathFactory) -> Data:
    folder = tmp_path_factory.mktemp("news")
    given = os.environ.get("TWOTHIRDS_NEWS")
    if given:
        for name in ("news.csv", "truth.csv"):
            pd.read_csv(Path(given) / name).head(60).to_csv(folder / name, index=False)
    else:
        write_news(folder)
    truth = pd.read_csv(folder / "truth.csv").set_index("id")
    said = {name: TOPICS.get(name, f"The text is about {name.rpartition(': ')[2]}.") for name in map(str, truth)}
    return Data(folder, folder / "news.csv", _features(folder, said), truth)


def _features(folder: Path, said: dict[str, str]) -> Path:
    path = folder / "features.csv"
    pd.DataFrame({"name": [*said], "definition": [*said.values()]}).to_csv(path, index=False)
    return path


def run(data: Data, command: str, *words: str) -> Ended:
    """Of a new user, whose own store the folder holds."""
    homes = {f"XDG_{name}_HOME": str(data.folder / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    environment = {**os.environ, **homes, "PREFECT_HOME": str(data.folder / "prefect"), "OMP_NUM_THREADS": "1"}
    store = ("--store", f"sqlite:///{data.folder / 'store.sqlite'}")
    line = [sys.executable, "-m", "twothirds", command, str(data.table), *words, *store, "--yes"]
    said, silence, last = list[str](), 0.0, time.monotonic()
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=environment
    ) as process:
        assert process.stdout is not None
        for spoken in process.stdout:
            said.append(spoken)
            silence, last = max(silence, time.monotonic() - last), time.monotonic()
    assert "Traceback" not in "".join(said)
    return Ended(process.returncode, " ".join("".join(said).split()), max(silence, time.monotonic() - last))


def oracle(server: RecordingProxy, more: str = "") -> str:
    return f"openai:{MODEL}?base_url={server.url}&price=0,0&served_by=tests{more}"


def forms(bodies: list[dict[str, Any]]) -> list[str]:
    """What was sent, but for the seed."""
    return [json.dumps({name: body[name] for name in sorted(body) if name != "seed"}) for body in bodies]


def labels_of(folder: Path) -> pd.DataFrame:
    """By the names of the features, which are not always those of the columns."""
    table = LabelTable.from_arrow(pq.read_table(folder / "labels.parquet"))
    return table.frame().set_axis([feature.name for feature in table.features], axis=1)


def balanced(labels: pd.DataFrame, truth: pd.DataFrame) -> float:
    said, true = labels.loc[truth.index, truth.columns].to_numpy(float), truth.to_numpy(bool)
    return float(((said[true] == 1).mean() + (said[~true] == 0).mean()) / 2)


def test_a_discovery_finds_features_and_asks_nothing_twice(server: RecordingProxy, zoo: Data) -> None:
    out = zoo.folder / "discovered"
    words = ("--oracle", oracle(server), "--queries", "6", "--out", str(out))
    before = len(server.bodies)
    ended = run(zoo, "discover", *words)
    assert ended.status == 0, ended.said
    assert ended.silence < LONGEST_SILENCE
    sent = forms(server.bodies[before:])
    assert len(sent) == len(set(sent))
    summary = json.loads((out / "run.json").read_text(encoding="utf-8"))
    unusable = summary["unusable"]
    assert unusable["unusable_comparisons"] <= MALFORMED * unusable["comparisons"]
    assert unusable["unusable_labels"] <= MALFORMED * unusable["labels"]
    assert len(pd.read_csv(out / "features.csv")) >= 4
    asked = len(server.bodies)
    assert run(zoo, "discover", *words, "--replace").status == 0
    assert len(server.bodies) == asked  # all is stored


def test_labels_are_better_than_not_looking(server: RecordingProxy, zoo: Data) -> None:
    out = zoo.folder / "enriched"
    ended = run(zoo, "enrich", "--features", str(zoo.features), "--oracle", oracle(server), "--out", str(out))
    assert ended.status == 0, ended.said
    assert ended.silence < LONGEST_SILENCE
    labels = labels_of(out)
    assert labels[[*ZOO]].notna().all(axis=None)
    majority = pd.DataFrame({name: zoo.truth[name].mean() > 0.5 for name in ZOO}, index=zoo.truth.index)
    assert balanced(labels, zoo.truth) > max(balanced(majority, zoo.truth), 0.5) + 0.1


def test_a_comparison_with_the_truth_says_how_good_it_is(server: RecordingProxy, zoo: Data) -> None:
    out = zoo.folder / "compared"
    words = ("--features", str(zoo.features), "--votes", "1", "--comparisons", "2", "--out", str(out))
    ended = run(zoo, "compare", "--oracles", oracle(server), "simulated", *words)
    assert ended.status == 0, ended.said
    assert ended.silence < LONGEST_SILENCE
    comparison = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    model = next(one for one in comparison["quality"] if one["oracle"].startswith("openai"))
    truth = zoo.truth.to_numpy(bool)
    blind = float(np.maximum(truth.mean(0), 1 - truth.mean(0)).mean())
    assert model["majority"]["value"] > blind


def test_predicted_labels_of_news_agree_as_promised(server: RecordingProxy, news: Data) -> None:
    out = news.folder / "predicted"
    words = ("--features", str(news.features), "--oracle", oracle(server), "--agree", "0.8", "--out", str(out))
    before = len(server.bodies)
    ended = run(news, "enrich", *words)
    assert ended.status == 0, ended.said
    assert ended.silence < LONGEST_SILENCE
    labels = labels_of(out)
    assert labels[[*news.truth]].notna().all(axis=None)
    assert balanced(labels, news.truth) > 0.6
    sent = forms(server.bodies[before:])
    assert len(sent) == len(set(sent))
