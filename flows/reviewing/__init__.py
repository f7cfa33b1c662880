"""People: the review page is served, and runs wait for their answers."""
