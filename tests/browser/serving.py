"""Serve stores to a browser, from threads of the test's own process."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from clew.explore.app import create_app
from clew.query.provenance import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Show = Callable[[Path], str]


@contextmanager
def serving() -> Iterator[Show]:
    """Give a function that serves a store and returns its address, as long as the block lasts."""
    with ExitStack() as stack:
        yield lambda store: stack.enter_context(_server(store))


@contextmanager
def _server(store: Path) -> Iterator[str]:
    with open_store(store) as provenance:
        app = create_app(provenance)
        config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1)
        server = _Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        server.ready.wait(30)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
        server.should_exit = True
        thread.join(30)


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        self.ready.set()
