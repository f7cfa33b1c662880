"""What an enrichment says it did: a dictionary for enrich.json, and the same in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from flows.discover.loop import StopReason
from flows.enrich.settings import EnrichSettings
from flows.enrich.update import TOLD, Changes, Enrichment, Why
from models.oracle import MICRO, Feature, OracleUnavailable
from reports.analysis.drift import Share, drift_of
from reports.drawing.number_formats import plural
from reports.label_table import GrowingTable, Meaning

SUMMED = (*(why.value for why in Why), "unchanged", "left_out_count", "paid_calls", "cached_calls", "unknown_calls")


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


def joined(table: GrowingTable, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all parts together, as one run over all of it would say it."""
    partial = any(part["partial"] for part in parts)
    unfinished = next((part for part in parts if part["partial"]), parts[0])
    return {
        **parts[0],
        **{key: sum(part[key] for part in parts) for key in SUMMED},
        "settings": parts[0]["settings"] | {"shard": None},
        "shards": len(parts),
        "version": table.meaning.version,
        "rows": len(table),
        "ids": _joined_ids(parts),
        "gone": 0 if partial else sum(part["gone"] for part in parts),
        "left_out": sorted((one for part in parts for one in part["left_out"]), key=_by_id)[:TOLD],
        "turned_over": dict(sum((Counter(part["turned_over"]) for part in parts), Counter())),
        "drift": _joined_drift([part["drift"] for part in parts]),
        **{key: sum(round(part[key] * MICRO) for part in parts) / MICRO for key in ("cost_usd", "unknown_usd")},
        **{key: unfinished[key] for key in ("stopped_because", "partial", "message")},
        **{key: max(part[key] for part in parts) for key in ("seconds", "finished_at")},
    }


def _by_id(left: dict[str, str]) -> tuple[str, str]:
    return left["id"], left["reason"]


def _joined_ids(parts: list[dict[str, Any]]) -> dict[str, list[str]]:
    of_all = {why.value: sorted(name for part in parts for name in part["ids"].get(why.value, ())) for why in Why}
    return {why: names[:TOLD] for why, names in of_all.items() if names}


def _joined_drift(parts: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Every part has seen all of what was there before, and its own share of what is new."""
    before = [Share(one["positives_before"], one["examples_before"]) for one in parts[0]]
    now = [
        sum((Share(one["positives_now"], one["examples_now"]) for one in of_feature), Share(0, 0))
        for of_feature in zip(*parts, strict=True)
    ]
    return _drift([one["feature"] for one in parts[0]], before, now)


def told(summary: dict[str, Any]) -> list[str]:
    """The summary in words."""
    counted = ", ".join(f"{summary[why.value]:,} {why.value}" for why in Why if summary[why.value])
    lines = [f"{counted or 'nothing new'}, {summary['unchanged']:,} unchanged; {summary['rows']:,} rows"]
    if summary["gone"]:
        lines.append(f"no longer in the data set, and as they were: {plural(summary['gone'], 'row')}")
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
    if waits := summary.get("waits_for"):
        names = " and ".join(", ".join(waits).rsplit(", ", 1))
        lines.append(f"part {summary['settings']['shard']} is kept; the table is written with {names}")
    if summary["message"]:
        lines.append(summary["message"])
    if summary["unknown_calls"]:
        lines.append(
            f"{summary['unknown_calls']:,} calls were sent and never answered: at most {summary['unknown_usd']:.4f} USD"
        )
    calls = f"{summary['paid_calls']:,} calls paid, {summary['cached_calls']:,} from the store"
    return [*lines, f"{calls}, {summary['cost_usd']:.4f} USD"]
