"""How fast an enrichment labels."""
