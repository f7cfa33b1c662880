"""What is wrong with an enrichment, reported before Prefect is imported or a cent is spent."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path

from twothirds.flows.discover.known import read_features, with_run_exemplars
from twothirds.flows.enrich.batches import open_oracle
from twothirds.flows.enrich.settings import EnrichSettings, default_folder
from twothirds.flows.events import SILENT, Events
from twothirds.flows.oracle_specs import OracleSpec, check_exemplars
from twothirds.flows.settings import local_folder
from twothirds.models import Feature
from twothirds.reports.run import check_writable
from twothirds.reports.versions import Contract
from twothirds.sources import Example, find_rows, iter_examples

LOOKED_AT = 100  # examples at most, until one is readable


def folder_of(settings: EnrichSettings) -> Path:
    """Where the table is, on this machine."""
    return local_folder(settings.out) if settings.out else default_folder(settings.dataset)


def check(settings: EnrichSettings) -> tuple[Path, list[Feature]]:
    """Where the table is and which features are asked; raises what bad input deserves before anything is started."""
    folder = folder_of(settings)
    check_writable(folder)
    features = read_features(settings.features)
    oracles = [oracle for oracle in (settings.oracle, settings.cheap) if oracle is not None]
    check_exemplars(settings.exemplars, *oracles)
    if settings.exemplars or any(OracleSpec.parse(oracle).kind == "human" for oracle in oracles):
        features = with_run_exemplars(settings.features, features, settings.exemplars)
    if settings.expect is not None:
        Contract.read(Path(settings.expect))
    find_rows(settings.dataset, settings.columns)
    if settings.runner != "threads":
        from twothirds.flows.enrich.runners import task_runner

        task_runner(settings)
    return folder, features


def check_oracles(settings: EnrichSettings, events: Events = SILENT) -> None:
    """Raises OracleError where an oracle can tell at once, by one example of the data set, that it will not answer."""
    with events.waiting(f"reading {settings.dataset}"):
        rows = islice(iter_examples(settings.dataset, settings.columns), LOOKED_AT)
        first = next((found for found in rows if isinstance(found, Example)), None)
    for oracle in filter(None, (settings.oracle, settings.cheap)):
        asked, store = open_oracle(settings.model_copy(update={"oracle": oracle}), events)
        with closing(store):
            asked.prepare([first] if first else [])
