"""Our guarded server with a page in place of Prefect, which takes seconds to start; started as guarded_server.py is."""

from __future__ import annotations

import os

from flows.prefect_api import guarded_server
from flows.prefect_api.guarded_server import Activity, App, Message, OwnOriginsOnly, Receive, Send


async def _page(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        for stage in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{stage}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"true"})


def _create_app(activity: Activity) -> App:
    return OwnOriginsOnly(_page, os.environ["PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS"].split(","), activity)


if __name__ == "__main__":
    guarded_server.create_app = _create_app
    guarded_server.main()
