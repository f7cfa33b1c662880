"""prompting."""
