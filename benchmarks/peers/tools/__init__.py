"""One program per tool, run by the Python of the tool's own environment: a job as JSON in, labels as JSON out."""
