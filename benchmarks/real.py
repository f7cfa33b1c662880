"""What a language model of 1.5 billion parameters does in the whole program: labels, comparisons, discoveries.

Qwen2.5-Coder-1.5B-Instruct (Q4), served by llama.cpp on this machine; `tests/install_qwen.sh` fetches both. `--url` and
`--model` name another server. Data besides the animals that ship are given as a CSV file of an id column and 0/1
columns, with `--texts` (id, text), else the ids are the texts; `--votes` are people's 0/1 by example, feature and
person. Everything is asked at temperature 0, and answers are kept in `--store`: a repetition asks for nothing.

Wordings were chosen on animals of zoo: of labels on five others, by seed 7; of comparisons on other triples, by seeds
71 and 72, in which some of the same animals may be.
The rules were written before the first run. *Labels*: examples and features by lot, features that 10 to 90 % of all
examples have; what the model is asked is the sentence "It is true of the animal: NAME.", for the animals that ship one
written by hand. The *plain question* is the text, that sentence, and "Is that true of this animal? Answer yes or no.",
read from the probabilities of the next token. *Not looking* says each feature's majority among all examples. Balanced
accuracy is of all labels together, what is missing counts as wrong; intervals (95 %) resample examples. *Yes lost* is
the share of the yes of the same labels asked each for a value that a list leaves out. *Calibrated* is the balanced
accuracy by a threshold that is, for each example, the best for all others, and the one that is best for all.

*Comparisons*: three examples by lot, one reply each, without any repair; *malformed* is a reply that names nothing that
can be used. A name *splits* the three if the model's own labels, one a request, say yes to one or two of them; *as
said* if they are those that the reply says.

*Discoveries*: whole runs of the command line. A feature is *sensible* by name, if its words, in the singular, hold all
words of a column or are all among them, or by labels, if they agree with a column by a balanced accuracy of at least
0.75 that fewer than one in twenty shuffles of the same labels among the examples reach with any column. *At equal
requests* counts what each strategy had labelled when the shorter run ended."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.machine import ROOT, tell
from benchmarks.results import Cell, RealModel, Table
from benchmarks.stamps import words_of
from tests.support.llama_server import CACHE, MODEL, is_here, llama_server
from twothirds.discovery import UNKNOWN, Kind
from twothirds.discovery.statistics import best_threshold, wilson
from twothirds.models.oracle import Compare, Feature, Label, Verdict, digest_of
from twothirds.models.prompting import (
    Listing,
    Message,
    Reading,
    arranged,
    label_chances,
    label_form,
    next_word,
    parse_labels,
    single_form,
)
from twothirds.reports import Run
from twothirds.sources import Example

Matrix = NDArray[np.bool_]
PARTS = ("labels", "comparisons", "discoveries")
PLAIN, ONE, TWENTY = "plain question, next token", "one label a request, next token", "20 a request"
FORMS: dict[str, tuple[int, Listing]] = {  # of labels that share a request
    TWENTY: (20, "each"),
    "20 a request, names that hold": (20, "names"),
    "20 a request, numbers that hold": (20, "numbers"),
    "5 a request": (5, "each"),
}
KINDS = {Kind.TWO_OF_THREE.value: 1, Kind.SHARED.value: 3}  # of comparisons, and the names that each may give
STRATEGIES = ("auto", "adaptive-triple")
QUICK = {"examples": 3, "features": 5, "triples": 3, "queries": 2, "compared": 8}
LOGPROBS = {"logprobs": True, "top_logprobs": 5}
DRAWS, SHUFFLES = 1_000, 200
LEAST_AGREEMENT, SHARES = 0.75, (0.1, 0.9)
SECONDS = 600  # that a reply may take
KNOWN = 8  # names that every other comparison lists
LABELS = ["data", "asked", "labels", "balanced accuracy", "against the plain question", "yes", "AUC", "missing"]
LABELS += ["yes lost", "tokens written", "calibrated"]
COMPARED = ["data", "asked", "questions", "malformed", "none", "repeats", "names", "split the three", "as said"]
RUNS = ["data", "strategy", "questions", "requests", "features", "repeats or none", "unusable", "sensible", "by name"]
RUNS += ["at equal requests"]
FOUND = ["data", "strategy", "feature", "yes", "column by name", "nearest column", "its balanced accuracy", "by chance"]
ANIMALS = {  # columns of datasets/zoo/truth.csv as sentences
    "hair": "The animal has hair or fur.",
    "feathers": "The animal has feathers.",
    "eggs": "The animal lays eggs.",
    "milk": "The animal gives milk to its young.",
    "airborne": "The animal can fly.",
    "aquatic": "The animal lives in water.",
    "predator": "The animal hunts other animals.",
    "toothed": "The animal has teeth.",
    "backbone": "The animal has a backbone.",
    "breathes": "The animal breathes air.",
    "venomous": "The animal is venomous.",
    "fins": "The animal has fins.",
    "tail": "The animal has a tail.",
    "domestic": "The animal is domestic.",
    "catsize": "The animal is as large as a cat or larger.",
    "no legs": "The animal has no legs.",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", type=Path, help="CSV file of an id column and 0/1 columns")
    parser.add_argument("--texts", type=Path, help="CSV file with the columns id and text")
    parser.add_argument("--votes", type=Path, help="CSV file: example, feature, and a column for each person")
    parser.add_argument("--examples", type=int, default=12, help="that are labelled in every form")
    parser.add_argument("--features", type=int, default=20, help="columns that are labelled in every form")
    parser.add_argument("--triples", type=int, default=40, help="comparisons of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="of comparisons")
    parser.add_argument("--strategy", choices=STRATEGIES, action="append", help="of discoveries")
    parser.add_argument("--queries", type=int, default=12, help="questions of a discovery")
    parser.add_argument("--compared", type=int, default=30, help="examples of a discovery")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--url", help="of another server")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--threads", type=int, default=1, help="of the server that is started")
    parser.add_argument("--store", type=Path, default=CACHE / "twothirds" / "real", metavar="FOLDER")


def run(options: argparse.Namespace) -> list[Table]:
    if not (options.url or is_here()):
        raise SystemExit("no model is here: run tests/install_qwen.sh, or give --url and --model")
    data = Data.of(options)
    options.store.mkdir(parents=True, exist_ok=True)
    tables: list[Table] = []
    with nullcontext(options.url) if options.url else llama_server(threads=options.threads) as url:
        for part in options.only or PARTS:
            tables += MEASURES[part](Server(str(url), options.model, options.store.resolve()), data, options)
    return tables


@dataclass(frozen=True)
class Data:
    name: str
    examples: list[Example]
    truth: pd.DataFrame  # by id, of 0 and 1
    people: NDArray[np.float64] | None  # how many of all say yes, in the order of the truth

    @classmethod
    def of(cls, options: argparse.Namespace) -> Data:
        table = options.data or ROOT / "datasets" / "zoo" / "truth.csv"
        truth = pd.read_csv(table)
        truth = truth.set_index(truth.columns[0])
        truth = truth.loc[:, truth.isin([0, 1]).all()].astype(bool)
        texts = options.texts or (None if options.data else table.with_name("animals.csv"))
        if texts:
            said = pd.read_csv(texts).set_index("id")["text"].to_dict()
        else:
            said = {name: str(name) for name in truth.index}
        examples = [
            Example(str(name), hashlib.sha256(said[name].encode()).hexdigest(), text=said[name]) for name in truth.index
        ]
        people = None
        if options.votes:
            votes = pd.read_csv(options.votes)
            counted = votes.set_index(list(votes.columns[:2])).mean(axis=1).unstack()
            people = counted.loc[truth.index, truth.columns].to_numpy(float)
        return cls(table.stem if options.data else "zoo", examples, truth, people)

    def feature(self, column: str) -> Feature:
        return Feature(column, ANIMALS.get(column, f"It is true of the animal: {column}."))

    def some_columns(self, count: int, rng: np.random.Generator) -> list[str]:
        shares = self.truth.mean()
        common = [str(name) for name in shares.index[shares.between(*SHARES)]]
        return [common[place] for place in sorted(rng.permutation(len(common))[:count])]


@dataclass
class Server:
    """Replies are kept in a file: what was asked before is not sent again."""

    url: str
    model: str
    folder: Path

    @cached_property
    def _path(self) -> Path:
        return self.folder / f"replies-{self.model.replace('/', '-')}.jsonl"

    @cached_property
    def _known(self) -> dict[str, dict[str, Any]]:
        if not self._path.exists():
            return {}
        return dict(json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines())

    def reply(self, body: dict[str, Any]) -> Reply:
        body = {"model": self.model, "temperature": 0, **body}
        digest = digest_of(body)
        if digest not in self._known:
            url = f"{self.url}/chat/completions"
            reply = httpx.post(url, json=body, timeout=SECONDS).raise_for_status().json()
            self._known[digest] = {name: reply[name] for name in ("choices", "usage")}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([digest, self._known[digest]]) + "\n")
        reply = self._known[digest]
        (choice,) = reply["choices"]
        tokens = (choice.get("logprobs") or {}).get("content")
        return Reply(choice["message"]["content"], choice["finish_reason"] == "length", tokens, reply["usage"])

    def plain(self, text: str) -> float:
        """The probability that a plain question is answered by yes; NaN where it is neither yes nor no."""
        return self._next_word([{"role": "user", "content": text}])

    def label(self, feature: Feature, example: Example) -> float:
        """The same of a label that is alone in its request."""
        return self._next_word(_sent(label_form([Label(feature, example)]).messages))

    def _next_word(self, messages: list[dict[str, str]]) -> float:
        chance = next_word(self.reply({"messages": messages, "max_tokens": 1, **LOGPROBS}).tokens)
        return math.nan if chance is None else chance

    def labels(self, labels: Sequence[Label], listing: Listing) -> tuple[list[tuple[float, float]], Usage]:
        """1, 0, or NaN where the reply has no such label; and the probabilities of yes, or NaN."""
        together = arranged(labels)
        form = label_form(together, listing=listing)
        more = LOGPROBS if listing == "each" else {}
        reply = self._formed(form.messages, "labels", form.schema, 30 + 20 * len(labels), more)
        values = parse_labels(reply.text, form.paths, complete=not reply.is_cut)
        chances = label_chances(reply.text, form.paths, reply.tokens)
        found = {
            label: (values.get(place, math.nan), chances.get(place, math.nan)) for place, label in enumerate(together)
        }
        return [found[label] for label in labels], reply.usage

    def compare(self, question: Compare) -> Reading:
        form = single_form(question)
        return form.read(self._formed(form.messages, form.name, form.schema, form.most_tokens).text)

    def _formed(
        self,
        messages: Sequence[Message],
        name: str,
        schema: dict[str, Any] | None,
        most_tokens: int,
        more: Mapping[str, Any] | None = None,
    ) -> Reply:
        formed = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
        asked: dict[str, Any] = {"messages": _sent(messages), "max_tokens": most_tokens, "response_format": formed}
        return self.reply({**asked, **(more or {})})


def _sent(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]


Usage = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    text: str
    is_cut: bool
    tokens: object
    usage: Usage


@dataclass(frozen=True)
class Told:
    """Labels by example and feature: 1, 0, or NaN where one is missing."""

    values: NDArray[np.float64]
    chances: NDArray[np.float64] | None = None
    written: float | None = None  # tokens of a reply for each label

    @classmethod
    def by_chances(cls, chances: NDArray[np.float64]) -> Told:
        return cls(np.where(np.isnan(chances), np.nan, chances > 0.5), chances, 1.0)


def labelled(server: Server, data: Data, options: argparse.Namespace) -> list[Table]:
    rng = np.random.default_rng([options.seed, 1])
    rows = np.sort(rng.permutation(len(data.examples))[: options.examples])
    columns = data.some_columns(options.features, rng)
    examples, features = [data.examples[row] for row in rows], [data.feature(name) for name in columns]
    truth = data.truth.iloc[rows][columns].to_numpy()
    told = {}
    tell(f"{data.name}: {PLAIN}")
    asked_plainly = "Is that true of this animal? Answer yes or no."
    told[PLAIN] = Told.by_chances(
        np.array([[server.plain(f"{x.text}\n{f.definition} {asked_plainly}") for f in features] for x in examples])
    )
    tell(f"{data.name}: {ONE}")
    told[ONE] = Told.by_chances(np.array([[server.label(f, x) for f in features] for x in examples]))
    for name, (size, listing) in FORMS.items():
        tell(f"{data.name}: {name}")
        told[name] = _together(server, examples, features, size, listing)
    majority = (data.truth[columns].mean() > 0.5).to_numpy()
    told["not looking"] = Told(np.broadcast_to(majority, truth.shape).astype(float))
    everyone = [told[PLAIN], told[TWENTY]]
    table = [[data.name, name, truth.size, *_figures(found, truth, *everyone)] for name, found in told.items()]
    notes = [f"Truth is yes for {truth.mean():.2f} of the labels."]
    if data.people is not None:
        people = data.people[rows][:, data.truth.columns.get_indexer(pd.Index(columns))]
        clear = np.isin(people, (0.0, 1.0))
        rights = {name: np.mean(found.values[clear] == people[clear]) for name, found in told.items()}
        shares = ", ".join(f"{name} {right:.3f}" for name, right in rights.items())
        notes.append(f"Of the {clear.sum()} labels on which all people agree, right are: {shares}.")
    *asked_forms, blind = table
    real = [RealModel(server.model, *_row(row, truth.mean(), blind)) for row in asked_forms]
    return [Table(f"Labels of a language model: {data.name}", LABELS, table, notes, real_models=real)]


def _row(row: Sequence[Cell], truth: float, blind: Sequence[Cell]) -> tuple[str, str, str]:
    cells, without = (dict(zip(LABELS, found, strict=True)) for found in (row, blind))
    figure = (
        f"labels, {cells['asked']}: balanced accuracy {cells['balanced accuracy']}, not looking "
        f"{without['balanced accuracy'].split()[0]}"
    )
    if cells["against the plain question"]:
        figure += f"; against the plain question {cells['against the plain question']}"
    figure += f"; says yes to {cells['yes']} (truth {truth:.2f})"
    for name in ("AUC", "calibrated", "yes lost"):
        if cells[name]:
            figure += f"; {name} {cells[name]}"
    return f"{cells['data']}, {cells['labels']} labels", figure, "larger models; other wordings of the features"


def _together(
    server: Server, examples: Sequence[Example], features: Sequence[Feature], size: int, listing: Listing
) -> Told:
    rows, written = [], 0
    for example in examples:
        row: list[tuple[float, float]] = []
        for start in range(0, len(features), size):
            labels = [Label(feature, example) for feature in features[start : start + size]]
            found, usage = server.labels(labels, listing)
            row += found
            written += usage["completion_tokens"]
        rows.append(row)
    values, chances = np.moveaxis(np.array(rows), -1, 0)
    per_label = written / (len(examples) * len(features))
    return Told(values, None if np.isnan(chances).all() else chances, per_label)


def _figures(told: Told, truth: Matrix, plain: Told, each: Told) -> list[Cell]:
    def accuracy(rows: NDArray[np.intp]) -> float:
        return balanced(told.values[rows], truth[rows])

    def difference(rows: NDArray[np.intp]) -> float:
        return accuracy(rows) - balanced(plain.values[rows], truth[rows])

    yes = each.values == 1
    return [
        interval(accuracy, len(truth)),
        "" if told is plain else interval(difference, len(truth)),
        round(float(np.nanmean(told.values)), 2),
        None if told.chances is None else round(_area(told.chances, truth), 3),
        int(np.isnan(told.values).sum()),
        f"{np.mean(told.values[yes] == 0):.1%}" if yes.any() and told is not each else "",
        None if told.written is None else round(told.written, 1),
        _calibrated(told, truth),
    ]


def balanced(values: NDArray[np.float64], truth: Matrix) -> float:
    """A label that is missing is wrong."""
    if truth.all() or not truth.any():
        return math.nan
    return float((values[truth] == 1).mean() + (values[~truth] == 0).mean()) / 2


def interval(figure: Callable[[NDArray[np.intp]], float], count: int) -> str:
    rng = np.random.default_rng(0)
    drawn = [figure(rng.integers(0, count, count)) for _ in range(DRAWS)]
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return f"{figure(np.arange(count)):.3f} ({low:.3f} to {high:.3f})"


def _area(chances: NDArray[np.float64], truth: Matrix) -> float:
    from sklearn.metrics import roc_auc_score

    known = ~np.isnan(chances)
    return float(roc_auc_score(truth[known], chances[known]))


def _calibrated(told: Told, truth: Matrix) -> str:
    """What the best threshold reaches, and which it is."""
    if told.chances is None:
        return ""
    labels = np.where(np.isnan(told.values), UNKNOWN, told.values).astype(np.int8)
    found = best_threshold(told.chances.T, labels.T, truth.T.astype(np.int8))
    return "" if found is None else f"{found.balanced:.3f} from {found.value}"


def compared(server: Server, data: Data, options: argparse.Namespace) -> list[Table]:
    """Of the kinds that the default strategy and the paper's ask."""
    tables = []
    for kind in options.kind or KINDS:
        most = KINDS[kind]
        rng, asked, known = np.random.default_rng([options.seed, 2]), list[tuple[Compare, Reading]](), list[str]()
        for number in range(options.triples):
            three = tuple(data.examples[place] for place in rng.permutation(len(data.examples))[:3])
            listed = tuple(known[-KNOWN:]) if number % 2 else ()
            question = Compare(Kind(kind), three, known=listed, most=most)
            reading = server.compare(question)
            asked.append((question, reading))
            known += [name for name in _names(reading) if name not in known]
            tell(f"{data.name}: {kind} {number + 1}: {reading.verdict.value} {_names(reading)}")
        row = [data.name, f"{kind}, up to {most}", *_compared(server, asked)]
        cells = dict(zip(COMPARED, row, strict=True))
        found = RealModel(
            server.model,
            f"{data.name}, {len(asked)} comparisons of three by lot",
            f"{cells['asked']}: malformed {cells['malformed']}; {cells['none']} none, {cells['repeats']} repeat a "
            f"known name; names that split the three {cells['split the three']}, as said {cells['as said']}",
            "examples that a strategy chooses; larger models",
        )
        said = ", ".join(name for _, reading in asked for name in _names(reading))
        title = f"Comparisons of a language model: {data.name}, {kind}"
        tables.append(Table(title, COMPARED, [row], [f"Names: {said}."], real_models=[found]))
    return tables


