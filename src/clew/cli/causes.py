"""Commands about what made a result what it is: compared, weighed, cut down to what is needed."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.cli.output import print_limited
from clew.cli.parser import add_command, add_json, add_limit, add_pipeline, add_row

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_compare(commands)
    _add_influence(commands)
    _add_minimize(commands)


def _compare(provenance: Provenance, options: argparse.Namespace) -> None:
    found = provenance.compare(options.stream, options.row, options.other)
    print_limited(found, options)


def _influence(provenance: Provenance, options: argparse.Namespace) -> int:
    found = provenance.influence(options.stream, options.row, options.column, options.value)
    print_limited(found, options)
    return 0 if found.why is None else 1


def _minimize(provenance: Provenance, options: argparse.Namespace) -> None:
    with _interrupted() as stop:
        found = provenance.minimize(
            options.stream, options.row, options.condition, progress=_show_search, stop=stop
        )
    print_limited(found, options)


def _show_search(done: int, tests: int, size: int) -> None:
    """Show how far the search is, where standard error is a terminal."""
    if sys.stderr.isatty():
        text = f"\r{size:,} rows left, {done:,} of {tests:,} tests"
        print(f"{text:<60}", end="", file=sys.stderr, flush=True)


@contextmanager
def _interrupted() -> Iterator[Callable[[], bool]]:
    """Take Ctrl-C as the wish to have what was found so far; a second one ends it all."""
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _add_compare(commands: Any) -> None:
    parser = add_command(
        commands,
        "compare",
        _compare,
        "find the source rows that two results share, and those that they do not",
        "clew compare prov/ stopped car=7 car=8",
    )
    add_row(parser, "both rows", is_last=False)
    parser.add_argument("other", metavar="OTHER", help="the row to compare it with, named likewise")
    add_pipeline(parser)
    add_limit(parser)
    add_json(parser)


def _add_influence(commands: Any) -> None:
    parser = add_command(
        commands,
        "influence",
        _influence,
        "rank the source rows of a result by how much of its value they carry",
        "clew influence prov/ hourly meter=south --column kwh",
    )
    add_row(parser, "the result")
    parser.add_argument(
        "--column", metavar="NAME", help="the column of the result (default: an aggregate)"
    )
    parser.add_argument(
        "--value",
        metavar="NAME",
        help="the column of the source rows that it aggregates (default: the pipeline says)",
    )
    add_pipeline(parser)
    add_limit(parser)
    add_json(parser)


def _add_minimize(commands: Any) -> None:
    parser = add_command(
        commands,
        "minimize",
        _minimize,
        "find the fewest source rows of a result that still produce it",
        'clew minimize prov/ hourly meter=south --condition "kwh > 100"',
    )
    add_row(parser, "the result")
    parser.add_argument(
        "--condition",
        metavar="SQL",
        help="what the result has to meet, in Spark SQL over its columns (default: to be there)",
    )
    add_pipeline(parser)
    add_limit(parser)
    add_json(parser)
