"""The command line: one module for each group of commands, imported only when one of them runs."""
