"""Features found for the same money, by our discovery and by other ways: tags, LLooM's stages, VisDiff's two groups.

The other ways are what one would write by hand: the SDK, JSON schemas, threads, and a count of what was spent. Their
prompts are in our own words after the published descriptions. All end with named features and their labels of every
example, so that what they find is counted as ours is. Where a way needs labels that it has not made on the way, all its
features are asked of one example at a time: that is cheaper than what LLooM and VisDiff do, which is one feature at a
time."""

from __future__ import annotations

import base64
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from openai import OpenAI, OpenAIError
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.peers.job import MODEL, PRICE
from tests.support.fake_openai import WidelyReadServer
from twothirds.discovery import UNKNOWN, matches_with_truth
from twothirds.flows.discover.preparation import prepare
from twothirds.flows.discover.run import run_discovery
from twothirds.flows.discover.settings import DiscoverSettings
from twothirds.models.prices import parse_price, read_usage, settled
from twothirds.reports.label_table import LabelTable
from twothirds.sources import Dataset, Example, load_dataset

THREADS = 16
ATTEMPTS = 3  # of a request whose reply cannot be read
MOST_FEATURES = 60  # that are labelled in one request
AT_A_TIME = 150  # tags that are merged in one request
GROUP = 10  # examples in each of two groups
SHARE = 0.4  # of the budget that finding may take where labels are to follow
ENOUGH_KNOWN = 0.8  # of the examples: a feature with fewer labels is not counted
COMMON = (0.05, 0.95)  # shares between which an attribute of the truth is counted
Content = str | list[dict[str, Any]]
Named = tuple[str, str]
TAG = "List up to 8 tags for this example: short noun phrases for what it shows or mentions. Answer in JSON."
MERGE = "These are tags of examples. Put those that mean the same into a group, named by its best tag. Answer in JSON."
DISTILL = "Sum up this example in up to 8 bullet points, each a phrase of at most 6 words. Answer in JSON."
SYNTHESIZE = (
    "These are bullet points about examples of one collection. Name up to 8 concepts that several of them have in "
    "common, each with a name of at most 4 words and a one-sentence criterion by which one can tell whether an example "
    "has it. Answer in JSON."
)
DIFFER = (
    "Group A and Group B are sets of examples. Name up to 5 differences: what is true more often of Group A than of "
    "Group B, each with a name of at most 4 words and a one-sentence criterion. Answer in JSON."
)
LABEL = "Decide for each feature whether the example has it. Judge by its definition. Answer in JSON."

TEXTS = {"type": "array", "items": {"type": "string"}}
NAME_AND_DEFINITION = {"name": {"type": "string"}, "definition": {"type": "string"}}


