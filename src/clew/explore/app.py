"""The app: addresses, errors, guards and the page's files, put together.

Questions are answered in threads, each with a cursor of its own; news go out from the event loop.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Header, Query, Request
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from clew.explore import overview, questions, smallest_cause
from clew.explore.failures import FAILURES, RefusedError, add_handlers
from clew.explore.guards import LOOPBACK, Guard
from clew.explore.searches import Jobs
from clew.explore.watch import Watcher
from clew.version import __version__

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Scope

    from clew.ask.provenance import Provenance

PAGE = Path(__file__).parent / "page"
"""The files of the page."""

_ABOUT = (
    "Ask a store of row-level provenance where rows came from and what they led to. Nothing here "
    "changes the store's content. Answers are as `--json` has them on the command line."
)


def create_app(
    provenance: Provenance,
    *,
    token: str | None = None,
    hosts: frozenset[str] | None = LOOPBACK,
    ticket: str | None = None,
) -> FastAPI:
    """Make the explorer of a store.

    Args:
        provenance: The store.
        token: What a request must know; None if anyone on this machine may ask.
        hosts: The names in the `Host` header that are taken; None for any, with a token.
        ticket: What opens the page like the token, once.
    """
    app = FastAPI(
        title="clew explorer",
        version=__version__,
        description=_ABOUT,
        docs_url=None,  # its page loads scripts from another host
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.provenance = provenance
    app.state.watcher = Watcher(provenance)
    app.state.jobs = Jobs()
    add_handlers(app)
    for part in (overview, questions, smallest_cause):
        app.include_router(part.router)
    _add_events(app)
    _add_page(app)
    app.add_middleware(Guard, token=token, hosts=hosts, ticket=ticket)
    return app


def _add_events(app: FastAPI) -> None:
    news: dict[int | str, dict[str, Any]] = {
        200: {"description": "news, for ever", "content": {"text/event-stream": {}}}
    }

    @app.get(
        "/api/events",
        tags=["store"],
        response_class=StreamingResponse,
        responses={**FAILURES, **news},
    )
    async def events(
        request: Request,
        state: Annotated[
            str | None, Query(description="the state that is known; news begin with the next")
        ] = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> StreamingResponse:
        """Follow the store: an event `commit` whenever a batch, erasure or pruning lands."""
        watcher: Watcher = request.app.state.watcher
        told = watcher.events(last_event_id or state)
        return StreamingResponse(told, media_type="text/event-stream")


class _Files(StaticFiles):
    """The page's files, which a browser may keep for a minute: they change with a release."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "private, max-age=60"
        return response


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        page = PAGE / "index.html"
        if not page.is_file():
            text = "this installation has no page.\n\nThe HTTP interface is at /api/openapi.json."
            raise RefusedError(404, "no_page", text)
        return FileResponse(page, headers={"Cache-Control": "no-cache"})

    app.mount("/static", _Files(directory=PAGE, check_dir=False), name="static")
