"""Tables of enrichment: their columns now, their nights, drift, and what they must be like."""

from studio.tables.table_pages import TablePages
