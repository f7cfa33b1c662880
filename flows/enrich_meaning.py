"""What the columns of the next version of a table mean, and when that forbids mixing new labels with old ones."""

from __future__ import annotations

from typing import Any

from flows.enrich_settings import EnrichSettings
from models.oracle import Feature
from reports.drawing.number_formats import of_things
from reports.label_table import Column, Meaning
from reports.run.folder import RunError


def next_meaning(old: Meaning, features: list[Feature], identity: dict[str, Any], settings: EnrichSettings) -> Meaning:
    """The meaning of the version to come."""
    version = old.version + 1
    if old.columns and (old.oracle, old.votes) != (identity, settings.votes):
        _require_backfill(settings, f"{old.oracle.get('kind')}:{old.oracle.get('model')}", old.votes)
        return Meaning(version, tuple(Column(f.name, f.definition, 0) for f in features), identity, settings.votes)
    given = {feature.name: feature for feature in features}
    columns = [_continued(column, given.get(column.name), settings) for column in old.columns]
    # Rows of before count as asked for a new feature only if it is filled in for them.
    since = 0 if settings.backfill or not old.columns else version
    columns += [Column(f.name, f.definition, since) for f in features if f.name not in old.names]
    return Meaning(version, tuple(columns), identity, settings.votes)


def _continued(column: Column, feature: Feature | None, settings: EnrichSettings) -> Column:
    """A column of before: as it was, filled in for old rows, or asked again under another definition."""
    if feature is None:
        return column
    if feature.definition != column.definition and not settings.backfill:
        raise RunError(
            f"feature {column.name!r} is defined otherwise than in the table: ask it again with --backfill, "
            "rename it, or give another --out"
        )
    return Column(column.name, feature.definition, 0 if settings.backfill else column.since)


def _require_backfill(settings: EnrichSettings, oracle: str, votes: int) -> None:
    if not settings.backfill:
        raise RunError(
            f"the table was labelled by {oracle} with {of_things(votes, 'vote')}, and {settings.oracle} with "
            f"{of_things(settings.votes, 'vote')} is another voter: ask everything again with --backfill, "
            "or give another --out"
        )
