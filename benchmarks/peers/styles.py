"""Other ways to find features, each with the same purse: tags, LLooM's stages, VisDiff's two groups.

All end with named features and their labels of every example, so that what they find is counted as ours is. Where a way
needs labels that it has not made on the way, all its features are asked of one example at a time: that is cheaper than
what LLooM and VisDiff do, which is one feature at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.peers import prompts
from benchmarks.peers.asking import Purse, shown, shown_groups
from discovery import UNKNOWN
from sources import Example

MOST_FEATURES = 60  # that are labelled in one request
AT_A_TIME = 150  # tags that are merged in one request
GROUP = 10  # examples in each of two groups
SHARE = 0.4  # of the budget that finding may take where labels are to follow
Named = tuple[str, str]


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
    replies = purse.ask_all(prompts.DISTILL, (shown([example]) for example in examples), prompts.BULLETS)
    bullets = [str(line) for reply in replies if reply for line in reply["bullets"]]
    clusters = _clusters(bullets, rng)
    lists = ["\n".join(f"- {line}" for line in lines) for lines in clusters]
    replies = purse.ask_all(prompts.SYNTHESIZE, lists, prompts.CONCEPTS)
    return labelled(purse, examples, _merged(purse, _named(replies, "concepts")), rng)


def visdiff(purse: Purse, examples: Sequence[Example], rng: np.random.Generator) -> FoundFeature:
    """Ask what is true more often of one group than of another, for groups drawn at random; merge, label."""
    named, enough = list[Named](), (1 - SHARE) * purse.left
    while purse.left > enough and len(named) < 4 * MOST_FEATURES:
        drawn = rng.choice(len(examples), min(2 * GROUP, len(examples)), replace=False)
        group = [examples[row] for row in drawn.tolist()]
        half = len(group) // 2
        reply = purse.ask(prompts.DIFFER, shown_groups(group[:half], group[half:]), prompts.DIFFERENCES)
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
        purse.ask(prompts.LABEL, shown([examples[order[0]]]), prompts.labels_schema(features))
        each = max(1, before - purse.left)
        share = min(1.0, 0.95 * purse.left / (each * len(examples)))
        features = features[: max(1, int(share * len(features)))]
    labels = np.full((len(features), len(examples)), UNKNOWN, np.int8)
    contents = [shown([examples[row]]) for row in order] if features else []
    replies = purse.ask_all(prompts.LABEL, contents, prompts.labels_schema(features))
    for row, reply in zip(order, replies, strict=False):
        if reply is not None:
            labels[:, row] = [int(bool(reply[f"f{number}"])) for number in range(1, len(features) + 1)]
    return FoundFeature([name for name, _ in features], labels)


def _tagged(purse: Purse, examples: Sequence[Example]) -> tuple[dict[str, set[str]], list[set[str]]]:
    """Tags that belong together by the name of their group, and those of each example."""
    replies = purse.ask_all(prompts.TAG, (shown([example]) for example in examples), prompts.TAGS)
    listed = [{str(tag).lower() for tag in reply["tags"]} if reply else set() for reply in replies]
    counts = Counter(tag for tags in listed for tag in sorted(tags))
    return _grouped(purse, [tag for tag, _ in counts.most_common()]), listed


def _grouped(purse: Purse, tags: Sequence[str]) -> dict[str, set[str]]:
    parts = [tags[start : start + AT_A_TIME] for start in range(0, len(tags), AT_A_TIME)]
    lists = ["\n".join(f"- {tag}" for tag in part) for part in parts]
    groups: dict[str, set[str]] = {}
    for part, reply in zip(parts, purse.ask_all(prompts.MERGE, lists, prompts.GROUPS), strict=True):
        merged = reply["groups"] if reply else [{"name": tag, "tags": [tag]} for tag in part]
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
