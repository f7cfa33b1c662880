"""OpenAI-compatible servers as oracles."""
