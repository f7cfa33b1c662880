"""Changes to the features of a run: what each keeps of the labels, and which labels it leaves to be asked again."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twothirds.discovery import UNKNOWN
from twothirds.reports.run import SAME, Attribute, Findings, FoundFeature, Origin, RunError, VoteCounts, names_of
from twothirds.studio.web import plural


@dataclass(frozen=True)
class LabelRequest:
    """Labels that a change makes necessary: this feature, of these examples."""

    feature: str
    definition: str
    ids: list[str]


@dataclass(frozen=True)
class Change:
    action: str
    arguments: dict[str, Any]
    after: Findings  # with the labels to be asked still unknown
    kept: dict[str, int]  # labels that stay, by the feature that has them afterwards
    asks: list[LabelRequest]
    gone: list[str]  # features taken out; `undo` brings them back

    def explained(self) -> list[str]:
        """Line by line: what is kept, what must be asked again, what goes."""
        of_them = {feature.name: _of_them(feature) for feature in self.after.found}
        lines = [
            f"keeps {plural(count, 'label')} of {name!r}{of_them.get(name, '')}" for name, count in self.kept.items()
        ]
        lines += [f"asks {plural(len(ask.ids), 'label')} of {ask.feature!r} again" for ask in self.asks if ask.ids]
        lines += [f"takes {name!r} out of reports, exports and enrichments" for name in self.gone]
        return lines


def plan(findings: Findings, action: str, arguments: dict[str, Any]) -> Change:
    """Raises RunError where the change is impossible."""
    if action not in ACTIONS:
        raise RunError(f"unknown action {action!r}: choose one of {', '.join(ACTIONS)}")
    return ACTIONS[action](findings, arguments)


def _rename(findings: Findings, arguments: dict[str, Any]) -> Change:
    place = place_of(findings, arguments["name"])
    old, new = findings.found[place], _free(findings, arguments["to"])
    after = _with(findings, {place: [replace(old, name=new, made=f"renamed from “{old.name}”")]})
    return Change("rename", arguments, after, {new: old.labelled}, [], [])


def _define(findings: Findings, arguments: dict[str, Any]) -> Change:
    place = place_of(findings, arguments["name"])
    old = findings.found[place]
    defined = replace(old, definition=arguments["definition"], made="redefined")
    if arguments.get("keep"):
        return Change("define", arguments, _with(findings, {place: [defined]}), {old.name: old.labelled}, [], [])
    asked = (old.labels != UNKNOWN) | (old.vote_counts.votes > 0)
    defined = replace(defined, certificate=None)
    return _asking("define", arguments, findings, {place: [(defined, asked)]}, gone=[])


def _merge(findings: Findings, arguments: dict[str, Any]) -> Change:
    names = list(dict.fromkeys(arguments["names"]))
    places = [place_of(findings, name) for name in names]
    if len(places) < 2:
        raise RunError(f"merge takes two or more features, and only {names[0]!r} was given: name the others too")
    merging = [findings.found[place] for place in places]
    into = arguments.get("into") or merging[0].name
    if into not in names:
        _free(findings, into)
    known = np.stack([feature.uncorrected for feature in merging])
    yes, no = (known == 1).any(axis=0), (known == 0).any(axis=0)
    labels = np.select([yes & ~no, no & ~yes], [np.int8(1), np.int8(0)], np.int8(UNKNOWN)).astype(np.int8)
    base = next((feature for feature in merging if feature.name == into), merging[0])
    others = [feature.name for feature in merging if feature.name != into]
    definition = arguments.get("definition") or merged_definition(base.definition, others)
    merged = replace(
        base,
        name=into,
        definition=definition,
        labels=labels,
        vote_counts=_sum([feature.vote_counts for feature in merging]),
        made=f"merged with {', '.join(f'“{name}”' for name in others)}",
        chances=_merged_chances(merging),
        certificate=None,
        origins=_origins(merging),
        corrected={},  # they are found again by the origins
    )
    new: dict[int, list[tuple[FoundFeature, NDArray[np.bool_]]]] = {place: [] for place in places}
    new[places[0]] = [(merged, yes & no)]
    return _asking("merge", arguments, findings, new, others)


def merged_definition(definition: str, others: Sequence[str]) -> str:
    """Another definition is another question: what is asked again is not answered from before the merge."""
    return f"{definition} Also called {', '.join(others)}.".strip()


def _split(findings: Findings, arguments: dict[str, Any]) -> Change:
    place = place_of(findings, arguments["name"])
    old, names = findings.found[place], list(arguments["into"])
    if len(set(names)) < 2:
        raise RunError(f"split takes two or more new names for {old.name!r}: give them after it")
    definitions = [*arguments.get("definitions", []), *[""] * len(names)]
    asked = (old.labels == 1) | ((old.labels == UNKNOWN) & (old.vote_counts.votes > 0))
    new = [
        (
            replace(
                old,
                name=name if name == old.name else _free(findings, name),
                definition=definition,
                asked=None,
                consistent=True,
                made=f"split from “{old.name}”",
                certificate=None,
                origins=tuple((*origin, name) for origin in old.origins),
                labels=old.uncorrected,
                corrected={},
            ),
            asked,
        )
        for name, definition in zip(names, definitions, strict=False)
    ]
    return _asking("split", arguments, findings, {place: new}, [] if old.name in names else [old.name])


def _label(findings: Findings, arguments: dict[str, Any]) -> Change:
    """Ask what was left out: of the working set, and where other features are labelled too."""
    others = [feature.labels != UNKNOWN for feature in findings.found if not feature.look]
    labelled = np.any([findings.working, *others], axis=0)
    new: dict[int, list[tuple[FoundFeature, NDArray[np.bool_]]]] = {}
    for name in arguments["names"]:
        place = place_of(findings, name)
        old = findings.found[place]
        if not old.look:
            raise RunError(f"{name!r} is labelled in full already: `features RUN list` shows which are not")
        left = labelled & (old.labels == UNKNOWN) & (old.vote_counts.votes == 0)
        new[place] = [(replace(old, look="", made="labelled on request"), left)]
    return _asking("label", arguments, findings, new, [])


def _duplicates(findings: Findings, arguments: dict[str, Any]) -> Change:
    """Make one feature of each and of those that repeat it; labels that it lacks are taken from them, none is asked."""
    into: dict[str, list[str]] = arguments.get("into") or _repeated(findings)
    gone = [name for others in into.values() for name in others]
    new: dict[int, list[FoundFeature]] = {place_of(findings, name): [] for name in gone}
    for first, others in into.items():
        base = findings.found[place_of(findings, first)]
        joined = [findings.found[place_of(findings, name)] for name in others]
        labels = base.uncorrected
        for other in joined:
            labels = np.where(labels == UNKNOWN, other.uncorrected, labels)
        made = f"merged with {', '.join(f'“{name}”' for name in others)}"
        merged = replace(base, labels=labels, made=made, origins=_origins([base, *joined]), corrected={})
        new[place_of(findings, first)] = [merged]
    kept = {feature.name: feature.labelled for features in new.values() for feature in features}
    return Change("duplicates", {"into": into}, _with(findings, new), kept, [], gone)


def _repeated(findings: Findings) -> dict[str, list[str]]:
    """The features that others repeat, and those by which they are repeated."""
    into: dict[str, list[str]] = {}
    for feature in findings.found:
        if feature.twin.startswith(SAME):
            other = feature.twin.removeprefix(SAME)
            first = next((name for name, others in into.items() if other in others), other)
            into.setdefault(first, []).append(feature.name)
    return into


def _attributes(findings: Findings, arguments: dict[str, Any]) -> Change:
    """Columns of categories beside the features; one of the same name is replaced."""
    codes = arguments.get("codes", {})  # by attribute and example
    made = [Attribute.from_json(data, codes.get(data["name"], {}), findings.ids) for data in arguments["attributes"]]
    for attribute in made:
        for value in attribute.values:
            if value.feature:
                place_of(findings, value.feature)
    names = {attribute.name for attribute in made}
    others = (attribute for attribute in findings.attributes if attribute.name not in names)
    after = replace(findings, attributes=(*others, *made))
    return Change("attributes", arguments, after, {}, [], [])


def _drop(findings: Findings, arguments: dict[str, Any]) -> Change:
    places = {place_of(findings, name): name for name in arguments["names"]}
    after = _with(findings, {place: [] for place in places})
    return Change("drop", arguments, after, {}, [], list(places.values()))


ACTIONS: dict[str, Callable[[Findings, dict[str, Any]], Change]] = {
    "rename": _rename,
    "define": _define,
    "merge": _merge,
    "split": _split,
    "drop": _drop,
    "label": _label,
    "duplicates": _duplicates,
    "attributes": _attributes,
}


def place_of(findings: Findings, name: str) -> int:
    names = names_of(findings.found)
    if name in names:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`features RUN list` shows those there are"
    raise RunError(f"the run has no feature {name!r}: {hint}")


def _free(findings: Findings, name: str) -> str:
    if not name.strip():
        raise RunError("a feature needs a name: give one with at least one letter")
    if name in names_of(findings.found):
        raise RunError(f"the run already has a feature {name!r}: choose another name, or merge the two")
    return name


def _asking(
    action: str,
    arguments: dict[str, Any],
    findings: Findings,
    new: dict[int, list[tuple[FoundFeature, NDArray[np.bool_]]]],
    gone: list[str],
) -> Change:
    """The change that replaces features by others, some of whose labels must be asked again."""
    cleared: dict[int, list[FoundFeature]] = {}
    kept, asks = {}, []
    for place, features in new.items():
        cleared[place] = []
        for feature, asked in features:
            blank = replace(
                feature,
                labels=np.where(asked, np.int8(UNKNOWN), feature.labels),
                vote_counts=_without(feature.vote_counts, asked),
                chances=None if feature.chances is None else np.where(asked, np.nan, feature.chances),
                corrected={row: correction for row, correction in feature.corrected.items() if not asked[row]},
            )
            cleared[place].append(blank)
            kept[feature.name] = blank.labelled
            ids = [findings.ids[row] for row in np.flatnonzero(asked)]
            asks.append(LabelRequest(feature.name, feature.definition, ids))
    return Change(action, arguments, _with(findings, cleared), kept, asks, gone)


def _with(findings: Findings, new: dict[int, list[FoundFeature]]) -> Findings:
    found: list[FoundFeature] = []
    for place, feature in enumerate(findings.found):
        found += new.get(place, [feature])
    return replace(findings, found=found)


def _of_them(feature: FoundFeature) -> str:
    counts = {"predicted": int(feature.predicted.sum()), "corrected by people": len(feature.corrected)}
    return "".join(f", {count:,} of them {source}" for source, count in counts.items() if count)


def _origins(merging: Sequence[FoundFeature]) -> tuple[Origin, ...]:
    return tuple(sorted({origin for feature in merging for origin in feature.origins}))


def _sum(tallies: Sequence[VoteCounts]) -> VoteCounts:
    notes: dict[str, int] = {}
    for vote_counts in tallies:
        notes |= {reason: notes.get(reason, 0) + count for reason, count in vote_counts.notes.items()}
    cast = np.stack([vote_counts.cast for vote_counts in tallies]).sum(axis=0, dtype=np.int32)
    probability = np.full(cast.shape[1], np.nan)  # the questions differ, so no one probability applies
    return VoteCounts(cast, probability, sum(vote_counts.cost for vote_counts in tallies), notes)


def _merged_chances(merging: Sequence[FoundFeature]) -> NDArray[np.float64] | None:
    """Of labels that no feature of the merge has asked: the mean of what was predicted."""
    if all(feature.chances is None for feature in merging):
        return None
    predicted = np.stack([feature.predicted for feature in merging])
    asked = np.stack([feature.labels != UNKNOWN for feature in merging]) & ~predicted
    total = np.where(predicted, [feature.probability for feature in merging], 0.0).sum(axis=0)
    here = predicted.any(axis=0) & ~asked.any(axis=0)
    return np.where(here, total / np.maximum(predicted.sum(axis=0), 1), np.nan)


def _without(vote_counts: VoteCounts, asked: NDArray[np.bool_]) -> VoteCounts:
    """The votes on the labels that stay; what the others cost was paid all the same."""
    cast = np.where(asked, np.int32(0), vote_counts.cast)
    return VoteCounts(cast, np.where(asked, np.nan, vote_counts.probability), vote_counts.cost, dict(vote_counts.notes))
