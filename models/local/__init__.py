"""Transformers models on this machine as oracles."""
