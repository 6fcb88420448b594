"""Commands about what made a result what it is: compared, weighed, cut down to what is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli.output import HINT, limit_of, print_json, print_lines
from clew.cli.parser import ROW_HELP, add_command, add_json, add_limit, add_pipeline

if TYPE_CHECKING:
    import argparse

    from clew.query.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_compare(commands)


def _compare(provenance: Provenance, options: argparse.Namespace) -> None:
    found = provenance.compare(options.stream, options.row, options.other)
    if options.json:
        print_json(found.to_dict(limit_of(options)))
    else:
        print_lines(found.lines(limit_of(options), HINT))


def _add_compare(commands: Any) -> None:
    parser = add_command(
        commands,
        "compare",
        _compare,
        "find the source rows that two results share, and those that they do not",
        "clew compare prov/ stopped car=7 car=8",
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of both rows")
    parser.add_argument("row", metavar="ROW", help=ROW_HELP)
    parser.add_argument("other", metavar="OTHER", help="the row to compare it with, named likewise")
    add_pipeline(parser)
    add_limit(parser)
    add_json(parser)
