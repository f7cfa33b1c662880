"""Labels for other programs, and the data set card."""

from twothirds.reports.export.formats import FILES, export_run, formats_named
from twothirds.reports.export.tables import reason_for_doubt, selection_as_parquet
