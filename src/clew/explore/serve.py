"""Run the explorer: a socket, a token, a browser.

The address is printed once, with the token; requests are not logged, since they
name rows.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING

import uvicorn

from clew.exceptions import ClewError
from clew.explore.app import create_app
from clew.explore.guards import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.ask.provenance import Provenance

PORT = 8127
"""The port unless another is asked for; a free one if it is taken."""


class Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._ready()


def serve(
    provenance: Provenance,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    locked: bool = True,
    browser: bool = True,
    say: Callable[[str, str], None],
) -> None:
    """Show a store until interrupted.

    Args:
        provenance: The store.
        host: The address to listen on.
        port: The port; a free one with 0.
        token: What a browser must know; made if none is given.
        locked: Ask for the token. On loopback it may be left out, and then every user of this
            machine may ask.
        browser: Open the page in a browser.
        say: Called with the store's path and the address, once it answers.

    Raises:
        ClewError: The port is taken, or the host is not one of this machine.
    """
    is_local = host in LOOPBACK
    if not locked and not is_local:
        msg = (
            f"{host} can be reached from other machines, so a token is needed there.\n\n"
            "Leave out `--no-token`, or listen on `--host 127.0.0.1`."
        )
        raise ClewError(msg)
    token = (token or secrets.token_urlsafe(24)) if locked else None
    # A browser gets its address on its command line, which other users of the machine can see.
    ticket = secrets.token_urlsafe(24) if locked and browser and _has_screen() else None
    hosts = LOOPBACK if is_local else None
    app = create_app(provenance, token=token, hosts=hosts, ticket=ticket)
    with _listen(host, port) as bound:
        number = bound.getsockname()[1]

        def ready() -> None:
            say(provenance.path, _address(host, number, token))
            if browser and _has_screen():
                opened = (_address(host, number, ticket),)
                threading.Thread(target=webbrowser.open, args=opened, daemon=True).start()

        Server(config_of(app), ready).run(sockets=[bound])


def config_of(app: object) -> uvicorn.Config:
    """Return how an app is run: quietly, and without waiting for pages that follow the store."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def _listen(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = [port] if port is not None else [PORT, 0]
    for number in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, number))
        except OSError as error:
            bound.close()
            if number == ports[-1]:
                raise _cannot_listen(host, number, error) from error
        else:
            return bound
    raise AssertionError  # the last port either serves or raises


def _cannot_listen(host: str, port: int, error: OSError) -> ClewError:
    return ClewError(
        f"cannot listen on {host}, port {port}: {error.strerror or error}.\n\n"
        "Name another port, or let the system choose a free one: `--port 0`."
    )


def _address(host: str, port: int, token: str | None) -> str:
    name = f"[{host}]" if ":" in host else host
    if host in {"0.0.0.0", "::"}:  # noqa: S104 (said by the user)
        name = socket.gethostname()
    return f"http://{name}:{port}/" + ("" if token is None else f"?token={token}")


def _has_screen() -> bool:
    """Tell whether a browser would open a window, and not take the terminal over."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
