"""Our server with a page in place of Prefect, which takes seconds to start; started as server_program.py is."""

from __future__ import annotations

from twothirds.flows.prefect_api import server_program
from twothirds.flows.prefect_api.server_program import Activity, App, Message, Receive, Send, noting


async def _page(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        for stage in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{stage}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"true"})


def _create_app(activity: Activity) -> App:
    return noting(_page, activity)


if __name__ == "__main__":
    server_program.create_app = _create_app
    server_program.main()
