"""Which columns the next version of a table has."""

from __future__ import annotations

from typing import Any

from twothirds.flows.enrich.settings import EnrichSettings
from twothirds.models import Feature
from twothirds.reports.run import RunError
from twothirds.reports.versions import Column, TableSchema
from twothirds.studio.web import plural


def next_table_schema(
    old: TableSchema, features: list[Feature], identity: dict[str, Any], settings: EnrichSettings
) -> TableSchema:
    """The schema of the version to come."""
    version = old.version + 1
    if old.columns and (old.oracle, old.votes) != (identity, settings.votes):
        if not settings.backfill:
            raise RunError(
                f"the table was labelled by {old.oracle.get('kind')}:{old.oracle.get('model')} with "
                f"{plural(old.votes, 'vote')}, and {settings.oracle} with {plural(settings.votes, 'vote')} is another "
                "voter: ask everything again with --backfill, or give another --out"
            )
        columns = tuple(Column(f.name, f.definition, 0) for f in features)
        return TableSchema(version, columns, identity, settings.votes, corrections=old.corrections)
    by_name = {feature.name: feature for feature in features}
    continued = [_continued(column, by_name.get(column.name), settings) for column in old.columns]
    # Rows of before count as asked for a new feature only if it is filled in for them.
    since = 0 if settings.backfill or not old.columns else version
    continued += [Column(f.name, f.definition, since) for f in features if f.name not in old.names]
    same = {column.name for column in continued if column.definition == (old.column(column.name) or column).definition}
    certificates = tuple(certificate for certificate in old.certificates if certificate["feature"] in same)
    return TableSchema(version, tuple(continued), identity, settings.votes, certificates, old.corrections)


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
