"""Serve stores to a browser, from threads of the test's own process."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from clew.ask.provenance import open_store
from clew.explore.app import create_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clew.ask.provenance import Provenance

    Show = Callable[[Path], "Served"]


@contextmanager
def serving() -> Iterator[Show]:
    """Give a function that serves a store, as long as the block lasts."""
    with ExitStack() as stack:

        def show(store: Path) -> Served:
            served = Served(stack.enter_context(open_store(store)))
            stack.callback(served.stop)
            return served

        yield show


class Served:
    """A store that is served on loopback, always on the same port."""

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        self._port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    def start(self) -> None:
        bound = socket.create_server(("127.0.0.1", self._port))
        self._port = bound.getsockname()[1]
        app = create_app(self._provenance)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        # The socket listens already, so whoever asks now is answered as soon as the server is up.
        run = {"target": self._server.run, "kwargs": {"sockets": [bound]}, "daemon": True}
        self._thread = threading.Thread(**run)  # type: ignore[arg-type]
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(30)
