"""Experiments on what real people and real models have answered: what docs/evidence.md quotes."""
