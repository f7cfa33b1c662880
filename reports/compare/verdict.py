"""A paragraph of methods, ready to paste: what was done, with which versions and seeds.

The comparison in a few sentences, for the top of the page and the terminal."""

from __future__ import annotations

from discovery.statistics.alt_test import EPSILON, FEWEST_EXAMPLES, LEVEL
from discovery.statistics.intervals import Estimate
from discovery.statistics.matching import ALIKE
from reports.compare.advice import Advice
from reports.compare.comparison import Comparison
from reports.compare.study import Contender, Reference, Study
from reports.compare.versus import Versus
from reports.drawing.number_formats import of_things, percent, usd


def methods(study: Study, reference: Reference) -> str:
    names = "; ".join(_who(one) for one in study.contenders)
    parts = [
        f"{of_things(len(study.ids), 'example')} of the data set {study.dataset} ({study.total:,} examples, content "
        f"digest {study.digest[:16]}) were labelled with {of_things(len(study.features), 'feature')} ({study.origin}) "
        f"by {names}. A label is the majority of its votes; a tie, a refusal or an unreadable reply leaves it unknown "
        "and is left out.",
        f"Labels were measured against {reference.words}.",
        f"Intervals are 95 % percentile bootstrap intervals over examples ({study.draws:,} draws, all features of an "
        "example resampled together), Wilson intervals where no resample differs; overall figures are means over the "
        "features of which the statistic is defined. Agreement is given as Cohen's kappa, Fleiss' kappa (votes pooled "
        "where their numbers differ) and Krippendorff's alpha for nominal data.",
    ]
    if len(study.contenders) > 1 and study.people is not None:
        parts.append(
            "Whether a model may replace a person was tested with the alternative annotator test (Calderon, Reichart "
            f"and Dror 2025; ε = {EPSILON[study.annotators]:g} for {study.annotators} annotators, at least "
            f"{FEWEST_EXAMPLES} examples per person, false discovery rate {LEVEL:g} after Benjamini and Yekutieli), "
            "with the model's majority label. Shares were corrected by prediction-powered inference (PPI++, "
            "Angelopoulos, Duchi and Zrnic 2023)."
        )
    parts.append("Votes were also combined by Dawid and Skene's (1979) model, fitted to each feature by EM.")
    if any(one.discovered for one in study.contenders):
        parts.append(
            f"Features of separate discoveries were matched by optimal assignment on squared label correlations, pairs "
            f"below {ALIKE:g} left out."
        )
    versions = ", ".join(f"{name} {version}" for name, version in study.versions.items())
    parts.append(f"Seed {study.seed}; {versions}." if versions else f"Seed {study.seed}.")
    return " ".join(parts)


def _who(one: Contender) -> str:
    kind = "people" if one.people else "model"
    votes = one.sheet.said.shape[-1]
    model = one.identity.get("model", "")
    prompts = f", prompts {one.identity['prompts']}" if one.identity.get("prompts") else ""
    named = f"{one.identity.get('kind', '')}{':' if model else ''}{model}"
    shown = f" [{named}]" if named and named != one.name else ""
    return f"{one.name}{shown} ({kind}, up to {of_things(votes, 'vote')} per label{prompts})"


def verdict_of(comparison: Comparison) -> list[str]:
    """One sentence each about agreement, who is right, whether a model may replace a person, and whom to ask."""
    sentences = [
        f"Partial: {one.name} gave {one.votes:,} of {of_things(one.wanted, 'vote')}: {one.stopped}."
        for one in comparison.study.contenders
        if one.stopped
    ]
    for pair in comparison.pairs:
        agreement, kappa = pair.overall["raw agreement"], pair.overall["Cohen's kappa"]
        sentences.append(
            f"{pair.a} and {pair.b} give the same label to {_share(agreement)} of the examples; beyond chance they "
            f"agree by a kappa of {_number(kappa)}."
        )
    for quality in comparison.qualities:
        if quality.majority.defined:
            sentences.append(
                f"{quality.name} is right in {_share(quality.majority)} of its labels, measured against "
                f"{comparison.reference.words}."
            )
    sentences += [_replacement(one) for one in comparison.versus]
    sentences += [_advised(one) for one in comparison.advice]
    return sentences


def _replacement(one: Versus) -> str:
    test = one.test
    if test.passes is None:
        return f"Whether {one.model} may replace one of {one.people} is not defined: {test.reason}."
    wins = sum(against.won for against in test.against)
    verb = "may replace" if test.passes else "may not replace"
    features = f"taken singly, of {one.may_replace} of {one.tested} features it may" if one.tested else ""
    return (
        f"{one.model} {verb} one of {one.people}: it holds its own against {wins} of {len(test.against)} people"
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
    if one.value is None:
        return f"not defined ({one.reason})"
    interval = f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None and one.high is not None else ""
    return f"{one.value:.2f}{interval}"


def head_line(comparison: Comparison) -> str:
    study = comparison.study
    return (
        f"{of_things(len(study.features), 'feature')} ({study.origin}) on {of_things(len(study.ids), 'example')} of "
        f"{study.dataset}, asked of {' and '.join(one.name for one in study.contenders)}."
    )
