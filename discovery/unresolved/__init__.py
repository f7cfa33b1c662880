"""unresolved."""
