"""The web application: routes behind one access check, security headers on every response, a plain page for errors."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from review.access import SECRET, Gate, Refusal, Signer
from review.admin_pages import AdminPages
from review.answer_pages import AnswerPages
from review.config import ReviewConfig
from review.media import BrowserPictures
from review.mturk_pages import MturkPages
from review.security_headers import SecurityHeaders
from review.views import Templates
from store.review import Queue

TITLES = {403: "No access", 404: "Page not found", 405: "Not allowed", 413: "Too large"}
MESSAGES = {404: "There is no page at this address.", 405: "This address does not accept such a request."}

# Python runs one thread at a time: with more of them, requests wait longer for each other.
THREADS = min(3 * (os.cpu_count() or 1), 24)


@asynccontextmanager
async def few_threads(_app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def create_app(queue: Queue, config: ReviewConfig) -> FastAPI:
    signer, templates, pictures = Signer(queue.people.secret(SECRET)), Templates(), BrowserPictures()
    gate = Gate(queue, signer, config.cookie)
    app = FastAPI(
        title="twothirds review",
        openapi_url=None,  # the page is for people
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(gate)],
        redirect_slashes=False,
        lifespan=few_threads,
    )
    app.add_middleware(SecurityHeaders, submit_addresses=config.submit_addresses)
    app.include_router(AnswerPages(queue, config, templates, signer, gate, pictures).router())
    app.include_router(AdminPages(queue, config, templates).router())
    app.include_router(MturkPages(queue, config, templates, signer, pictures).router())

    def plain(status: int, message: str) -> Response:
        title = TITLES.get(status, "Something went wrong")
        return templates.page("message.html", status, title=title, message=message)

    @app.exception_handler(Refusal)
    def refused(_request: Request, refusal: Refusal) -> Response:
        return plain(refusal.status, refusal.message)

    @app.exception_handler(HTTPException)
    def stopped(_request: Request, error: HTTPException) -> Response:
        return plain(error.status_code, MESSAGES.get(error.status_code, str(error.detail)))

    @app.exception_handler(RequestValidationError)
    def unreadable(_request: Request, _error: RequestValidationError) -> Response:
        return plain(404, MESSAGES[404])

    return app
