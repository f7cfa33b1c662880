"""Labels of one example that are asked and answered together, many in one row."""
