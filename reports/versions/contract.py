"""What a table must be like before it replaces the one before: `enrich --expect FILE`.

The schema.json that enrich writes beside a table is such a file, without bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from twothirds.discovery import Labels
from twothirds.discovery.statistics import wilson
from twothirds.reports.run import RunError
from twothirds.reports.versions.table import VersionedTable
from twothirds.reports.versions.table_file import REFUSED

SCHEMA = "schema.json"
OWN_TYPES = {"id": "string", "digest": "string", "version": "int32"}
LABEL_TYPES = ("boolean", "int8")  # in the history, in labels.parquet
REMEDY = "give a file as docs/enrich.md describes it with --expect"


class ContractViolated(Exception):
    """A table that is not as expected, and has not replaced the one before."""

    @classmethod
    def leaving(cls, folder: Path, violations: list[str]) -> ContractViolated:
        more = f", and {len(violations) - 1} more" if len(violations) > 1 else ""
        return cls(
            f"the table in {folder} was not replaced, because it is not as expected: {violations[0]}{more}: see "
            f"enrich.json and {REFUSED} there, then mend the cause or change --expect; answers are kept"
        )


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Range(_Part):
    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        low, high = getattr(self, "min"), getattr(self, "max")  # noqa: B009  # of the classes below
        if low is not None and high is not None and low > high:
            raise ValueError("min is above max")
        return self


class CountRange(_Range):
    min: int | None = Field(None, ge=0)
    max: int | None = Field(None, ge=0)


class ShareRange(_Range):
    min: float | None = Field(None, ge=0, le=1)
    max: float | None = Field(None, ge=0, le=1)

    def excludes(self, low: float, high: float) -> str:
        """What a share between the two, both included, violates; empty where it may be right."""
        if self.min is not None and high < self.min:
            return f"at least {self.min:.4g} is expected"
        if self.max is not None and low > self.max:
            return f"at most {self.max:.4g} is expected"
        return ""


class ExpectedLabels(_Part):
    share: ShareRange | None = None  # of yes among the labels that are known
    missing: ShareRange | None = None  # of rows without a label


class ExpectedColumn(ExpectedLabels):
    name: str
    type: str | None = None
    nullable: bool = True
    definition: str | None = None
    new: ExpectedLabels | None = None  # of the rows that are new or have changed
    observed: dict[str, Any] | None = None  # of the table that the file was written for; not checked


class Contract(_Part):
    columns: tuple[ExpectedColumn, ...] = ()
    other_columns: bool = True  # whether the table may have more
    rows: CountRange | None = None
    version: int | None = None  # of the table that the file was written for; not checked

    @classmethod
    def read(cls, path: Path) -> Contract:
        """Raises RunError in one line."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise RunError(f"cannot read {path} ({(error.strerror or str(error)).lower()}): {REMEDY}") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            raise RunError(f"{path}: {where}: {first['msg'].lower()}: {REMEDY}") from None

    def violations(self, table: VersionedTable, new: Sequence[int]) -> list[str]:
        """What is not as expected, each in a line. `new` are the rows with new contents: their shares are judged by
        their 95 % intervals, so that a night with three examples violates nothing by chance."""
        return [*self._of_columns(table), *self._of_labels(table, np.asarray(new, np.intp)), *self._of_rows(len(table))]

    def _of_rows(self, rows: int) -> Iterator[str]:
        wanted = self.rows or CountRange()
        if wanted.min is not None and rows < wanted.min:
            yield f"{rows:,} rows, at least {wanted.min:,} are expected"
        if wanted.max is not None and rows > wanted.max:
            yield f"{rows:,} rows, at most {wanted.max:,} are expected"

    def _of_columns(self, table: VersionedTable) -> Iterator[str]:
        features = dict(zip(table.table_schema.column_names, table.table_schema.columns, strict=True))
        for column in self.columns:
            feature = features.get(column.name)
            if feature is None and column.name not in OWN_TYPES:
                yield f"{column.name}: there is no such column"
                continue
            types = LABEL_TYPES if feature is not None else (OWN_TYPES[column.name],)
            if column.type is not None and column.type not in types:
                yield f"{column.name}: {column.type} is expected, and it is {types[0]}"
            if feature is not None and column.definition is not None and feature.definition != column.definition:
                yield f"{column.name}: it is defined otherwise: {feature.definition!r}"
        if not self.other_columns:
            known = {column.name for column in self.columns}
            yield from (f"{name}: no such column is expected" for name in features if name not in known)

    def _of_labels(self, table: VersionedTable, new: np.ndarray[Any, np.dtype[np.intp]]) -> Iterator[str]:
        names = table.table_schema.column_names
        for column in self.columns:
            if column.name not in names:
                continue
            labels = table.labels[: len(table), names.index(column.name)]
            if not column.nullable and (labels < 0).any():
                yield f"{column.name}: {int((labels < 0).sum()):,} labels are missing, and none may be"
            yield from _violated(column.name, "rows", column, labels, exact=True)
            if column.new is not None:
                yield from _violated(column.name, "new rows", column.new, labels[new], exact=False)


def _violated(name: str, kind: str, wanted: ExpectedLabels, labels: Labels, *, exact: bool) -> Iterator[str]:
    known = int((labels >= 0).sum())
    for range_, count, total, verb in (
        (wanted.share, int((labels == 1).sum()), known, "have it"),
        (wanted.missing, len(labels) - known, len(labels), "have no label"),
    ):
        if range_ is None or not total:
            continue
        share = count / total
        problem = range_.excludes(*((share, share) if exact else wilson(count, total)))
        if problem:
            yield f"{name}: {share:.4g} of {total:,} {kind} {verb}, {problem}"


def schema_of(table: VersionedTable) -> dict[str, Any]:
    """Columns with types, definitions and what the shares are: a contract without bounds."""
    columns: list[dict[str, Any]] = [
        {"name": name, "type": kind, "nullable": False} for name, kind in OWN_TYPES.items()
    ]
    for name, column in zip(table.table_schema.column_names, table.table_schema.columns, strict=True):
        labels = table.column_labels(column.name)
        known = int((labels >= 0).sum())
        observed = {
            "share": round(int((labels == 1).sum()) / known, 4) if known else None,
            "missing": round(1 - known / len(labels), 4) if len(labels) else None,
        }
        columns.append(
            {
                "name": name,
                "type": LABEL_TYPES[0],
                "nullable": True,
                "definition": column.definition,
                "observed": observed,
            }
        )
    return {"version": table.table_schema.version, "columns": columns}
