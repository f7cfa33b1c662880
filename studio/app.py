"""The application: the routes of the studio beside those of the review, behind the same access check."""

from __future__ import annotations

from fastapi import FastAPI

from store.review import Queue
from studio.browse import BrowsePages
from studio.config import StudioConfig
from studio.door_pages import DoorPages
from studio.live import LivePages, SteerPages, Watched
from studio.review import SECRET, Gate, ReviewConfig, Signer, create_app
from studio.roles import Roles
from studio.runs import CorrectPages, CostPages, Others, PairPages, ReportPages, RunPages, Shelf
from studio.start_pages import StartPages
from studio.table_pages import TablePages
from studio.views import StudioTemplates


def create_studio(queue: Queue, review: ReviewConfig, config: StudioConfig) -> FastAPI:
    app = create_app(queue, review)
    signer, templates, shelf = Signer(queue.people.secret(SECRET)), StudioTemplates(), Shelf(config.roots)
    gate = Gate(queue, signer, review.cookie, secure=review.secure)
    roles, others = Roles(queue), Others(shelf)
    app.include_router(DoorPages(queue, config, templates, gate, roles).router())
    app.include_router(RunPages(config, templates, shelf, roles, others).router())
    app.include_router(PairPages(templates, shelf, roles).router())
    app.include_router(CostPages(config, templates, shelf, roles).router())
    app.include_router(ReportPages(shelf, roles).router())
    app.include_router(TablePages(config, templates, shelf, roles, others).router())
    app.include_router(BrowsePages(config, templates, shelf, roles).router())
    app.include_router(CorrectPages(templates, shelf, roles).router())
    watched = Watched(shelf)
    app.include_router(LivePages(config, templates, shelf, watched, roles).router())
    app.include_router(SteerPages(config, templates, watched, roles).router())
    app.include_router(StartPages(config, templates, shelf, roles, others).router())
    return app
