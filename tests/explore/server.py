"""A real server in a thread, for as long as a test needs it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from clew.explore.app import create_app
from clew.explore.serve import Server, config_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.ask.provenance import Provenance


@contextmanager
def serving(provenance: Provenance, **settings: Any) -> Iterator[httpx.Client]:
    """Serve a store; what is yielded asks it."""
    app = create_app(provenance, **settings)
    app.state.watcher._every = 0.02
    ready = threading.Event()
    server = Server(config_of(app), ready.set)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            assert ready.wait(30)
            address = f"http://127.0.0.1:{bound.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()
