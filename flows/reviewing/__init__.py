"""reviewing."""
