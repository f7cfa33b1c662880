"""The discover flow."""
