"""The application: the routes of the studio beside those of the review, behind the same access check."""

from __future__ import annotations

from fastapi import FastAPI

from store.review import Queue
from studio.browse import BrowsePages
from studio.catalog import RunCatalog, TableCatalog
from studio.config import StudioConfig
from studio.live_pages import LivePages
from studio.login_pages import LoginPages
from studio.pages import Studio
from studio.review import SECRET, Authenticator, ReviewConfig, Signer, create_app
from studio.runs import CorrectPages, CostPages, RunPages
from studio.start_pages import StartPages
from studio.table_pages import TablePages


def create_studio(queue: Queue, review: ReviewConfig, config: StudioConfig) -> FastAPI:
    app = create_app(queue, review)
    authenticator = Authenticator(queue, Signer(queue.people.secret(SECRET)), review.cookie, secure=review.secure)
    run_catalog = RunCatalog(config.roots)
    studio = Studio(config, run_catalog, TableCatalog(run_catalog))
    for pages in (
        LoginPages(studio, queue, authenticator),
        RunPages(studio),
        CostPages(studio),
        TablePages(studio),
        BrowsePages(studio),
        CorrectPages(studio),
        LivePages(studio),
        StartPages(studio),
    ):
        app.include_router(pages.router())
    return app
