"""On which terms questions are published on Mechanical Turk, and what that costs at most."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape

from flows.errors import UsageError
from flows.settings import micro
from models import Money

SCHEMA = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
FRAME_HEIGHT = 900
FEE, FEE_OF_MANY, MANY, LEAST_FEE = Decimal("0.2"), Decimal("0.4"), 10, Decimal("0.01")
APPROVED = "000000000000000000L0"  # Amazon's qualification: percentage of assignments approved
LOCALE = "00000000000000000071"


@dataclass(frozen=True)
class Marketplace:
    name: str
    endpoint: str
    submit: str  # where a worker's browser hands an assignment in
    pays: bool


SANDBOX = Marketplace(
    "sandbox",
    "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
    "https://workersandbox.mturk.com",
    pays=False,
)
PRODUCTION = Marketplace(
    "production", "https://mturk-requester.us-east-1.amazonaws.com", "https://www.mturk.com", pays=True
)


@dataclass(frozen=True)
class HitTerms:
    reward: Decimal  # USD per assignment, which is one page of questions
    cap: Decimal  # USD that all of it may cost
    market: Marketplace = SANDBOX
    assignments: int | None = None  # people per task (default: as many as votes are missing)
    lifetime_hours: float = 72.0
    duration_minutes: float = 30.0
    approved_percent: int | None = 95
    locale: str | None = None
    qualifications: tuple[str, ...] = ()  # types of your own that a worker must have
    title: str = "Look at examples and say what they have"
    description: str = "Mark the examples that have a feature, or name what two of three share."
    keywords: str = "images, labelling, categorisation"

    def __post_init__(self) -> None:
        if self.reward <= 0 or self.reward != round(self.reward, 2):
            raise UsageError(f"--reward {self.reward}: give whole cents per task, at least 0.01")
        if self.cap <= 0:
            raise UsageError(f"--cap {self.cap}: give the USD that all tasks together may cost")
        if self.assignments is not None and not 1 <= self.assignments <= 100:
            raise UsageError(f"--assignments {self.assignments}: from 1 to 100 people can be asked")
        if not 1 / 120 <= self.lifetime_hours <= 24 * 365 or not 0.5 <= self.duration_minutes <= 60 * 24 * 365:
            raise UsageError("--lifetime-hours and --duration-minutes must be from 30 seconds to one year")
        if self.approved_percent is not None and not 0 <= self.approved_percent <= 100:
            raise UsageError(f"--approved-percent {self.approved_percent} is not from 0 to 100")

    def bound(self, assignments: int) -> Money:
        """The most that one assignment of a task with so many can cost, Amazon's fee included; 0 in the sandbox."""
        fee = max(self.reward * (FEE_OF_MANY if assignments >= MANY else FEE), LEAST_FEE)
        return micro(self.reward + fee) if self.market.pays else 0

    def request(self, token: str, address: str, assignments: int) -> dict[str, Any]:
        """The arguments of CreateHIT. The token makes a repetition harmless for a day, and is found by listing."""
        return {
            "MaxAssignments": assignments,
            "LifetimeInSeconds": round(3600 * self.lifetime_hours),
            "AssignmentDurationInSeconds": round(60 * self.duration_minutes),
            "Reward": f"{self.reward:.2f}",
            "Title": self.title,
            "Description": self.description,
            "Keywords": self.keywords,
            "Question": external_question(address),
            "RequesterAnnotation": token,
            "QualificationRequirements": self._requirements(),
            "UniqueRequestToken": token,
        }

    def _requirements(self) -> list[dict[str, Any]]:
        wanted: list[dict[str, Any]] = []
        if self.approved_percent is not None and self.market.pays:  # workers of the sandbox have no history
            wanted.append(
                {
                    "QualificationTypeId": APPROVED,
                    "Comparator": "GreaterThanOrEqualTo",
                    "IntegerValues": [self.approved_percent],
                }
            )
        if self.locale:
            place = {"Country": self.locale.upper()}
            wanted.append({"QualificationTypeId": LOCALE, "Comparator": "EqualTo", "LocaleValues": [place]})
        own = [{"QualificationTypeId": name, "Comparator": "Exists"} for name in self.qualifications]
        return [{**requirement, "ActionsGuarded": "DiscoverPreviewAndAccept"} for requirement in [*wanted, *own]]


def external_question(address: str) -> str:
    where = f"<ExternalURL>{escape(address)}</ExternalURL><FrameHeight>{FRAME_HEIGHT}</FrameHeight>"
    return f'<ExternalQuestion xmlns="{SCHEMA}">{where}</ExternalQuestion>'
