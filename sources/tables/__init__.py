"""Tables as streams of records: CSV, JSON, Parquet and Arrow."""
