"""Labels for other programs, and the data set card."""

from twothirds.reports.export.formats import FILES, export_run, export_table, formats_named
from twothirds.reports.export.origins import Marks, of_run
from twothirds.reports.export.tables import reason_for_doubt, wide_parquet
