"""A table of labels that grows: the table, its file, what each version changed, and what it must be like."""

from reports.enrichment.contract import SCHEMA, Contract, ContractViolated, schema_of
from reports.enrichment.history import GROWING, Cells, NewVersion, write_history
from reports.enrichment.nights import SUMMARY, ColumnFigures, ListedTable, Night, column_figures, nights_of
from reports.enrichment.table import Column, CorrectedCell, GrowingTable, Meaning
from reports.enrichment.table_file import read_table, table_version, write_refused, write_table
