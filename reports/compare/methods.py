"""A paragraph of methods, ready to paste: what was done, with which versions and seeds."""

from __future__ import annotations

from discovery.statistics import ALIKE, EPSILON, FEWEST_EXAMPLES, LEVEL
from reports.compare.study import Contender, Reference, Study
from reports.drawing import plural


def methods(study: Study, reference: Reference) -> str:
    names = "; ".join(_who(one) for one in study.contenders)
    parts = [
        f"{plural(len(study.ids), 'example')} of the data set {study.dataset} ({study.total:,} examples, content "
        f"digest {study.digest[:16]}) were labelled with {plural(len(study.features), 'feature')} ({study.origin}) "
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
    kind = f"{one.stands_for}: {one.terms}" if one.terms else one.stands_for
    votes = one.sheet.said.shape[-1]
    model = one.identity.get("model", "")
    prompts = f", prompts {one.identity['prompts']}" if one.identity.get("prompts") else ""
    named = f"{one.identity.get('kind', '')}{':' if model else ''}{model}"
    shown = f" [{named}]" if named and named != one.name else ""
    return f"{one.name}{shown} ({kind}, up to {plural(votes, 'vote')} per label{prompts})"
