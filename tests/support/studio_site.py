"""The studio for tests: run folders made to order, a real server in a thread, and people of every role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI

from tests.support.review_site import Site, Visitor, served
from tests.support.run_folders import make_run, random_matrix
from twothirds.flows.reviewing.page import PageSettings
from twothirds.flows.serving.app import StudioSettings, make_studio, studio_link
from twothirds.reports.finished_run import Run
from twothirds.store import Store
from twothirds.studio.catalog import key_of


def faces_run(folder: Path, names: list[str], examples: int = 30, **options: object) -> Run:
    """Of the shipped faces, labelled at random, some labels divided."""
    from twothirds.sources.load import load_dataset

    ids = [one.id for one in load_dataset("datasets/faces").examples[:examples]]
    matrix = random_matrix(len(names), len(ids), seed=3, unknown=0.05)
    return make_run(folder, "datasets/faces", ids, names, matrix, divided=0.2, **options)  # type: ignore[arg-type]


class StudioSite(Site):
    def settings(self) -> StudioSettings:
        return StudioSettings((str(self.root),), PageSettings(port=int(self.address.rsplit(":", 1)[-1])))

    root: Path

    def staff(self, name: str, role: str) -> Visitor:
        """Somebody who came by a link of the studio."""
        return self.stranger().open(studio_link(self.store, name, role, self.settings()))

    def key(self, run: Run) -> str:
        return key_of(run.folder.resolve())


@contextmanager
def running_studio(store: Store, root: Path) -> Iterator[StudioSite]:
    def app(page: PageSettings) -> FastAPI:
        return make_studio(store, StudioSettings((str(root),), page))

    with served(app) as (address, visitors):
        site = StudioSite(store, address, visitors)
        site.root = root
        yield site


@contextmanager
def own_studio(folder: Path) -> Iterator[StudioSite]:
    """Over the runs of the folder, on a store of its own."""
    (folder / "runs").mkdir(exist_ok=True)
    with Store.open(str(folder / "store.sqlite")) as store, running_studio(store, folder / "runs") as site:
        yield site