def _names(reading: Reading) -> list[str]:
    return [] if reading.feature is None else [reading.feature.name, *(named.feature.name for named in reading.more)]


def _compared(server: Server, asked: Sequence[tuple[Compare, Reading]]) -> list[Cell]:
    verdicts = [reading.verdict for _, reading in asked]
    repeats = said = split = judged = right = 0
    for question, reading in asked:
        repeats += reading.repeats
        if reading.feature is None or reading.repeats:
            continue
        named = [(reading.feature, reading.shown), *((more.feature, more.shown) for more in reading.more)]
        for feature, shown in named:
            said += 1
            yes = tuple(place for place, one in enumerate(question.examples) if server.label(feature, one) > 0.5)
            split += 0 < len(yes) < len(question.examples)
            judged += bool(shown)
            right += bool(shown) and yes == shown
    malformed = sum(verdict in (Verdict.UNREADABLE, Verdict.REFUSED) for verdict in verdicts)
    cells: list[Cell] = [len(asked), _share(malformed, len(asked)), verdicts.count(Verdict.NONE), repeats, said]
    return [*cells, _share(split, said), _share(right, judged)]


def _share(part: int, total: int) -> str:
    if not total:
        return "0 of 0"
    low, high = wilson(part, total)
    return f"{part} of {total}: {part / total:.0%} ({low:.0%} to {high:.0%})"


