"""What `estimate` says that a run will cost, and what the lifelike server then books.

Every case is estimated before anything is sent, and run. *likely : booked* is of the price that is likely for as many
features as were found, because how many are found is left to chance; the columns before it are what was said
beforehand. The server counts tokens by OpenAI's rules, replies in prose, fails and repeats itself as a real one does.
Within 25 % is aimed at, and *at most* must never be exceeded."""

from __future__ import annotations

import argparse
import csv
import io
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from benchmarks.cases import at_least_one
from benchmarks.machine import tell
from benchmarks.results import Cell, Table
from tests.support.fake_openai import Abilities, Failings, LifelikeServer
from twothirds.flows.discover.forecast import price_of
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.flows.enrich.flow import enrich_with
from twothirds.flows.enrich.forecast import forecast_enrichment
from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.flows.estimate import LIKELY, Estimate
from twothirds.models.oracle import MICRO
from twothirds.models.prices import Price
from twothirds.sources import load_dataset, open_image

FACES, ZOO = "datasets/faces", "datasets/zoo"
PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
QUICK = {"examples": 24, "queries": 6}
ALLOWED = 0.25  # of the likely price beside what is booked
MODELS = ("gpt-4o-mini", "gpt-4o", "gpt-4.1-mini")
ROWS_AT_THE_END = {"elicit_on": 24, "label_rest": True}  # most examples are estimated by a sample of them


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[Path], str]  # the data set, in a folder of its own
    model: str = "gpt-4o-mini"
    settings: dict[str, Any] = field(default_factory=dict)
    features: int = 0  # of an enrichment, which discovers none


@dataclass(frozen=True)
class Outcome:
    case: str
    estimate: Estimate
    spent: int
    features: int
    as_found: int = 0  # what is likely for as many features as were found

    @property
    def ratio(self) -> float:
        """Of the likely price to what was booked, for as many features."""
        return (self.as_found or self.estimate.likely) / self.spent

    @property
    def row(self) -> list[Cell]:
        estimate = self.estimate
        money = (estimate.likely, estimate.at_most, self.spent)
        return [
            self.case,
            *(round(amount / MICRO, 4) for amount in money),
            [estimate.features, self.features],
            round(self.ratio, 2),
            round(estimate.at_most / estimate.likely, 1),
        ]


COLUMNS = ["case", "likely USD", "at most", "booked", "features likely / found", "likely : booked", "most : likely"]


