"""The whole comparison, computed once from a study; the page and the exports read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discovery import UNKNOWN
from discovery.statistics import ALIKE, EPSILON, FEWEST_EXAMPLES, LEVEL, Estimate
from reports.compare.advice import Advice, advice
from reports.compare.discoveries import Matched, SameQuestions, Yield, matched, same_questions, yields
from reports.compare.labels import PairAgreement, Quality, agreements, all_together, qualities
from reports.compare.study import Rater, Reference, Study, reference_of
from reports.compare.versus import Versus, versus
from reports.drawing import plural


@dataclass(frozen=True, slots=True)
class Disagreement:
    feature: int
    row: int
    labels: tuple[int, ...]  # per oracle
    votes: tuple[tuple[int, int, int], ...]  # per oracle: yes, no, refused
    truth: int  # UNKNOWN where it is not known
    right: tuple[bool, ...]  # per oracle; all False where the truth is not known
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
        truth = UNKNOWN if study.truth is None else int(study.truth[feature, row])
        said = tuple(labels[:, feature, row].tolist())
        found.append(
            Disagreement(
                feature=feature,
                row=row,
                labels=said,
                votes=tuple(zip(*(counts[:, feature, row].tolist() for counts in (yes, no, refused)), strict=True)),
                truth=truth,
                right=tuple(label == truth and truth != UNKNOWN for label in said),
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

    def pair(self, a: str, b: str) -> PairAgreement:
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {a, b})


def compare_oracles(study: Study) -> OracleComparison:
    reference = reference_of(study)
    return OracleComparison(
        study=study,
        reference=reference,
        pairs=agreements(study),
        together=all_together(study),
        qualities=qualities(study, reference),
        versus=versus(study),
        advice=advice(study, reference),
        same_questions=same_questions(study),
        yields=yields(study),
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
