"""The application: the routes of the studio beside those of the review, behind the same access check."""

from __future__ import annotations

from fastapi import FastAPI

from store.review import Queue
from studio.browse import BrowsePages
from studio.config import StudioConfig
from studio.live import LivePages, LiveRuns, SteerPages
from studio.login_pages import LoginPages
from studio.review import SECRET, Authenticator, ReviewConfig, Signer, create_app
from studio.roles import Roles
from studio.runs import CorrectPages, CostPages, PairPages, ReportPages, RunCatalog, RunPages, TableCatalog
from studio.start_pages import StartPages
from studio.table_pages import TablePages
from studio.views import StudioTemplates


def create_studio(queue: Queue, review: ReviewConfig, config: StudioConfig) -> FastAPI:
    app = create_app(queue, review)
    signer, templates, run_catalog = Signer(queue.people.secret(SECRET)), StudioTemplates(), RunCatalog(config.roots)
    authenticator = Authenticator(queue, signer, review.cookie, secure=review.secure)
    roles, others = Roles(queue), TableCatalog(run_catalog)
    app.include_router(LoginPages(queue, config, templates, authenticator, roles).router())
    app.include_router(RunPages(config, templates, run_catalog, roles, others).router())
    app.include_router(PairPages(templates, run_catalog, roles).router())
    app.include_router(CostPages(config, templates, run_catalog, roles).router())
    app.include_router(ReportPages(run_catalog, roles).router())
    app.include_router(TablePages(config, templates, run_catalog, roles, others).router())
    app.include_router(BrowsePages(config, templates, run_catalog, roles).router())
    app.include_router(CorrectPages(templates, run_catalog, roles).router())
    watched = LiveRuns(run_catalog)
    app.include_router(LivePages(config, templates, run_catalog, watched, roles).router())
    app.include_router(SteerPages(config, templates, watched, roles).router())
    app.include_router(StartPages(config, templates, run_catalog, roles, others).router())
    return app
