"""The command that shows a store in a browser."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from clew.cli.output import print_json
from clew.cli.parser import add_command, add_json, add_trust, whole_number
from clew.exceptions import ClewError

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the command of this file."""
    parser = add_command(
        commands,
        "explore",
        run,
        "show a store in a browser, also while queries write to it",
        "clew explore prov/",
    )
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port",
        metavar="PORT",
        type=whole_number,
        help="the port (default: 8127, or a free one if it is taken)",
    )
    parser.add_argument(
        "--token", metavar="TEXT", help="what a browser must know to be answered (default: made)"
    )
    parser.add_argument(
        "--no-token",
        action="store_true",
        help="answer every user of this machine; only on a loopback address",
    )
    add_trust(parser)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_json(parser)


def run(provenance: Provenance, options: argparse.Namespace) -> None:
    """Show a store in a browser."""
    try:
        from clew.explore.serve import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"fastapi", "starlette", "uvicorn"}:
            raise
        msg = (
            f"the explorer needs `{error.name}`, which is not installed.\n\n"
            "Install it with `pip install 'clew[explore]'`."
        )
        raise ClewError(msg) from error
    serve(
        provenance,
        host=options.host,
        port=options.port,
        token=options.token,
        locked=not options.no_token,
        browser=not options.no_browser,
        say=_say_json if options.json else _say,
    )


def _say(path: str, address: str) -> None:
    print(f"{path} is shown at {address} (Ctrl-C ends)", flush=True)


def _say_json(path: str, address: str) -> None:
    print_json({"path": path, "address": address})
    sys.stdout.flush()