def copy_truth(dataset: str, folder: Path, names: dict[str, str]) -> None:
    """Of examples by their new names."""
    heading_line, *lines = Path(dataset, "truth.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    known = dict(line.split(",", 1) for line in lines)
    kept = [f"{name},{known[old]}" for name, old in names.items()]
    (folder / "truth.csv").write_text(heading_line + "".join(kept), encoding="utf-8")


def pictures(form: str, side: tuple[int, int], examples: int) -> Callable[[Path], str]:
    """Faces as pictures of that form and of sizes between these; once all are used, again in other sizes."""

    def make(folder: Path) -> str:
        faces, dice = load_dataset(FACES).examples, random.Random(0)
        (folder / "images").mkdir(parents=True)
        names: dict[str, str] = {}
        for number in range(examples):
            example = faces[number % len(faces)]
            name = example.id if number < len(faces) else f"{example.id}-{number}"
            width = dice.randint(*side)
            picture = open_image(example).resize((width, width * dice.randint(50, 100) // 100))
            picture.save(folder / "images" / f"{name}.{form}")
            names[name] = example.id
        lines = [f"images/{name}.{form},{name}\n" for name in names]
        (folder / "metadata.csv").write_text("file_name,id\n" + "".join(lines), encoding="utf-8")
        copy_truth(FACES, folder, names)
        return str(folder)

    return make


def parquet(examples: int) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        import pandas

        folder.mkdir(parents=True)
        faces = load_dataset(FACES).examples[:examples]
        rows = {
            "id": [example.id for example in faces],
            "image": [{"bytes": example.image_bytes(), "path": None} for example in faces],
        }
        pandas.DataFrame(rows).to_parquet(folder / "faces.parquet")
        copy_truth(FACES, folder, {example.id: example.id for example in faces})
        return str(folder / "faces.parquet")

    return make


def texts(sentences: int, examples: int) -> Callable[[Path], str]:
    """Animals by the first so many words of their descriptions, or with sentences of others added."""

    def make(folder: Path) -> str:
        folder.mkdir(parents=True)
        zoo, dice = load_dataset(ZOO).examples[:examples], random.Random(0)
        lines = io.StringIO()
        rows = csv.writer(lines)
        rows.writerow(["id", "text"])
        for example in zoo:
            own = (example.text or "").split(". ")
            more = [dice.choice(dice.choice(zoo).text.split(". ")) for _ in range(sentences - len(own))]  # type: ignore[union-attr]
            rows.writerow([example.id, ". ".join([*own, *more][:sentences])])
        (folder / "animals.csv").write_text(lines.getvalue(), encoding="utf-8")
        copy_truth(ZOO, folder, {example.id: example.id for example in zoo})
        return str(folder / "animals.csv")

    return make


def cases(examples: int, queries: int) -> list[Case]:
    few = {"queries": queries}
    return [
        Case("PNG", pictures("png", (96, 96), examples), settings=few),
        Case("JPEG of many sizes, patches", pictures("jpg", (200, 1400), examples), "gpt-4.1-mini", few),
        Case("WebP, gpt-4o", pictures("webp", (300, 900), examples), "gpt-4o", few),
        Case("Parquet", parquet(examples), settings=few),
        Case("texts, short", texts(1, examples), settings=few),
        Case("texts, long", texts(60, examples), settings=few),
        Case("PNG, three votes", pictures("png", (96, 96), examples), settings={**few, "votes": 3}),
        Case("texts, three votes", texts(2, examples), settings={**few, "votes": 3}),
        Case(
            "PNG, rows at the end", pictures("png", (64, 128), max(160, examples)), settings={**few, **ROWS_AT_THE_END}
        ),
        Case("enrich, PNG, 33 features", pictures("png", (96, 96), examples), features=33),
        Case("enrich, texts, 20 features", texts(2, examples), features=20),
    ]


@contextmanager
def server_of(dataset: str, habits: Failings) -> Iterator[LifelikeServer]:
    with LifelikeServer(load_dataset(dataset), habits, price=PRICE, abilities=Abilities(models=MODELS)) as server:
        yield server


def outcome_of(case: Case, folder: Path, habits: Failings | None = None) -> Outcome:
    dataset = case.make(folder / "data")
    with server_of(dataset, habits or Failings(slow=0.0)) as server:
        terms = f"base_url={server.base_url}&price=0.15,0.60,0.075&retry_delay=0.01"
        shared = {"dataset": dataset, "oracle": f"openai:{case.model}?{terms}", "store": str(folder / "store.sqlite")}
        with mock.patch.dict("os.environ", {"XDG_CACHE_HOME": str(folder / "cache")}):
            if case.features:
                return _enriched(case, folder, shared, server)
            settings = DiscoverSettings(**shared, **case.settings, out=str(folder / "run"))
            prepared = prepare(settings)
            estimate = price_of(prepared)
            assert not server.requests, "an estimate has sent something"
            outcome = run_discovery(prepared, run_id=str(uuid4()))
            found = len(outcome.progress.findings)
            fresh = prepare(settings.model_copy(update={"store": str(folder / "empty.sqlite")}))
            asked = fresh.profile.queries * fresh.profile.features
            as_found = price_of(fresh, replace(LIKELY, found=found / asked, there=None))
            return Outcome(case.name, estimate, server.spent(PRICE), found, as_found.likely)


def _enriched(case: Case, folder: Path, shared: dict[str, Any], server: LifelikeServer) -> Outcome:
    names = [f"{name}: The example shows or mentions {name}" for name in server.lifelike.names[: case.features]]
    settings = EnrichSettings(**shared, features="; ".join(names), out=str(folder / "table"), **case.settings)
    estimate = forecast_enrichment(settings)
    assert not server.requests, "an estimate has sent something"
    enrich_with(settings)
    return Outcome(case.name, estimate, server.spent(PRICE), case.features)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=at_least_one, default=30)
    parser.add_argument("--queries", type=at_least_one, default=8)
    parser.add_argument("--only", default="", help="cases whose name holds this")


def run(options: argparse.Namespace) -> list[Table]:
    outcomes = []
    for case in cases(options.examples, options.queries):
        if options.only in case.name:
            tell(case.name)
            with tempfile.TemporaryDirectory() as folder:
                outcomes.append(outcome_of(case, Path(folder)))
    dear = [outcome for outcome in outcomes if outcome.spent > outcome.estimate.at_most]
    missed = [f"{outcome.case} cost more than at most" for outcome in dear]
    far = [outcome for outcome in outcomes if abs(outcome.ratio - 1) > ALLOWED]
    missed += [f"{outcome.case}: likely is {outcome.ratio:.2f} of booked" for outcome in far]
    return [Table("Estimated and booked", COLUMNS, [outcome.row for outcome in outcomes], [], missed)]
