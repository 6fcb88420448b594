"""Commands that show an answer as a drawing in layers, or on a time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli.output import print_answer
from clew.cli.parser import add_command, add_json, add_pipeline, add_question, whole_number

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance
    from clew.ask.trace import Trace


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_draw(commands)
    _add_timeline(commands)


def _draw(provenance: Provenance, options: argparse.Namespace) -> None:
    found = _trace(provenance, options).drawing(options.limit, options.depth, options.expand)
    print_answer(found, options)


def _timeline(provenance: Provenance, options: argparse.Namespace) -> None:
    found = _trace(provenance, options).timeline(options.limit)
    print_answer(found, options)


def _trace(provenance: Provenance, options: argparse.Namespace) -> Trace:
    ask = provenance.forward if options.forward else provenance.backward
    return ask(options.stream, options.row, options.scope, intermediate=options.intermediate)


def _add_draw(commands: Any) -> None:
    parser = add_command(
        commands,
        "draw",
        _draw,
        "show where a row came from as layers: source rows, steps, results",
        "clew draw prov/ stopped car=7",
    )
    _add_options(parser, "draw")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number,
        default=200,
        help="show at most N rows, groups and steps (default: 200)",
    )
    parser.add_argument(
        "--depth", metavar="N", type=whole_number, help="show rows at most N edges away"
    )
    parser.add_argument(
        "--expand",
        metavar="KEY",
        action="append",
        default=[],
        help="show more of a group; its key is in the JSON",
    )


def _add_timeline(commands: Any) -> None:
    parser = add_command(
        commands,
        "timeline",
        _timeline,
        "show the rows behind a result on a time axis, with its windows",
        "clew timeline prov/ stopped car=7",
    )
    _add_options(parser, "show")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number,
        default=100,
        help="count the rows of a stream that has more than N (default: 100)",
    )


def _add_options(parser: Any, verb: str) -> None:
    add_question(parser)
    parser.add_argument(
        "--forward", action="store_true", help=f"{verb} what the row took part in instead"
    )
    add_pipeline(parser)
    add_json(parser)