def of_object(properties: dict[str, Any]) -> dict[str, Any]:
    """A strict schema."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TAGS = of_object({"tags": TEXTS})
BULLETS = of_object({"bullets": TEXTS})
CONCEPTS = of_object({"concepts": {"type": "array", "items": of_object(NAME_AND_DEFINITION)}})
DIFFERENCES = of_object({"differences": {"type": "array", "items": of_object(NAME_AND_DEFINITION)}})
GROUPS = of_object({"groups": {"type": "array", "items": of_object({"name": {"type": "string"}, "tags": TEXTS})}})


def labels_schema(features: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """A boolean per feature, given by name and definition."""
    numbered = enumerate(features, start=1)
    return of_object(
        {f"f{number}": {"type": "boolean", "title": name, "description": text} for number, (name, text) in numbered}
    )


class Purse:
    """Asks until the next requests could exceed the budget; then every answer is None."""

    def __init__(self, base_url: str, budget: float) -> None:
        self._client = OpenAI(base_url=base_url, api_key="none", max_retries=4)
        self._price = parse_price(PRICE)
        self.left = int(Decimal(str(budget)) * 1_000_000)  # micro-dollars
        self._dearest = 0

    def ask(self, instructions: str, content: Content, schema: dict[str, Any]) -> dict[str, Any] | None:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}
        messages = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
        request: dict[str, Any] = {"model": MODEL, "messages": messages, "response_format": form}
        for _ in range(ATTEMPTS):
            if self.left < self._dearest:
                return None
            try:
                reply = self._client.chat.completions.create(**request)
            except OpenAIError:
                continue
            tokens = read_usage(reply.model_dump())
            cost = settled(self._price, tokens) if tokens is not None else 0
            self.left -= cost
            self._dearest = max(self._dearest, cost)
            try:
                data = json.loads(reply.choices[0].message.content or "")
            except ValueError:
                continue
            if isinstance(data, dict) and data.keys() >= set(schema["required"]):
                return data
        return None

    def ask_all(
        self, instructions: str, contents: Iterable[Content], schema: dict[str, Any]
    ) -> Iterator[dict[str, Any] | None]:
        """In order, some at a time: after each lot it is known what is left."""
        with ThreadPoolExecutor(THREADS) as pool:
            for lot in batched_by(contents, THREADS):
                affordable = len(lot) if not self._dearest else max(0, self.left // self._dearest)
                asked = lot[:affordable]
                yield from pool.map(lambda content: self.ask(instructions, content, schema), asked)
                yield from [None] * (len(lot) - len(asked))


def batched_by(contents: Iterable[Content], size: int) -> Iterator[list[Content]]:
    every = list(contents)
    return (every[start : start + size] for start in range(0, len(every), size))


def shown(examples: Sequence[Example]) -> Content:
    """One example, or several one after the other."""
    if all(example.image is None for example in examples):
        return "\n\n".join(example.text or "" for example in examples)
    return [picture_part(example) for example in examples]


def shown_groups(first: Sequence[Example], second: Sequence[Example]) -> Content:
    group_a, group_b = shown(first), shown(second)
    if isinstance(group_a, str) and isinstance(group_b, str):
        return f"Group A\n\n{group_a}\n\nGroup B\n\n{group_b}"
    assert isinstance(group_a, list)
    assert isinstance(group_b, list)
    return [{"type": "text", "text": "Group A"}, *group_a, {"type": "text", "text": "Group B"}, *group_b]


def picture_part(example: Example) -> dict[str, Any]:
    content = base64.b64encode(example.image_bytes()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{content}"}}


@dataclass(frozen=True)
class FoundFeature:
    names: list[str]
    labels: NDArray[np.int8]  # features × examples


def tags(purse: Purse, examples: Sequence[Example], rng: np.random.Generator) -> FoundFeature:  # noqa: ARG001
    """List tags for each example, merge them; an example has what it was tagged with."""
    features, listed = _tagged(purse, examples)
    labels = np.array([[int(bool(tags & members)) for tags in listed] for members in features.values()], np.int8)
    return FoundFeature(list(features), labels.reshape(len(features), len(examples)))


def tags_labelled(purse: Purse, examples: Sequence[Example], rng: np.random.Generator) -> FoundFeature:
    """The same, but the tags of several examples are then asked of all."""
    features, listed = _tagged(purse, examples)
    counts = {name: sum(bool(tags & members) for tags in listed) for name, members in features.items()}
    common = sorted((name for name, count in counts.items() if count > 1), key=lambda name: -counts[name])
    return labelled(purse, examples, [(name, f"The example shows or mentions {name}.") for name in common], rng)


def lloom(purse: Purse, examples: Sequence[Example], rng: np.random.Generator) -> FoundFeature:
    """Distil every example to bullet points, cluster these, name the concepts of each cluster, merge, label."""
    replies = purse.ask_all(DISTILL, (shown([example]) for example in examples), BULLETS)
    bullets = [str(line) for reply in replies if reply for line in reply["bullets"]]
    clusters = _clusters(bullets, rng)
    lists = ["\n".join(f"- {line}" for line in lines) for lines in clusters]
    replies = purse.ask_all(SYNTHESIZE, lists, CONCEPTS)
    return labelled(purse, examples, _merged(purse, _named(replies, "concepts")), rng)


def visdiff(purse: Purse, examples: Sequence[Example], rng: np.random.Generator) -> FoundFeature:
    """Ask what is true more often of one group than of another, for groups drawn at random; merge, label."""
    named, enough = list[Named](), (1 - SHARE) * purse.left
    while purse.left > enough and len(named) < 4 * MOST_FEATURES:
        drawn = rng.choice(len(examples), min(2 * GROUP, len(examples)), replace=False)
        group = [examples[row] for row in drawn.tolist()]
        half = len(group) // 2
        reply = purse.ask(DIFFER, shown_groups(group[:half], group[half:]), DIFFERENCES)
        if reply is None:
            break
        named += _named([reply], "differences")
    return labelled(purse, examples, _merged(purse, named), rng)


STYLES: dict[str, Callable[[Purse, Sequence[Example], np.random.Generator], FoundFeature]] = {
    "tags, merged": tags,
    "tags, merged, then asked of all": tags_labelled,
    "LLooM-style": lloom,
    "VisDiff-style": visdiff,
}


def labelled(
    purse: Purse, examples: Sequence[Example], features: Sequence[Named], rng: np.random.Generator
) -> FoundFeature:
    """As many of the features as the money left is likely to pay for, all of them in one request per example."""
    features = features[:MOST_FEATURES]
    order = rng.permutation(len(examples)).tolist()
    before = purse.left
    if features and order:
        purse.ask(LABEL, shown([examples[order[0]]]), labels_schema(features))
        each = max(1, before - purse.left)
        share = min(1.0, 0.95 * purse.left / (each * len(examples)))
        features = features[: max(1, int(share * len(features)))]
    labels = np.full((len(features), len(examples)), UNKNOWN, np.int8)
    contents = [shown([examples[row]]) for row in order] if features else []
    replies = purse.ask_all(LABEL, contents, labels_schema(features))
    for row, reply in zip(order, replies, strict=False):
        if reply is not None:
            labels[:, row] = [int(bool(reply[f"f{number}"])) for number in range(1, len(features) + 1)]
    return FoundFeature([name for name, _ in features], labels)


def _tagged(purse: Purse, examples: Sequence[Example]) -> tuple[dict[str, set[str]], list[set[str]]]:
    """Tags that belong together by the name of their group, and those of each example."""
    replies = purse.ask_all(TAG, (shown([example]) for example in examples), TAGS)
    listed = [{str(tag).lower() for tag in reply["tags"]} if reply else set() for reply in replies]
    counts = Counter(tag for tags in listed for tag in sorted(tags))
    return _grouped(purse, [tag for tag, _ in counts.most_common()]), listed


def _grouped(purse: Purse, tags: Sequence[str]) -> dict[str, set[str]]:
    batches = [tags[start : start + AT_A_TIME] for start in range(0, len(tags), AT_A_TIME)]
    lists = ["\n".join(f"- {tag}" for tag in batch) for batch in batches]
    groups: dict[str, set[str]] = {}
    for batch, reply in zip(batches, purse.ask_all(MERGE, lists, GROUPS), strict=True):
        merged = reply["groups"] if reply else [{"name": tag, "tags": [tag]} for tag in batch]
        for group in merged:
            groups.setdefault(str(group["name"]), set()).update(map(str, group["tags"]))
    return groups


def _named(replies: Iterable[dict[str, list[dict[str, str]]] | None], field: str) -> list[Named]:
    return [(feature["name"].lower(), feature["definition"]) for reply in replies if reply for feature in reply[field]]


def _merged(purse: Purse, named: Sequence[Named]) -> list[Named]:
    """One of those that mean the same, what was named most often first."""
    counts, definitions = Counter(name for name, _ in named), dict(named)
    groups = _grouped(purse, [name for name, _ in counts.most_common()])
    members = {name: [tag for tag in tags if tag in counts] or [name] for name, tags in groups.items()}
    often = sorted(members, key=lambda name: -sum(counts[tag] for tag in members[name]))
    return [(name, definitions.get(name, f"The example shows or mentions {name}.")) for name in often]


def _clusters(lines: Sequence[str], rng: np.random.Generator) -> list[list[str]]:
    """About 30 lines each, by their words."""
    count = max(1, len(lines) // 30)
    if len(set(lines)) <= count or count == 1:
        return [list(lines)] if lines else []
    vectors = TfidfVectorizer().fit_transform(lines)
    places = KMeans(count, n_init=1, random_state=int(rng.integers(2**31))).fit_predict(vectors)
    return [[line for line, cluster in zip(lines, places, strict=True) if cluster == place] for place in range(count)]


@dataclass(frozen=True)
class Yield:
    found: int  # attributes of the truth that labels of a feature agree with
    of: int
    named: int  # features
    usd: float  # by the server's book


def counted(labels: NDArray[np.int8], dataset: Dataset) -> tuple[int, int]:
    """Attributes that some feature matches with a balanced accuracy of 0.9, and how many there are."""
    assert dataset.truth is not None
    truth = np.where(dataset.truth.matrix == UNKNOWN, 0, dataset.truth.matrix).T.astype(np.int8)
    shares = truth.mean(axis=1)
    truth = truth[(shares >= COMMON[0]) & (shares <= COMMON[1])]
    known = labels[(labels != UNKNOWN).mean(axis=1) >= ENOUGH_KNOWN] if labels.size else labels
    return (matches_with_truth(known, truth).matched if known.size else 0), len(truth)


def found_by(name: str, spec: str, budget: float, seed: int) -> Yield:
    """What one way finds in a data set; `name` is twothirds, or one of the styles."""
    dataset = load_dataset(spec)
    with WidelyReadServer(dataset, price=parse_price(PRICE), seed=seed) as server:
        find = ours if name in OPTIONS else style
        result = find(server, dataset, name, budget, seed)
        found, of = counted(result.labels, dataset)
        return Yield(found, of, len(result.names), server.summary()["usd"])


def style(server: WidelyReadServer, dataset: Dataset, name: str, budget: float, seed: int) -> FoundFeature:
    purse = Purse(server.base_url, budget)
    return STYLES[name](purse, dataset.examples, np.random.default_rng(seed))


OPTIONS: dict[str, dict[str, Any]] = {
    "twothirds": {},
    "twothirds, half as many questions": {"queries": 6},
    "twothirds, twice as many questions": {"queries": 24},
}


def ours(server: WidelyReadServer, dataset: Dataset, name: str, budget: float, seed: int) -> FoundFeature:
    oracle = f"openai:{MODEL}?base_url={server.base_url}&price={PRICE}&retry_delay=0.05"
    with tempfile.TemporaryDirectory() as folder:
        settings = DiscoverSettings(
            dataset=dataset.spec,
            oracle=oracle,
            seed=seed,
            budget=Decimal(str(budget)),
            store=f"{folder}/store.sqlite",
            out=f"{folder}/run",
            **OPTIONS[name],
        )
        run_discovery(prepare(settings), run_id="run")
        table = LabelTable.from_arrow(pq.read_table(Path(folder) / "run" / "labels.parquet"))
    rows = {name: row for row, name in enumerate(table.ids)}
    values = table.value[:, [rows[example.id] for example in dataset.examples]]
    return FoundFeature([feature.name for feature in table.features], values)
