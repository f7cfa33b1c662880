"""The comparison in a few sentences, for the top of the page and the terminal."""

from __future__ import annotations

from collections.abc import Callable

from twothirds.discovery import UNKNOWN
from twothirds.discovery.statistics import Estimate
from twothirds.reports.compare.advice import Advice, Versus
from twothirds.reports.compare.comparison import OracleComparison
from twothirds.reports.compare.labels import MAJORITY, Quality
from twothirds.reports.compare.study import Rater, Reference
from twothirds.studio.web import percent, plural, usd


def verdict_of(comparison: OracleComparison) -> list[str]:
    """One sentence each about agreement, who is right, whether a model may replace a person, and whom to ask."""
    called = comparison.study.called
    sentences = [
        f"Partial: {oracle.name} gave {oracle.votes:,} of {plural(oracle.wanted, 'vote')}: {oracle.stopped}."
        for oracle in comparison.study.raters
        if oracle.stopped
    ]
    for pair in comparison.pairs:
        agreement, kappa = pair.overall["raw agreement"], pair.overall["Cohen's kappa"]
        sentences.append(
            f"{called(pair.a)} and {called(pair.b)} give the same label to {_share(agreement)} of the examples; "
            + _beyond_chance(kappa)
        )
    for quality in comparison.qualities:
        right = quality.accuracy.overall[MAJORITY]
        if right.defined:
            sentences.append(
                f"{called(quality.name)} is right in {_share(right)} of its labels, measured against "
                f"{comparison.reference.words}{_no_better(right, comparison.reference)}."
            )
    sentences += [
        sentence for rater in comparison.study.raters if (sentence := _never_varies(rater, comparison.reference))
    ]
    sentences += [sentence for quality in comparison.qualities if (sentence := _better_threshold(quality))]
    sentences += [_replacement(against, called(against.people)) for against in comparison.versus]
    sentences += [_advised(advised) for advised in comparison.advice]
    return sentences


def _beyond_chance(kappa: Estimate) -> str:
    if kappa.value is None:
        return f"how far beyond chance is not defined, for {kappa.reason}."
    return f"beyond chance they agree by a kappa of {_with_interval(kappa, '{:.2f}'.format)}."


def _never_varies(oracle: Rater, reference: Reference) -> str:
    """Features to which it gives one label throughout, though not all examples are alike."""
    same = [
        set(known.tolist())
        for known, share in zip((row[row != UNKNOWN] for row in oracle.sheet.labels), reference.shares, strict=False)
        if len(known) > 1 and share not in (None, 0.0, 1.0)
    ]
    alike = [next(iter(labels)) for labels in same if len(labels) == 1]
    if not alike:
        return ""
    words = " and ".join(word for value, word in ((1, "yes"), (0, "no")) if value in alike)
    features = plural(len(same), "feature")
    return f"{oracle.name} gives every example the same label, {words}, for {len(alike)} of {features}."


def _no_better(right: Estimate, reference: Reference) -> str:
    """Most features are rare: who says no to everything is right most of the time."""
    blind = reference.without_looking
    if blind is None or right.value is None or right.value > blind:
        return ""
    never_looks = "giving each feature's more frequent label to every example"
    return f": no better than {never_looks}, which is right in {percent(blind)}"


def _better_threshold(quality: Quality) -> str:
    found = quality.threshold
    if found is None or not found.is_better:
        return ""
    return (
        f"{quality.name} would find {percent(found.balanced)} instead of {percent(found.now)} of yes and of no alike "
        f"(balanced accuracy, on examples by which it was not chosen) if a label were yes from a probability of "
        f"{found.value:g}: yes_from={found.value:g}."
    )


def _replacement(versus: Versus, people: str) -> str:
    test = versus.test
    if test.passes is None:
        return f"Whether {versus.model} may replace one of {people} is not defined: {test.reason}."
    wins = sum(against.won for against in test.against)
    verb = "may replace" if test.passes else "may not replace"
    verdicts = [found.passes for found in versus.test_each if found.passes is not None]
    features = f"feature by feature, it may for {sum(verdicts)} of {len(verdicts)}" if verdicts else ""
    return (
        f"{versus.model} {verb} one of {people}: it holds its own against {wins} of {len(test.against)} people"
        f"{'; ' + features if features else ''} (alternative annotator test, ε = {test.epsilon:g})."
    )


def _advised(advice: Advice) -> str:
    wanted = percent(advice.wanted)
    if advice.reason:
        return f"Whom to ask is not defined: {advice.reason}."
    if advice.best is None:
        best = max(advice.settings, key=lambda setting: setting.accuracy)
        return f"Nothing reaches {wanted} right labels; the best is {best.who} with {percent(best.accuracy)}."
    price = f"{usd(1000 * advice.best.cost)} per 1,000 labels"
    share = f", {percent(advice.best.escalated)} of the labels going to people" if 0 < advice.best.escalated < 1 else ""
    checked = (
        f"; chosen on one half of the examples and counted on the other it gives {percent(advice.confirmed)}"
        if advice.confirmed is not None
        else ""
    )
    return f"The cheapest way to {wanted} right labels: {advice.best.who}{share}, {price}{checked}."


def _share(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"a share that is not defined ({estimate.reason})"
    return _with_interval(estimate, percent)


def _with_interval(estimate: Estimate, written: Callable[[float | None], str]) -> str:
    known = estimate.low is not None and estimate.high is not None
    return written(estimate.value) + (f" ({written(estimate.low)} to {written(estimate.high)})" if known else "")
