"""A discovery that is watched and steered: what it does as it happens, and what people want of it."""
