"""The discover flow, and `discover` from Python."""
