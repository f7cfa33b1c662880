"""What runs were forecast to cost, and what the lifelike server booked: `python -m benchmarks.price.estimates`.

Every case forecasts before anything is sent and runs; what is likely for as many features as were found is compared
with the book. The server counts tokens by OpenAI's rules, replies in prose, fails and repeats itself as a real one
does."""

from __future__ import annotations

import argparse
import csv
import io
import random
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

from benchmarks.machine import heading
from flows.discover import DiscoverSettings, PriceRange, prepare, price_of, run_discovery
from flows.discover.price import rehearsal
from flows.enrich import EnrichSettings, forecast_enrichment
from flows.enrich.flow import enrich_with
from models.oracle import MICRO
from models.prices import Price
from sources import load_dataset, open_image
from tests.support.fake_openai import Abilities, Habits, LifelikeServer

FACES, ZOO = "datasets/faces", "datasets/zoo"
PRICE = Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))
MODELS = ("gpt-4o-mini", "gpt-4o", "gpt-4.1-mini")
ROWS_AT_THE_END = {"elicit_on": 24, "label_rest": True}  # most examples are forecast by a sample of them


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
    price: PriceRange
    spent: int
    features: int
    as_found: int = 0  # what is likely for as many features as were found

    @property
    def ratio(self) -> float:
        """Of the likely price to what was booked, for as many features."""
        return (self.as_found or self.price.likely.cost) / self.spent

    @property
    def row(self) -> str:
        price = self.price
        money = (price.likely.cost, price.low, price.high, price.most, self.spent)
        likely, low, high, most, spent = (f"{amount / MICRO:.4f}" for amount in money)
        return (
            f"| {self.case} | {likely} ({low} to {high}) | {most} | {spent} | {price.features} / {self.features} "
            f"| {self.ratio:.2f} | {price.most / price.likely.cost:.1f} |"
        )


HEADINGS = (
    "| case | likely USD (range) | at most | booked | features likely / found | likely : booked | most : likely |"
)


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
        rows = {"id": [one.id for one in faces], "image": [{"bytes": one.image_bytes(), "path": None} for one in faces]}
        pandas.DataFrame(rows).to_parquet(folder / "faces.parquet")
        copy_truth(FACES, folder, {one.id: one.id for one in faces})
        return str(folder / "faces.parquet")

    return make


def zipped(examples: int) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        plain = pictures("jpg", (300, 700), examples)(folder / "plain")
        with zipfile.ZipFile(folder / "faces.zip", "w") as archive:
            for path in sorted(Path(plain).rglob("*.*")):
                archive.write(path, path.relative_to(plain))
        return f"zip://::{folder / 'faces.zip'}"

    return make


def texts(sentences: int, examples: int) -> Callable[[Path], str]:
    """Animals by the first so many words of their descriptions, or with sentences of others added."""

    def make(folder: Path) -> str:
        folder.mkdir(parents=True)
        zoo, dice = load_dataset(ZOO).examples[:examples], random.Random(0)
        lines = io.StringIO()
        rows = csv.writer(lines)
        rows.writerow(["id", "text"])
        for one in zoo:
            given = (one.text or "").split(". ")
            more = [dice.choice(dice.choice(zoo).text.split(". ")) for _ in range(sentences - len(given))]  # type: ignore[union-attr]
            rows.writerow([one.id, ". ".join([*given, *more][:sentences])])
        (folder / "animals.csv").write_text(lines.getvalue(), encoding="utf-8")
        copy_truth(ZOO, folder, {one.id: one.id for one in zoo})
        return str(folder / "animals.csv")

    return make


def cases(examples: int, queries: int) -> list[Case]:
    few = {"queries": queries}
    return [
        Case("PNG", pictures("png", (96, 96), examples), settings=few),
        Case("JPEG of many sizes, patches", pictures("jpg", (200, 1400), examples), "gpt-4.1-mini", few),
        Case("WebP, gpt-4o", pictures("webp", (300, 900), examples), "gpt-4o", few),
        Case("Parquet", parquet(examples), settings=few),
        Case("zip", zipped(examples), settings=few),
        Case("texts, short", texts(1, examples), settings=few),
        Case("texts, long", texts(60, examples), settings=few),
        Case("PNG, three votes", pictures("png", (96, 96), examples), settings={**few, "votes": 3}),
        Case("texts, three votes, batches of 4", texts(2, examples), settings={**few, "votes": 3, "batch": 4}),
        Case(
            "PNG, rows at the end", pictures("png", (64, 128), max(160, examples)), settings={**few, **ROWS_AT_THE_END}
        ),
        Case("enrich, PNG, 33 features", pictures("png", (96, 96), examples), features=33),
        Case("enrich, texts, 20 features", texts(2, examples), features=20),
    ]


@contextmanager
def server_of(dataset: str, habits: Habits) -> Iterator[LifelikeServer]:
    with LifelikeServer(load_dataset(dataset), habits, price=PRICE, abilities=Abilities(models=MODELS)) as server:
        yield server


def outcome_of(case: Case, folder: Path, habits: Habits | None = None) -> Outcome:
    dataset = case.make(folder / "data")
    with server_of(dataset, habits or Habits(slow=0.0)) as server:
        terms = f"base_url={server.base_url}&price=0.15,0.60,0.075&retry_delay=0.01"
        shared = {"dataset": dataset, "oracle": f"openai:{case.model}?{terms}", "store": str(folder / "store.sqlite")}
        with mock.patch.dict("os.environ", {"XDG_CACHE_HOME": str(folder / "cache")}):
            if case.features:
                return _enriched(case, folder, shared, server)
            settings = DiscoverSettings(**shared, **case.settings, out=str(folder / "run"))
            prepared = prepare(settings)
            price = price_of(prepared)
            assert not server.requests, "an estimate has sent something"
            outcome = run_discovery(prepared, run_id=str(uuid4()))
            found = len(outcome.progress.findings)
            fresh = prepare(settings.model_copy(update={"store": str(folder / "empty.sqlite")}))
            with mock.patch.object(rehearsal, "FOUND", found / (settings.queries * fresh.features_each)):
                as_found = price_of(fresh).likely.cost
            return Outcome(case.name, price, server.spent(PRICE), found, as_found)


def _enriched(case: Case, folder: Path, shared: dict[str, Any], server: LifelikeServer) -> Outcome:
    names = [f"{name}: The example shows or mentions {name}" for name in server.lifelike.names[: case.features]]
    settings = EnrichSettings(**shared, features="; ".join(names), out=str(folder / "table"), **case.settings)
    price = forecast_enrichment(settings).price
    assert not server.requests, "an estimate has sent something"
    enrich_with(settings)
    return Outcome(case.name, price, server.spent(PRICE), case.features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    options = parser.parse_args()
    print(heading("python -m benchmarks.price.estimates"))
    print(f"{HEADINGS}\n|---|---|---|---|---|---|---|")
    for case in cases(options.examples, options.queries):
        if options.only in case.name:
            with tempfile.TemporaryDirectory() as folder:
                print(outcome_of(case, Path(folder)).row, flush=True)


if __name__ == "__main__":
    main()
