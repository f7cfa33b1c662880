"""What an enrichment says it did: a dictionary for enrich.json, and the same in words."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from flows.enrich_settings import EnrichSettings
from flows.enrichment import TOLD, Changes, Enrichment, Why
from flows.loop import StopReason
from models.oracle import MICRO, Feature, OracleUnavailable
from reports.drift import drift_of
from reports.growing import Meaning


def summarise(
    settings: EnrichSettings,
    features: list[Feature],
    work: Enrichment,
    changes: Changes,
    before: Meaning,
    seconds: float,
) -> dict[str, Any]:
    table, names = work.table, [feature.name for feature in features]
    places = [table.meaning.names.index(name) for name in names]
    now = table.labels[changes.new_content]
    drift = drift_of(names, [work.before[:, place] for place in places], [now[:, place] for place in places])
    return {
        "settings": settings.model_dump(mode="json"),
        "oracle": table.meaning.oracle,
        "version": table.meaning.version,
        "rows": len(table),
        "features": names,
        "new_features": [name for name in names if name not in before.names],
        **{why.value: changes.counts[why] for why in Why},
        "ids": {why.value: changes.ids[why] for why in Why if changes.ids[why]},
        "unchanged": changes.unchanged,
        "gone": changes.gone,
        "left_out": [{"id": one.id, "reason": one.reason} for one in changes.left_out[:TOLD]],
        "turned_over": changes.flips,
        "drift": [asdict(one) | {"moved": one.moved} for one in drift],
        "paid_calls": changes.paid_calls,
        "cached_calls": changes.cached_calls,
        "cost_usd": changes.cost / MICRO,
        "stopped_because": _why_stopped(changes),
        "partial": changes.failure is not None or changes.stopped is not None,
        "message": str(changes.failure or changes.stopped or ""),
        "seconds": seconds,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _why_stopped(changes: Changes) -> str:
    if isinstance(changes.failure, OracleUnavailable):
        return str(StopReason.UNAVAILABLE)
    return "failed" if changes.failure else "budget" if changes.stopped else "done"


def told(summary: dict[str, Any]) -> list[str]:
    """The summary in words."""
    counted = ", ".join(f"{summary[why.value]:,} {why.value}" for why in Why if summary[why.value])
    lines = [f"{counted or 'nothing new'}, {summary['unchanged']:,} unchanged; {summary['rows']:,} rows"]
    if summary["gone"]:
        lines.append(f"{summary['gone']:,} rows are no longer in the data set and stay as they are")
    if summary["left_out"]:
        first = summary["left_out"][0]
        lines.append(f"{len(summary['left_out'])} left out, {first['id']} for one: {first['reason']}")
    if summary["turned_over"]:
        worst = sorted(summary["turned_over"].items(), key=lambda item: -item[1])[:5]
        lines.append("turned over by changed content: " + ", ".join(f"{name} {count}" for name, count in worst))
    for one in summary["drift"]:
        if one["moved"]:
            lines.append(
                f"moved: {one['feature']} {one['before']:.0%} → {one['now']:.0%} "
                f"({one['low']:+.0%} to {one['high']:+.0%})"
            )
    if summary["message"]:
        lines.append(summary["message"])
    calls = f"{summary['paid_calls']:,} calls paid, {summary['cached_calls']:,} from the store"
    return [*lines, f"{calls}, {summary['cost_usd']:.4f} USD"]
