"""The compare flow: the same questions to several oracles."""
