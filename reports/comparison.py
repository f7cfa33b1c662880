"""The whole comparison, worked out once from a study; the page and the exports read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discovery.alt_test import EPSILON
from discovery.estimates import Estimate
from reports.compare_advice import Advice, advice
from reports.compare_disagreements import Disagreement, disagreements
from reports.compare_discoveries import (
    Matched,
    SameQuestions,
    Yield,
    matched,
    same_questions,
    yields,
)
from reports.compare_labels import PairAgreement, Quality, agreements, all_together, qualities
from reports.compare_methods import methods
from reports.compare_study import Reference, Study, reference_of
from reports.compare_versus import Versus, versus


@dataclass(frozen=True, eq=False)
class Comparison:
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
        return methods(self.study, self.reference)

    def pair(self, a: str, b: str) -> PairAgreement:
        return next(one for one in self.pairs if {one.a, one.b} == {a, b})

    def to_json(self) -> dict[str, Any]:
        study = self.study
        return {
            "dataset": {"name": study.dataset, "digest": study.digest, "examples": study.total},
            "partial": study.partial,
            "sample": len(study.ids),
            "features": [{"name": name, "definition": definition} for name, definition in study.features],
            "features_from": study.origin,
            "reference": self.reference.words,
            "annotators": study.annotators,
            "epsilon": EPSILON[study.annotators],
            "wanted_accuracy": study.accuracy,
            "seed": study.seed,
            "draws": study.draws,
            "oracles": [
                {
                    "name": one.name,
                    "people": one.people,
                    "identity": one.identity,
                    "votes_wanted": one.wanted,
                    "votes": one.votes,
                    "refused": int(one.sheet.refused.sum()),
                    "voters": len(one.sheet.workers),
                    "cost_usd": one.usd,
                    "paid_usd": one.paid_usd,
                    "seconds": one.seconds,
                    "stopped": one.stopped,
                }
                for one in study.contenders
            ],
            "agreement": [one.to_json() for one in self.pairs],
            "agreement_of_all": {name: one.to_json() for name, one in self.together.items()},
            "quality": [one.to_json() for one in self.qualities],
            "model_against_people": [one.to_json() for one in self.versus],
            "advice": [one.to_json() for one in self.advice],
            "same_comparisons": [one.to_json() for one in self.same_questions],
            "own_discoveries": [one.to_json() for one in self.yields],
            "matched_features": [one.to_json() for one in self.matched],
            "disagreements": len(self.disagreements),
            "methods": self.methods,
            "versions": study.versions,
            "command": study.command,
            "finished_at": study.finished_at,
        }


def compare_oracles(study: Study) -> Comparison:
    reference = reference_of(study)
    return Comparison(
        study,
        reference,
        agreements(study),
        all_together(study),
        qualities(study, reference),
        versus(study),
        advice(study, reference),
        same_questions(study),
        yields(study),
        matched(study),
        disagreements(study),
    )
