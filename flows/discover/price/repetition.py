"""Whether a discovery would only repeat one that came to its end: it asks nothing then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flows.discover.findings import StopReason
from flows.discover.preparation import Prepared
from reports.run import STEER

_AT_ITS_END = (StopReason.QUERIES, StopReason.TARGET_G, StopReason.NONES, StopReason.EXHAUSTED)
_ENDED = {f"stopped: {reason}" for reason in _AT_ITS_END}
_DECIDE_NOTHING = {"budget", "store", "out", "wait"}


def has_ended(prepared: Prepared) -> bool:
    """Whether a run with these settings came to its end, and no wish for it (`steer`) may ask more."""
    if prepared.settings.retry_unusable or (prepared.folder / STEER).exists():
        return False
    mine = _what_decides(prepared.settings.model_dump(mode="json"))
    earlier = prepared.store.runs.latest([prepared.scope])
    return any(one.status in _ENDED and _what_decides(one.settings) == mine for one in earlier)


def _what_decides(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in _DECIDE_NOTHING}
