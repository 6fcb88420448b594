"""How commands print: aligned text in colours for people, JSON for programs, errors apart."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from clew.query import show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SHOWN = 20
"""How many rows are shown unless another number is asked for."""
HINT = " (--limit 0 shows all)"

_STYLES: dict[show.Part, str] = {
    "headline": "bold",
    "header": "bold cyan",
    "row": "",
    "note": "dim",
    "warning": "yellow",
}


def print_json(value: dict[str, Any]) -> None:
    """Print plain data as JSON."""
    print(json.dumps(value, indent=2))


def print_lines(lines: Sequence[show.Line]) -> None:
    """Print an answer, in colours where standard output is a terminal."""
    console = _Console(highlight=False, soft_wrap=True)
    if console.color_system is None:
        print(show.join(lines))
        return
    for line in lines:
        console.print(Text(line.text, style=_STYLES[line.part]))


class _Console(Console):
    """A console that leaves a broken pipe to `main`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def complain(message: str) -> None:
    """Print an error on standard error."""
    text = "\n".join(show.escape(line) for line in message.split("\n"))
    print(f"error: {text}", file=sys.stderr)


def show_progress(done: int, total: int) -> None:
    """Show how far long work is, where standard error is a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} rows", end=end, file=sys.stderr, flush=True)


def tell(what: str) -> None:
    """Say what is being done, where standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"{show.escape(what)} ...", file=sys.stderr, flush=True)


def limit_of(options: argparse.Namespace) -> int | None:
    """Return how many rows to show: all with `--limit 0`, and with `--json` unless limited."""
    if options.limit is None:
        return None if options.json else SHOWN
    return options.limit or None
