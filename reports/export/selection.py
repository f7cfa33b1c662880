"""Which features an export holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reports.run import SAME, Findings, Found, RunError


@dataclass(frozen=True)
class _Judged:
    found: Found
    interesting: bool
    distinct: bool


ONLY: dict[str, Callable[[_Judged], bool]] = {
    "interesting": lambda one: one.interesting,
    "distinct": lambda one: one.distinct,
}
WITHOUT: dict[str, Callable[[_Judged], bool]] = {
    "doubtful": lambda one: one.found.is_doubtful,
    "duplicates": lambda one: one.found.twin.startswith(SAME),
}


def selected(findings: Findings, only: Sequence[str] = (), without: Sequence[str] = ()) -> Findings:
    """The features that have all marks of `only` and none of `without`, judged among all of the run."""
    wanted = [_rule(name, "--only", ONLY) for name in _names(only)]
    unwanted = [_rule(name, "--without", WITHOUT) for name in _names(without)]
    judged = [_Judged(found, *marks) for found, marks in zip(findings.found, findings.marks, strict=True)]
    kept = [
        one.found for one in judged if all(rule(one) for rule in wanted) and not any(rule(one) for rule in unwanted)
    ]
    return replace(findings, found=kept)


def _names(given: Sequence[str]) -> list[str]:
    return [part.strip() for text in given for part in text.split(",")]


def _rule(name: str, option: str, rules: dict[str, Callable[[_Judged], bool]]) -> Callable[[_Judged], bool]:
    if name not in rules:
        raise RunError(f"{option} {name!r} is no mark of features: choose among {', '.join(rules)}")
    return rules[name]
