"""People as oracles: in the review queue, recorded, simulated, or mixed with models."""
