"""Forms that start discoveries, enrichments and comparisons, and what became of them."""

from studio.start.start_pages import StartPages
