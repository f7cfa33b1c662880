"""contrastive."""
