"""replicate."""
