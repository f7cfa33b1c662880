"""The whole comparison, computed once from a study; the page and the exports read it. What oracles name by themselves:
asked about the same examples, and in a discovery of their own."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from twothirds.discovery import SAME_LABELS, UNKNOWN, correlations, same_name
from twothirds.discovery.statistics import (
    ALIKE,
    EPSILON,
    FEWEST_EXAMPLES,
    LEVEL,
    Estimate,
    best_matches,
    distinct_selections,
    order_agreement,
    share,
)
from twothirds.reports.compare.advice import Advice, Versus, advice, versus
from twothirds.reports.compare.labels import PairAgreement, Quality, agreements, all_together, qualities
from twothirds.reports.compare.study import Discovered, Rater, Reference, Study, reference_of
from twothirds.studio.web import plural

NAMED, NONE = "feature", "none"


@dataclass(frozen=True, slots=True)
class SameQuestions:
    """Two oracles to whom the same questions were put."""

    a: str
    b: str
    triples: int
    both_named: int
    same_split: Estimate  # of these, both mean the same examples
    same_words: Estimate  # of these, both use the same words


@dataclass(frozen=True, slots=True)
class Shared:
    """A feature that two oracles found, by its names and places in their orders of discovery."""

    a: str
    b: str
    order_a: int
    order_b: int
    correlation: float
    same_words: bool


@dataclass(frozen=True, eq=False)
class Matched:
    a: str
    b: str
    shared: list[Shared]
    only_a: list[str]
    only_b: list[str]
    by_name: int  # features of a whose words b uses too, for the same examples or not
    order: Estimate

    def to_json(self) -> dict[str, Any]:
        pairs = [list(astuple(feature)) for feature in self.shared]
        return {
            "a": self.a,
            "b": self.b,
            "found_by_both": pairs,
            "found_by_a_alone": self.only_a,
            "found_by_b_alone": self.only_b,
            "same_name": self.by_name,
            "salience_order": self.order.to_json(),
        }


@dataclass(frozen=True, eq=False)
class Yield:
    """What one oracle's own discovery brought, and at what price."""

    name: str
    features: int
    counting: int  # interesting and distinct
    names_per_selection: Estimate
    g: float
    g_curve: tuple[float, ...]
    per_query: Estimate  # of those that count
    per_dollar: Estimate
    per_hour: Estimate
    stopped: str

    def to_json(self) -> dict[str, Any]:
        estimates = ("names_per_selection", "per_query", "per_dollar", "per_hour")
        plain = {name: getattr(self, name) for name in ("features", "counting", "g", "stopped")}
        figures = {name: getattr(self, name).to_json() for name in estimates}
        return {"oracle": self.name, **plain, "g_curve": list(self.g_curve), **figures}


def _same_questions(study: Study, a: Rater, b: Rater) -> SameQuestions:
    pairs = list(zip(study.asked, a.compared, b.compared, strict=True))
    named = [(asked, x, y) for asked, x, y in pairs if x.verdict == NAMED == y.verdict]
    chosen = [(x, y) for asked, x, y in named if not asked.without]  # else the question says which are meant
    split = sum(set(x.shown) == set(y.shown) for x, y in chosen)
    words = sum(same_name(x.name, y.name) for _, x, y in named)
    reason = "there is no question for which both named something"
    no_choice = reason if chosen or not named else "the questions say which examples are meant"
    return SameQuestions(
        a.name,
        b.name,
        triples=len(pairs),
        both_named=len(named),
        same_split=share(split, len(chosen), no_choice),
        same_words=share(words, len(named), reason),
    )


def _yield(name: str, found: Discovered) -> Yield:
    groups = distinct_selections(correlations(found.labels, found.labels), SAME_LABELS) if len(found.names) else 0

    def per(amount: float, reason: str) -> Estimate:
        if not found.names:
            return Estimate.undefined("it named no feature")
        return Estimate(found.counting / amount) if amount else Estimate.undefined(reason)

    return Yield(
        name=name,
        features=len(found.names),
        counting=found.counting,
        names_per_selection=(
            Estimate(len(found.names) / groups) if groups else Estimate.undefined("it named no feature")
        ),
        g=found.g,
        g_curve=found.g_curve,
        per_query=per(found.queries, "nothing was asked"),
        per_dollar=per(found.usd, "its answers cost nothing"),
        per_hour=per(found.seconds / 3600, "its answers took no time that was recorded"),
        stopped=found.stopped,
    )


def matched(study: Study) -> list[Matched]:
    """Every two oracles that discovered by themselves."""
    found = [(oracle.name, oracle.discovered) for oracle in study.raters if oracle.discovered is not None]
    return [_matched(name_a, a, name_b, b) for (name_a, a), (name_b, b) in combinations(found, 2)]


def _matched(name_a: str, a: Discovered, name_b: str, b: Discovered) -> Matched:
    matches = best_matches(correlations(a.labels, b.labels)) if a.names and b.names else []
    shared = [
        Shared(
            a=a.names[match.a],
            b=b.names[match.b],
            order_a=match.a + 1,
            order_b=match.b + 1,
            correlation=match.correlation,
            same_words=same_name(a.names[match.a], b.names[match.b]),
        )
        for match in matches
    ]
    with_a, with_b = {match.a for match in matches}, {match.b for match in matches}
    return Matched(
        a=name_a,
        b=name_b,
        shared=shared,
        only_a=[name for place, name in enumerate(a.names) if place not in with_a],
        only_b=[name for place, name in enumerate(b.names) if place not in with_b],
        by_name=sum(any(same_name(name, other) for other in b.names) for name in a.names),
        order=order_agreement(matches),
    )


