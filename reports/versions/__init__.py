"""A table of labels that grows: the table, its file, what each version changed, and what it must be like."""

from twothirds.reports.versions.contract import SCHEMA, Contract, ContractViolated, schema_of
from twothirds.reports.versions.history import GROWING, NewVersion, write_history
from twothirds.reports.versions.table import Column, CorrectedCell, TableSchema, VersionedTable
from twothirds.reports.versions.table_file import previous_rows, read_table, table_version, write_refused, write_table
from twothirds.reports.versions.table_versions import (
    SUMMARY,
    ColumnFigures,
    ListedTable,
    TableVersion,
    column_figures,
    nights_of,
)
