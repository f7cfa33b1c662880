"""The application: the routes of the studio beside those of the review, behind the same access check."""

from __future__ import annotations

from dataclasses import replace

from fastapi import FastAPI

from twothirds.store.review import Queue
from twothirds.studio.browse import BrowsePages
from twothirds.studio.catalog import RunCatalog, TableCatalog
from twothirds.studio.config import StudioConfig
from twothirds.studio.live_pages import LivePages
from twothirds.studio.login_pages import LoginPages
from twothirds.studio.pages import Studio
from twothirds.studio.review import SECRET, Authenticator, ReviewConfig, Signer, create_app
from twothirds.studio.runs import CorrectPages, CostPages, FeaturePages, RunPages
from twothirds.studio.start_pages import StartPages
from twothirds.studio.table_pages import TablePages


def create_studio(queue: Queue, review: ReviewConfig, config: StudioConfig) -> FastAPI:
    review = replace(review, overview="/people")  # in the studio's frame
    app = create_app(queue, review)
    authenticator = Authenticator(queue, Signer(queue.people.secret(SECRET)), review.cookie, secure=review.secure)
    run_catalog = RunCatalog(config.roots)
    studio = Studio(config, run_catalog, TableCatalog(run_catalog))
    for pages in (
        LoginPages(studio, queue, authenticator, review),
        RunPages(studio),
        FeaturePages(studio),
        CostPages(studio),
        TablePages(studio),
        BrowsePages(studio),
        CorrectPages(studio),
        LivePages(studio),
        StartPages(studio),
    ):
        app.include_router(pages.router())
    return app
