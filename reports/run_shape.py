"""What run.json must hold for a report or an export, so that a folder which nothing of ours wrote is one line."""

from __future__ import annotations

from typing import Any

from reports.run import Run, RunError

NUMBER = (int, float)
ORACLE = {"kind": str, "model": str, "parameters": dict, "prompts": str}
LEFT_OUT = {"id": str, "reason": str}
SHAPE: dict[str, Any] = {
    "settings": {"dataset": str, "strategy": str, "votes": int, "seed": int},
    "dataset": {"name": str, "digest": str, "examples": int, "compared": int, "left_out": [LEFT_OUT]},
    "oracle": ORACLE,
    "run_id": str,
    "queries": int,
    "g_curve": [NUMBER],
    "g?": NUMBER,
    "unresolved?": NUMBER,
    "seconds?": NUMBER,
    "stopped_because": str,
    "cost_usd": NUMBER,
    "paid_calls": int,
    "cached_calls": int,
    "versions": dict,
}


def check_shape(run: Run) -> None:
    if problem := _problem(run.summary, SHAPE, ""):
        path = run.folder / "run.json"
        raise RunError(f"{path} is not what discover writes ({problem}): run discover again to write it anew")


def _problem(value: Any, shape: Any, at: str) -> str | None:
    """Where a value is not of its shape: a type, some of them, the members of an object, of which those with a ? may be
    missing, or what a list is of."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{at.rstrip('.') or 'all of it'} is no object"
        missing = next((name for name in shape if not name.endswith("?") and name not in value), None)
        if missing is not None:
            return f"{at}{missing} is missing"
        there = [(name.rstrip("?"), inner) for name, inner in shape.items() if name.rstrip("?") in value]
        found = (_problem(value[name], inner, f"{at}{name}.") for name, inner in there)
        return next((problem for problem in found if problem), None)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{at.rstrip('.')} is no list"
        return next((problem for one in value if (problem := _problem(one, shape[0], f"{at}each."))), None)
    fits = isinstance(value, shape) and not isinstance(value, bool)
    return None if fits else f"{at.rstrip('.')} is {type(value).__name__}"
