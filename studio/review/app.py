"""The web application: routes behind one access check, security headers on every response, a plain page for errors."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from twothirds.store.review import Queue
from twothirds.studio.review.access import SECRET, Authenticator, Refusal, Signer
from twothirds.studio.review.admin_pages import AdminPages
from twothirds.studio.review.answer_pages import AnswerPages
from twothirds.studio.review.config import ReviewConfig
from twothirds.studio.review.mturk_pages import MturkPages
from twothirds.studio.review.security_headers import SecurityHeaders
from twothirds.studio.review.views import Review
from twothirds.studio.views import html_response
from twothirds.studio.web import language_of

TITLED = (403, 404, 405, 413)
STUDIO = ("/runs", "/tables", "/comparisons", "/costs", "/start", "/side-by-side", "/people", "/admin", "/look")
MESSAGES = {404: "refused.page", 405: "refused.method"}

# Python runs one thread at a time: with more of them, requests wait longer for each other.
THREADS = min(3 * (os.cpu_count() or 1), 24)


@asynccontextmanager
async def few_threads(_app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def create_app(queue: Queue, config: ReviewConfig) -> FastAPI:
    review = Review(queue, config, Signer(queue.people.secret(SECRET)))
    authenticator = Authenticator(queue, review.signer, config.cookie, secure=config.secure)
    app = FastAPI(
        title="twothirds review",
        openapi_url=None,  # the page is for people
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(authenticator)],
        redirect_slashes=False,
        lifespan=few_threads,
    )
    app.add_middleware(SecurityHeaders, submit_addresses=config.submit_addresses)
    for pages in (AnswerPages(review, authenticator), AdminPages(review), MturkPages(review)):
        app.include_router(pages.router())

    def plain(request: Request, status: int, key: str, text: str = "", **values: Any) -> Response:
        title = f"title.{status if status in TITLED else 'error'}"
        language = language_of(request.headers.get("accept-language", ""))
        home = "/runs" if request.url.path.startswith(STUDIO) else "/"
        context = {"title": title, "message": key, "text": text, "values": values, "home": home}
        return html_response("review/message.html", status, language=language, **context)

    @app.exception_handler(Refusal)
    def refused(request: Request, refusal: Refusal) -> Response:
        return plain(request, refusal.status, refusal.key, **refusal.values)

    @app.exception_handler(HTTPException)
    def stopped(request: Request, error: HTTPException) -> Response:
        """With the words that it was raised with, if they are not those that belong to its status anyway."""
        detail = str(error.detail) if error.detail != HTTPStatus(error.status_code).phrase else ""
        return plain(request, error.status_code, MESSAGES.get(error.status_code, "refused.form"), detail)

    @app.exception_handler(RequestValidationError)
    def unreadable(request: Request, _error: RequestValidationError) -> Response:
        return plain(request, 404, MESSAGES[404])

    return app
