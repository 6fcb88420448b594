"""How commands print: aligned text in colours for people, JSON for programs, errors apart."""

from __future__ import annotations

import json
import re
import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from clew import show

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

SHOWN = 20
"""How many rows are shown unless another number is asked for."""
HINT = " (--limit 0 shows all)"
_COLOURS = re.compile("\x1b\\[[0-9;]*m")

_STYLES: dict[show.Part, str] = {
    "headline": "bold",
    "header": "bold cyan",
    "row": "",
    "note": "dim",
    "warning": "yellow",
}


class Answer(Protocol):
    """What shows itself to people and to programs."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data."""

    def lines(self) -> list[show.Line]:
        """Show the answer as text."""


class LongAnswer(Protocol):
    """What shows so many of its rows and says how many are left out."""

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Return the answer as plain data."""

    def lines(self, limit: int | None = ..., hint: str = ...) -> list[show.Line]:
        """Show the answer as text."""


def print_json(value: dict[str, Any], *, paged: bool = True) -> None:
    """Print plain data as JSON."""
    put(json.dumps(value, indent=2), paged=paged)


def print_answer(answer: Answer, options: argparse.Namespace) -> None:
    """Print an answer as the options say: for people, or as JSON."""
    if options.json:
        print_json(answer.to_dict())
    else:
        print_lines(answer.lines())


def print_limited(answer: LongAnswer, options: argparse.Namespace) -> None:
    """Print an answer as the options say, with as many rows as they say."""
    limit = limit_of(options)
    if options.json:
        print_json(answer.to_dict(limit))
    else:
        print_lines(answer.lines(limit, HINT))


def print_lines(lines: Sequence[show.Line], *, paged: bool = True) -> None:
    """Print an answer, in colours where standard output is a terminal."""
    if not sys.stdout.isatty():
        print(show.join(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    if console.color_system is None:
        put(show.join(lines), paged=paged)
        return
    with console.capture() as captured:
        for line in lines:
            console.print(Text(line.text, style=_STYLES[line.part]))
    put(captured.get().removesuffix("\n"), paged=paged)


def put(text: str, *, paged: bool) -> None:
    """Print text, through a pager if it is longer than the terminal it goes to."""
    if not (paged and sys.stdout.isatty() and is_long(text)):
        print(text)
        return
    from clew.cli.pager import page

    if not page(text + "\n"):
        print(text)


def is_long(text: str) -> bool:
    """Tell whether text has more lines than the terminal, those that wrap counted as many."""
    columns, rows = shutil.get_terminal_size()
    plain = _COLOURS.sub("", text)
    return sum(max(1, -(-len(each) // columns)) for each in plain.split("\n")) >= rows


def complain(message: str) -> None:
    """Print an error on standard error."""
    text = "\n".join(show.escape(line) for line in message.split("\n"))
    print(f"error: {text}", file=sys.stderr)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how far long work is, as a bar on standard error if that is a terminal.

    Args:
        what: The work, in a word or two.

    Yields:
        What is to be called with how much is done and how much there is; until then, that there is
        work is all that is shown.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def tell(what: str) -> None:
    """Say what is being done, where standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"{show.escape(what)} ...", file=sys.stderr, flush=True)


def limit_of(options: argparse.Namespace) -> int | None:
    """Return how many rows to show: all with `--limit 0`, and with `--json` unless limited."""
    if options.limit is None:
        return None if options.json else SHOWN
    return options.limit or None
