"""What runs: one file per Prefect flow, and the command line (`python -m flows`).

From Python and notebooks: `from flows.discover import discover`, then
`run = discover("datasets/faces", oracle="contrastive")`."""

import sys

if sys.argv[:1] == ["-m"]:  # Python is looking for `python -m flows`: nothing else of it is imported yet
    import flows.starting

VERSION = "0.1.0"
