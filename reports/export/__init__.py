"""Labels for other programs, and the data set card."""

from reports.export.formats import FILES, export_run, formats_named
from reports.export.tables import reason_for_doubt, selection_as_parquet
