"""mturk."""
