"""Oracles, all behind `models.oracle`: a folder for each kind of model or people, and what they share."""