@dataclass(frozen=True, slots=True)
class Disagreement:
    feature: int
    row: int
    labels: tuple[int, ...]  # per oracle
    votes: tuple[tuple[int, int, int], ...]  # per oracle: yes, no, refused
    truth: int  # UNKNOWN where it is not known
    strength: float  # how sure the two sides are: 1 where both are unanimous


def disagreements(study: Study) -> list[Disagreement]:
    """Where a known label contradicts another oracle's; the surest contradictions first."""
    if not study.raters:
        return []
    sheets = [oracle.sheet for oracle in study.raters]
    labels = np.stack([sheet.labels for sheet in sheets])
    yes, no = np.stack([sheet.yes for sheet in sheets]), np.stack([sheet.no for sheet in sheets])
    refused = np.stack([sheet.refused for sheet in sheets])
    differ = (labels == 1).any(0) & (labels == 0).any(0)
    sure = np.abs(yes - no) / np.maximum(yes + no, 1)
    for_it = np.where(labels == 1, sure, 0.0).max(0)
    against = np.where(labels == 0, sure, 0.0).max(0)
    strength = np.minimum(for_it, against)
    found = []
    for feature, row in np.argwhere(differ).tolist():
        found.append(
            Disagreement(
                feature=feature,
                row=row,
                labels=tuple(labels[:, feature, row].tolist()),
                votes=tuple(zip(*(counts[:, feature, row].tolist() for counts in (yes, no, refused)), strict=True)),
                truth=UNKNOWN if study.truth is None else int(study.truth[feature, row]),
                strength=float(strength[feature, row]),
            )
        )
    return sorted(found, key=lambda found: (-found.strength, found.feature, found.row))


@dataclass(frozen=True, eq=False)
class OracleComparison:
    study: Study
    reference: Reference
    pairs: list[PairAgreement]
    together: dict[str, Estimate]
    qualities: list[Quality]
    versus: list[Versus]
    advice: list[Advice]
    same_questions: list[SameQuestions]
    yields: list[Yield]
    matched: list[Matched]
    disagreements: list[Disagreement]

    @property
    def methods(self) -> str:
        return _methods(self.study, self.reference)


def compare_oracles(study: Study) -> OracleComparison:
    reference, people = reference_of(study), study.people
    return OracleComparison(
        study=study,
        reference=reference,
        pairs=agreements(study),
        together=all_together(study),
        qualities=qualities(study, reference),
        versus=[versus(study, model, people) for model in study.models] if people else [],
        advice=[advice(study, reference, model, people) for model in study.models] if people else [],
        same_questions=[_same_questions(study, a, b) for a, b in combinations(study.raters, 2)] if study.asked else [],
        yields=[_yield(oracle.name, oracle.discovered) for oracle in study.raters if oracle.discovered],
        matched=matched(study),
        disagreements=disagreements(study),
    )


def _methods(study: Study, reference: Reference) -> str:
    """A paragraph of methods, ready to paste: what was done, with which versions and seeds."""
    names = "; ".join(_who(oracle) for oracle in study.raters)
    sentences = [
        f"{plural(len(study.ids), 'example')} of the data set {study.dataset} ({study.total:,} examples, content "
        f"digest {study.digest[:16]}) were labelled with {plural(len(study.features), 'feature')} ({study.origin}) "
        f"by {names}. A label is the majority of its votes; a tie, a refusal or an unreadable reply leaves it unknown "
        "and is left out.",
        f"Labels were measured against {reference.words}.",
        f"Intervals are 95 % percentile bootstrap intervals over examples ({study.draws:,} draws, all features of an "
        "example resampled together), Wilson intervals where no resample differs; overall figures are means over the "
        "features of which the statistic is defined, and their intervals also span the bias-corrected ones. Agreement "
        "is given as Cohen's kappa, Fleiss' kappa (votes pooled where their numbers differ) and Krippendorff's alpha "
        "for nominal data.",
    ]
    if len(study.raters) > 1 and study.people is not None:
        sentences.append(
            "Whether a model may replace a person was tested with the alternative annotator test (Calderon, Reichart "
            f"and Dror 2025; ε = {EPSILON[study.annotators]:g} for {study.annotators} annotators, at least "
            f"{FEWEST_EXAMPLES} examples per person, false discovery rate {LEVEL:g} after Benjamini and Yekutieli), "
            "with the model's majority label. Shares were corrected by prediction-powered inference (PPI++, "
            "Angelopoulos, Duchi and Zrnic 2023)."
        )
    sentences.append("Votes were also combined by Dawid and Skene's (1979) model, fitted to each feature by EM.")
    if any(oracle.discovered for oracle in study.raters):
        sentences.append(
            f"Features of separate discoveries were matched by optimal assignment on squared label correlations, pairs "
            f"below {ALIKE:g} left out."
        )
    versions = ", ".join(f"{name} {version}" for name, version in study.versions.items())
    sentences.append(f"Seed {study.seed}; {versions}." if versions else f"Seed {study.seed}.")
    return " ".join(sentences)


def _who(oracle: Rater) -> str:
    kind = f"{oracle.stands_for}: {oracle.terms}" if oracle.terms else oracle.stands_for
    votes = oracle.sheet.votes.shape[-1]
    model = oracle.identity.get("model", "")
    prompts = f", prompts {oracle.identity['prompts']}" if oracle.identity.get("prompts") else ""
    named = f"{oracle.identity.get('kind', '')}{':' if model else ''}{model}"
    shown = f" [{named}]" if named and named != oracle.name else ""
    return f"{oracle.name}{shown} ({kind}, up to {plural(votes, 'vote')} per label{prompts})"
