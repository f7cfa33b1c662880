"""What CLIP ViT-B/16 finds in real pictures by 171 names, and how many of their labels its vectors predict.

The pictures are Tux Paint's stamps, with folders by kind and a caption each; *photographs* are those in no folder of
symbols or cartoons that have a caption. `tests/install_clip.sh` fetches them and the tower. The names with their
vectors are a folder with `names.txt` and `vectors.npy`, made by the text tower of the same model. Whole runs of the
command line, one vote, an empty store and cache; seconds include the tower and Prefect.

The rules were written before the first run. A name *has a truth* if at least three pictures have all of its words
(before a hyphen; in the singular) in their folders and caption together; those pictures are its truth. A picture may
show what nobody wrote down, so that a right *yes* can count as wrong. *Of all names* is the share that has a truth,
which naming by lot would reach. AUC is of the model's probabilities, balanced accuracy of its labels; chance is 0.5 for
either. The *nearest folder* of a feature is the one that its labels agree with best, by balanced accuracy; *by chance*
it is the nearest one of labels that are shuffled among the pictures, the mean of 200. What
less than a tenth of the pictures have is not *interesting* by the usual rule. Seconds of the second strategy are
without the tower. `python -m tests.support.readme_pictures --clip FOLDER` makes the picture of README.md of such a run.

Predicted labels: the features are the folders that hold and lack at least eight pictures, answered without errors by a
paid simulated crowd; the classifiers see the tower's vectors, or plain statistics of the pixels. *What is
not certified* is asked, or left empty. *Commoner answer* is the agreement of the same labels if each were its feature's
commoner answer."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.data import PAID_CROWD, feature_list
from benchmarks.machine import ROOT, tell
from benchmarks.results import Cell, RealModel, Table
from benchmarks.stamps import Stamp, Truth, folders_of, has_truth, having, read_stamps, write_stamps
from twothirds.discovery import UNKNOWN
from twothirds.models.contrastive import ContrastiveOracle
from twothirds.models.oracle import Feature
from twothirds.reports import Run
from twothirds.reports.label_table import LabelTable, Source
from twothirds.sources import load_dataset

PARTS = ROOT / ".venv" / "clip"
MODEL = "CLIP ViT-B/16: image tower (int8 ONNX), 171 names"
SHUFFLES = 200
STRATEGIES = ("auto", "adaptive-triple")  # the tower's seconds are those of the first
PLANS = ("ask", "leave")  # of --uncertified
QUICK = {"queries": 8, "only": "photographs"}
PREDICTED = ["pictures", "vectors", "what is not certified", "folders", "examples asked", "predicted", "of all labels"]
PREDICTED += ["agreement", "commoner answer", "seconds"]
FEATURES = ["feature", "truth", "labelled yes", "AUC", "balanced accuracy", "nearest folder", "its balanced accuracy"]
NAMING = ["pictures", "strategy", "questions", "features", "interesting and distinct", "with a truth", "of all names"]
NAMING += ["AUC", "balanced accuracy", "nearest folder", "by chance", "seconds"]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=Path, default=PARTS, help="the folder that tests/install_clip.sh has filled")
    parser.add_argument("--names", type=Path, help="folder of names.txt and vectors.npy (default: that of the parts)")
    parser.add_argument("--queries", type=int, default=35)
    parser.add_argument("--agree", type=float, default=0.95)
    parser.add_argument("--only", choices=["photographs", "all"])


@dataclass(frozen=True)
class Parts:
    tower: Path
    stamps: Path
    names: Path
    vectors: Path

    @classmethod
    def of(cls, folder: Path, names: Path | None) -> Parts:
        beside = names or folder
        parts = cls(folder / "tower.onnx", folder / "stamps", beside / "names.txt", beside / "vectors.npy")
        for path in (parts.tower, parts.stamps, parts.names, parts.vectors):
            if not path.exists():
                raise SystemExit(f"{path} is missing: run tests/install_clip.sh, and give --names FOLDER")
        return parts

    @property
    def oracle(self) -> str:
        return f"contrastive:{self.tower}?vocabulary={self.names}&vectors={self.vectors}"


def run(options: argparse.Namespace) -> list[Table]:
    parts = Parts.of(options.parts.resolve(), options.names and options.names.resolve())
    stamps = read_stamps(parts.stamps)
    sets = {"photographs": [stamp for stamp in stamps if stamp.is_photograph], "all": stamps}
    naming, predicted, tables = [], [], []
    for name, chosen in sets.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                work = Workplace.of(Path(folder), parts, chosen)
                for strategy in STRATEGIES:
                    tell(f"{name}: discovery, {strategy}")
                    named = discovered(work, strategy, options.queries)
                    naming.append([f"{name}, {len(chosen)}", strategy, *named.cells()])
                    if strategy == STRATEGIES[0]:
                        tables.append(Table(f"Features of the stamps that CLIP names: {name}", FEATURES, named.rows()))
                for vectors, embedder in (("tower", str(parts.tower)), ("pixels", None)):
                    for plan in PLANS:
                        tell(f"{name}: predicted labels by {vectors}, {plan}")
                        cells = predict(work, embedder, options.agree, plan).cells()
                        predicted.append([f"{name}, {len(chosen)}", vectors, plan, *cells])
    return [
        Table("Naming features of real pictures", NAMING, naming, real_models=[_named(row) for row in naming]),
        *tables,
        Table(
            f"Predicted labels of real pictures at {options.agree}",
            PREDICTED,
            predicted,
            real_models=[_predicted(row, options.agree) for row in predicted if row[1] == "tower"],
        ),
    ]


@dataclass(frozen=True)
class Workplace:
    folder: Path
    parts: Parts
    stamps: list[Stamp]

    @classmethod
    def of(cls, folder: Path, parts: Parts, stamps: list[Stamp]) -> Workplace:
        write_stamps(stamps, parts.stamps, folder / "stamps")
        return cls(folder, parts, stamps)

    def seconds_of(self, command: str, *words: str) -> float:
        """What a command of a new user takes."""
        homes = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("DATA", "STATE", "CACHE")}
        line = [sys.executable, "-m", "twothirds", command, str(self.folder / "stamps"), *words, "--yes"]
        started = time.monotonic()
        done = subprocess.run(line, check=False, capture_output=True, text=True, cwd=ROOT, env=os.environ | homes)
        if done.returncode:
            raise SystemExit(f"{command} failed: {done.stderr[-2000:]}")
        return round(time.monotonic() - started)

    def chances(self, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
        """By the oracle whose vectors the run has cached."""
        cache = self.folder / "cache" / "twothirds" / "embeddings"
        names_file, vectors = self.parts.names, self.parts.vectors
        oracle = ContrastiveOracle(self.parts.tower, vocabulary=names_file, vectors=vectors, cache=cache)
        examples = {example.id: example for example in load_dataset(str(self.folder / "stamps")).examples}
        features = [Feature(name, "") for name in names]
        shown = [examples[stamp.path] for stamp in self.stamps]
        wanted = np.ones((len(shown), len(features)), np.bool_)
        chances = oracle.compute(features, shown, 0, wanted).chances
        assert chances is not None
        return dict(zip(names, chances.T, strict=True))


@dataclass(frozen=True)
class Judged:
    name: str
    labels: Truth
    truth: Truth | None
    area: float
    balanced: float
    folder: str
    nearest: float
    by_chance: float  # of the nearest


@dataclass(frozen=True)
class Named:
    questions: int
    features: list[Judged]
    interesting: int  # and distinct
    share_of_names: str
    seconds: float

    def cells(self) -> list[Cell]:
        told = [feature for feature in self.features if feature.truth is not None]
        return [
            self.questions,
            len(self.features),
            self.interesting,
            len(told),
            self.share_of_names,
            *(_mean(told, figure) for figure in ("area", "balanced")),
            *(_mean(self.features, figure) for figure in ("nearest", "by_chance")),
            self.seconds,
        ]

    def rows(self) -> list[list[Cell]]:
        return [
            [
                feature.name,
                None if feature.truth is None else int(feature.truth.sum()),
                int(feature.labels.sum()),
                None if feature.truth is None else round(feature.area, 2),
                None if feature.truth is None else round(feature.balanced, 2),
                feature.folder,
                round(feature.nearest, 2),
            ]
            for feature in self.features
        ]


def _mean(features: Sequence[Judged], figure: str) -> Cell:
    return round(float(np.mean([getattr(feature, figure) for feature in features])), 3) if features else None


def discovered(work: Workplace, strategy: str, queries: int) -> Named:
    out = work.folder / strategy
    where = ("--out", str(out), "--store", f"sqlite:///{out}.sqlite")
    words = ("--oracle", work.parts.oracle, "--votes", "1", "--queries", str(queries), "--strategy", strategy)
    seconds = work.seconds_of("discover", *words, *where)
    run = Run(out)
    columns = dict(zip(run.features["name"].astype(str), run.features["column"], strict=True))
    labels, chances = run.labels, work.chances([*columns])
    rng, folders = np.random.default_rng(0), folders_of(work.stamps)
    judged = []
    for name, column in columns.items():
        said = np.array([labels.loc[stamp.path, column] == 1 for stamp in work.stamps])
        truth = having(work.stamps, name) if has_truth(work.stamps, name) else None
        judged.append(judge(name, said, chances[name], truth, folders, rng))
    vocabulary = work.parts.names.read_text(encoding="utf-8").split("\n")
    every = [name for name in vocabulary if name.strip()]
    told = sum(has_truth(work.stamps, name) for name in every)
    return Named(run.summary.queries, judged, run.summary.interesting_distinct, f"{told} of {len(every)}", seconds)


def judge(
    name: str,
    labels: Truth,
    chances: NDArray[np.float64],
    truth: Truth | None,
    folders: dict[str, Truth],
    rng: np.random.Generator,
) -> Judged:
    folder, nearest = nearest_folder(labels, folders)
    by_chance = [nearest_folder(rng.permutation(labels), folders)[1] for _ in range(SHUFFLES)]
    return Judged(
        name=name,
        labels=labels,
        truth=truth,
        area=np.nan if truth is None else area_under_curve(chances, truth),
        balanced=np.nan if truth is None else balanced(labels, truth),
        folder=folder,
        nearest=nearest,
        by_chance=float(np.mean(by_chance)),
    )


def nearest_folder(labels: Truth, folders: dict[str, Truth]) -> tuple[str, float]:
    held = np.stack(list(folders.values())).astype(float)
    inside, outside = held @ labels / held.sum(1), (1 - held) @ ~labels / (1 - held).sum(1)
    place = int(np.argmax(inside + outside))
    return list(folders)[place], float(inside[place] + outside[place]) / 2


def balanced(labels: Truth, truth: Truth) -> float:
    return float(labels[truth].mean() + (~labels[~truth]).mean()) / 2


def area_under_curve(chances: NDArray[np.float64], truth: Truth) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, chances))


@dataclass(frozen=True)
class Predicted:
    folders: int
    asked: int  # examples
    labels: int
    predicted: int
    right: int  # of them
    commoner: int  # that would be right if each were the commoner answer
    seconds: float

    def cells(self) -> list[Cell]:
        shares = [f"{count / self.predicted:.1%}" if self.predicted else None for count in (self.right, self.commoner)]
        of_all = f"{self.predicted / self.labels:.0%}"
        return [self.folders, self.asked, self.predicted, of_all, *shares, self.seconds]


def predict(work: Workplace, embedder: str | None, agree: float, plan: str) -> Predicted:
    folders = folders_of(work.stamps)
    features, out = work.folder / "features.csv", work.folder / f"{plan}-{embedder is None}"
    feature_list(features, list(folders))
    where = ("--out", str(out), "--store", f"sqlite:///{out}.sqlite")
    by = ("--embedder", embedder) if embedder else ()
    words = ("--features", str(features), "--oracle", PAID_CROWD, "--agree", str(agree), "--uncertified", plan)
    seconds = work.seconds_of("enrich", *words, *by, *where)
    table = LabelTable.from_arrow(pq.read_table(out / "labels.parquet"))
    rows = {name: row for row, name in enumerate(table.ids)}
    table = table.take([rows[stamp.path] for stamp in work.stamps])
    places = {feature.name: place for place, feature in enumerate(table.features)}
    predicted = right = commoner = 0
    asked = np.zeros(len(table.ids), np.bool_)
    for name, held in folders.items():
        value, made = table.value[places[name]], table.source[places[name]] == Source.PREDICTED
        predicted += int(made.sum())
        right += int((value[made] == held[made]).sum())
        commoner += int((held[made] == (held.mean() > 0.5)).sum())
        asked |= (value != UNKNOWN) & ~made
    return Predicted(
        folders=len(folders),
        asked=int(asked.sum()),
        labels=len(folders) * len(table.ids),
        predicted=predicted,
        right=right,
        commoner=commoner,
        seconds=seconds,
    )


def _named(row: list[Cell]) -> RealModel:
    cells = dict(zip(NAMING, row, strict=True))
    figure = (
        f"{cells['features']} features in {cells['questions']} questions by {cells['strategy']}, "
        f"{cells['with a truth']} with a truth in folders or captions "
        f"(names by lot: {cells['of all names']}); AUC {cells['AUC']} and balanced accuracy "
        f"{cells['balanced accuracy']} (chance 0.5); {cells['seconds']} s"
    )
    shows_not = "names of its own: they come from a list; cut-out objects on white are easier than scenes"
    return RealModel(MODEL, f"Tux Paint stamps: {cells['pictures']}", figure, shows_not)


def _predicted(row: list[Cell], agree: float) -> RealModel:
    cells = dict(zip(PREDICTED, row, strict=True))
    figure = (
        f"{cells['predicted']:,} labels predicted at {agree}: {cells['of all labels']} of {cells['folders']} folders × "
        f"pictures, {cells['examples asked']} pictures asked (--uncertified {cells['what is not certified']})"
    )
    if cells["agreement"]:
        figure += f"; agreement {cells['agreement']}, of the commoner answer {cells['commoner answer']}"
    shows_not = "an oracle that errs: the folders are answered without errors; one order of the pictures"
    return RealModel(
        "CLIP ViT-B/16's image tower as embedder", f"Tux Paint stamps: {cells['pictures']}", figure, shows_not
    )
