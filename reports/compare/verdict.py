"""The comparison in a few sentences, for the top of the page and the terminal."""

from __future__ import annotations

from discovery import UNKNOWN
from discovery.statistics import Estimate
from reports.compare.advice import Advice
from reports.compare.comparison import OracleComparison
from reports.compare.study import Contender, Reference
from reports.compare.versus import Versus
from reports.drawing import percent, plural, usd


def verdict_of(comparison: OracleComparison) -> list[str]:
    """One sentence each about agreement, who is right, whether a model may replace a person, and whom to ask."""
    called = comparison.study.called
    sentences = [
        f"Partial: {one.name} gave {one.votes:,} of {plural(one.wanted, 'vote')}: {one.stopped}."
        for one in comparison.study.contenders
        if one.stopped
    ]
    for pair in comparison.pairs:
        agreement, kappa = pair.overall["raw agreement"], pair.overall["Cohen's kappa"]
        sentences.append(
            f"{called(pair.a)} and {called(pair.b)} give the same label to {_share(agreement)} of the examples; "
            + _beyond_chance(kappa)
        )
    for quality in comparison.qualities:
        if quality.majority.defined:
            sentences.append(
                f"{called(quality.name)} is right in {_share(quality.majority)} of its labels, measured against "
                f"{comparison.reference.words}{_no_better(quality.majority, comparison.reference)}."
            )
    sentences += [said for one in comparison.study.contenders if (said := _never_varies(one, comparison.reference))]
    sentences += [_replacement(one, called(one.people)) for one in comparison.versus]
    sentences += [_advised(one) for one in comparison.advice]
    return sentences


def _beyond_chance(kappa: Estimate) -> str:
    if kappa.value is None:
        return f"how far beyond chance is not defined, for {kappa.reason}."
    return f"beyond chance they agree by a kappa of {_number(kappa)}."


def _never_varies(one: Contender, reference: Reference) -> str:
    """Features to which it gives one label throughout, though not all examples are alike."""
    same = [
        set(known.tolist())
        for known, share in zip((row[row != UNKNOWN] for row in one.sheet.labels), reference.shares, strict=False)
        if len(known) > 1 and share not in (None, 0.0, 1.0)
    ]
    alike = [next(iter(labels)) for labels in same if len(labels) == 1]
    if not alike:
        return ""
    said = " and ".join(word for value, word in ((1, "yes"), (0, "no")) if value in alike)
    return f"{one.name} gives every example the same label, {said}, for {len(alike)} of {plural(len(same), 'feature')}."


def _no_better(right: Estimate, reference: Reference) -> str:
    """Most features are rare: who says no to everything is right most of the time."""
    blind = reference.without_looking
    if blind is None or right.value is None or right.value > blind:
        return ""
    never_looks = "giving each feature's more frequent label to every example"
    return f": no better than {never_looks}, which is right in {percent(blind)}"


def _replacement(one: Versus, people: str) -> str:
    test = one.test
    if test.passes is None:
        return f"Whether {one.model} may replace one of {people} is not defined: {test.reason}."
    wins = sum(against.won for against in test.against)
    verb = "may replace" if test.passes else "may not replace"
    features = f"feature by feature, it may for {one.may_replace} of {one.tested}" if one.tested else ""
    return (
        f"{one.model} {verb} one of {people}: it holds its own against {wins} of {len(test.against)} people"
        f"{'; ' + features if features else ''} (alternative annotator test, ε = {test.epsilon:g})."
    )


def _advised(one: Advice) -> str:
    wanted = percent(one.wanted)
    if one.reason:
        return f"Whom to ask is not defined: {one.reason}."
    if one.best is None:
        best = max(one.settings, key=lambda setting: setting.accuracy)
        return f"Nothing reaches {wanted} right labels; the best is {best.who} with {percent(best.accuracy)}."
    price = f"{usd(1000 * one.best.cost)} per 1,000 labels"
    share = f", {percent(one.best.escalated)} of the labels going to people" if 0 < one.best.escalated < 1 else ""
    checked = (
        f"; chosen on one half of the examples and counted on the other it gives {percent(one.confirmed)}"
        if one.confirmed is not None
        else ""
    )
    return f"The cheapest way to {wanted} right labels: {one.best.who}{share}, {price}{checked}."


def _share(one: Estimate) -> str:
    if one.value is None:
        return f"a share that is not defined ({one.reason})"
    interval = f" ({percent(one.low)} to {percent(one.high)})" if one.low is not None and one.high is not None else ""
    return f"{percent(one.value)}{interval}"


def _number(one: Estimate) -> str:
    interval = f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None and one.high is not None else ""
    return f"{one.value:.2f}{interval}"
