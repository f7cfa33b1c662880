"""What runs: one file per Prefect flow, and the command line (`python -m flows`).

From Python and notebooks: `from flows.discover import discover`, then
`run = discover("datasets/faces", oracle="contrastive")`."""
