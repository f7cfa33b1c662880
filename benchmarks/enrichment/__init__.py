"""How an enrichment and its store grow with the data."""
