"""Tables as streams of records: CSV, JSON, Parquet and Arrow."""

from sources.tables.encoding import decoded
from sources.tables.frames import keep_frame
from sources.tables.parquet import cell_location, cell_of, read_cell
from sources.tables.records import Record, Table, is_empty, is_table, open_table, without_suffix
