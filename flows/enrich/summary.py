"""What an enrichment says it did: a dictionary for enrich.json, and the same in words."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from flows.discover.loop import StopReason
from flows.enrich.settings import EnrichSettings
from flows.enrich.update import Changes, Enrichment, Why
from models.oracle import MICRO, Feature, OracleUnavailable
from reports.analysis.drift import Share, drift_of
from reports.drawing.number_formats import of_things
from reports.label_table import Meaning


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
    before_now = work.before, table.labels[changes.new_content]
    shares = [[Share.of(labels[:, place]) for place in places] for labels in before_now]
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
        "left_out_count": changes.left_out_count,
        "left_out": [{"id": one.id, "reason": one.reason} for one in changes.left_out],
        "turned_over": changes.flips,
        "drift": _drift(names, *shares),
        "paid_calls": changes.paid_calls,
        "cached_calls": changes.cached_calls,
        "cost_usd": changes.cost / MICRO,
        "unknown_calls": changes.unknown_calls,
        "unknown_usd": changes.unknown / MICRO,
        "stopped_because": _why_stopped(changes),
        "partial": not changes.complete,
        "message": str(changes.failure or changes.stopped or ""),
        "seconds": seconds,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _why_stopped(changes: Changes) -> str:
    if isinstance(changes.failure, OracleUnavailable):
        return str(StopReason.UNAVAILABLE)
    return "failed" if changes.failure else "budget" if changes.stopped else "done"


def _drift(names: list[str], before: list[Share], now: list[Share]) -> list[dict[str, Any]]:
    return [asdict(one) | {"moved": one.moved} for one in drift_of(names, before, now)]


def told(summary: dict[str, Any]) -> list[str]:
    """The summary in words."""
    counted = ", ".join(f"{summary[why.value]:,} {why.value}" for why in Why if summary[why.value])
    lines = [f"{counted or 'nothing new'}, {summary['unchanged']:,} unchanged; {summary['rows']:,} rows"]
    if summary["gone"]:
        lines.append(f"no longer in the data set, and as they were: {of_things(summary['gone'], 'row')}")
    if summary["left_out"]:
        first = summary["left_out"][0]
        lines.append(f"{summary['left_out_count']:,} left out, {first['id']} for one: {first['reason']}")
    if summary["turned_over"]:
        worst = sorted(summary["turned_over"].items(), key=lambda item: -item[1])[:5]
        lines.append("turned over by changed content: " + ", ".join(f"{name} {count}" for name, count in worst))
    new = summary["new_features"]
    if new and summary["version"] > 1 and not summary["settings"]["backfill"]:
        lines.append(f"new, and asked of new examples only: {', '.join(new)} (--backfill asks of the old ones too)")
    for one in summary["drift"]:
        if one["moved"]:
            lines.append(
                f"moved: {one['feature']} {one['before']:.0%} → {one['now']:.0%} "
                f"({one['low']:+.0%} to {one['high']:+.0%})"
            )
    if summary["message"]:
        lines.append(summary["message"])
    if summary["unknown_calls"]:
        lines.append(
            f"{summary['unknown_calls']:,} calls were sent and never answered: at most {summary['unknown_usd']:.4f} USD"
        )
    calls = f"{summary['paid_calls']:,} calls paid, {summary['cached_calls']:,} from the store"
    return [*lines, f"{calls}, {summary['cost_usd']:.4f} USD"]