@dataclass(frozen=True)
class Found:
    name: str
    values: NDArray[np.float64]
    requests: int  # of the run when its last label came
    truth: pd.DataFrame

    @cached_property
    def column(self) -> str:
        """The column that it names."""
        own = words_of(self.name)
        for name in self.truth:
            words = words_of(str(name).partition("(")[0])
            if words and own and (words <= own or own <= words):
                return str(name)
        return ""

    @cached_property
    def nearest(self) -> tuple[str, float]:
        rights = self._rights(self.values)
        place = int(np.nanargmax(rights))
        return str(self.truth.columns[place]), float(rights[place])

    @cached_property
    def by_chance(self) -> float:
        """What one in twenty shuffles reach."""
        rng = np.random.default_rng(0)
        return float(
            np.quantile([np.nanmax(self._rights(rng.permutation(self.values))) for _ in range(SHUFFLES)], 0.95)
        )

    @property
    def is_sensible(self) -> bool:
        return bool(self.column) or self.nearest[1] >= max(LEAST_AGREEMENT, self.by_chance)

    def _rights(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        truth = self.truth.to_numpy(float)
        with np.errstate(invalid="ignore"):
            yes = truth.T @ (values == 1) / truth.sum(0)
            no = (1 - truth).T @ (values == 0) / (1 - truth).sum(0)
        return np.asarray((yes + no) / 2)


def discovered(server: Server, data: Data, options: argparse.Namespace) -> list[Table]:
    rng = np.random.default_rng([options.seed, 3])
    rows = np.sort(rng.permutation(len(data.examples))[: options.compared])
    examples = [data.examples[row] for row in rows]
    folder = server.folder / f"{data.name}-{len(examples)}-{options.queries}-{options.seed}"
    folder.mkdir(exist_ok=True)
    texts = pd.DataFrame({"id": [x.id for x in examples], "text": [x.text for x in examples]})
    texts.to_csv(folder / "texts.csv", index=False)
    runs = {}
    for strategy in options.strategy or STRATEGIES:
        tell(f"{data.name}: discovery, {strategy}")
        runs[strategy] = _run(server, folder, strategy, data.truth.iloc[rows], options)
    shorter = min(found.requests for found in runs.values())
    table: list[list[Cell]] = [[data.name, name, *found.cells(shorter)] for name, found in runs.items()]
    every = [[data.name, name, *row] for name, found in runs.items() for row in found.rows()]
    real = [
        RealModel(
            server.model,
            f"{data.name}, {len(examples)} examples",
            f"{row[1]}: {row[4]} features in {row[2]} questions, sensible {row[7]}; {row[9]} at equal requests",
            "whether people would call them sensible: names and labels were held against columns",
        )
        for row in table
    ]
    return [
        Table(f"Discoveries of a language model: {data.name}", RUNS, table, real_models=real),
        Table(f"Features that a language model found: {data.name}", FOUND, every),
    ]


@dataclass(frozen=True)
class Discovery:
    questions: int
    none: int  # answers that name nothing new
    unusable: int
    requests: int
    found: list[Found]

    def cells(self, at_most: int) -> list[Cell]:
        sensible = [feature for feature in self.found if feature.is_sensible]
        equal = [feature for feature in self.found if feature.requests <= at_most]
        good = sum(feature.is_sensible for feature in equal)
        return [
            self.questions,
            self.requests,
            len(self.found),
            self.none,
            self.unusable,
            _share(len(sensible), len(self.found)),
            sum(bool(feature.column) for feature in self.found),
            f"{good} sensible of {len(equal)} in {at_most} requests",
        ]

    def rows(self) -> list[list[Cell]]:
        return [
            [
                feature.name,
                int(np.nansum(feature.values)),
                feature.column,
                feature.nearest[0],
                round(feature.nearest[1], 2),
                round(feature.by_chance, 2),
            ]
            for feature in self.found
        ]


def _run(server: Server, folder: Path, strategy: str, truth: pd.DataFrame, options: argparse.Namespace) -> Discovery:
    out = folder / strategy
    oracle = f"openai:{server.model}?base_url={server.url}&price=0,0&served_by=benchmark&concurrency=2"
    words = ("--oracle", oracle, "--queries", str(options.queries), "--strategy", strategy, "--seed", str(options.seed))
    where = ("--out", str(out), "--replace", "--store", f"sqlite:///{folder / 'store.sqlite'}", "--yes")
    homes = {f"XDG_{name}_HOME": str(server.folder / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    line = [sys.executable, "-m", "twothirds", "discover", str(folder / "texts.csv"), *words, *where]
    done = subprocess.run(line, check=False, stdout=subprocess.DEVNULL, cwd=ROOT, env=os.environ | homes)
    if done.returncode:
        raise SystemExit(f"discover has ended with status {done.returncode}")
    run = Run(out)
    ended, questions, none, unusable, requests = dict[str, int](), 0, 0, 0, 0
    for line_read in (out / "answers.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line_read)
        question, answer = asked["question"], asked["answer"]
        requests += answer["usage"][0]
        if "examples" in question:
            questions += 1
            none += answer["verdict"] == "none" or bool(answer["feature"] and answer["feature"][0] in question["known"])
            unusable += answer["verdict"] in ("unreadable", "refused")
        elif "feature" in question:
            ended[str(question["feature"])] = requests
    known = truth.loc[:, truth.any() & ~truth.all()]
    labels, columns = run.labels.loc[truth.index.astype(str)], run.features[["name", "column"]].astype(str)
    found = [
        Found(name, labels[column].to_numpy(float), ended.get(name, requests), known)
        for name, column in columns.itertuples(index=False)
    ]
    return Discovery(questions, none, unusable, requests, found)


MEASURES = {"labels": labelled, "comparisons": compared, "discoveries": discovered}
