"""What runs: a folder per Prefect flow, and the command line."""

VERSION = "0.1.0"
APP = "twothirds"
