"""Commands about what becomes of a row: whether it still matters, and taking it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli.output import HINT, limit_of, print_answer, print_json, print_lines
from clew.cli.parser import add_command, add_json, add_limit, add_row

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_status(commands)
    _add_erase(commands)


def _status(provenance: Provenance, options: argparse.Namespace) -> None:
    found = provenance.expiry(options.stream, options.row)
    print_answer(found, options)


def _erase(provenance: Provenance, options: argparse.Namespace) -> None:
    erased = provenance.erase(
        options.stream, options.row, wait=options.wait, timeout=options.timeout
    )
    if options.json:
        print_json(erased.to_dict())
        return
    print(f"{erased.copies} copies of the row's content erased")
    print_lines(erased.results.lines(limit_of(options), HINT))


def _add_status(commands: Any) -> None:
    parser = add_command(
        commands,
        "status",
        _status,
        "say whether a row may still take part in results, and until when",
        "clew status prov/ reports part-0.parquet:17",
    )
    add_row(parser)
    add_json(parser)


def _add_erase(commands: Any) -> None:
    parser = add_command(
        commands,
        "erase",
        _erase,
        "take the content of a row out of the store and list its results",
        "clew erase prov/ reports part-0.parquet:17 --wait",
    )
    add_row(parser)
    parser.add_argument("--wait", action="store_true", help="wait until the row is expired")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, help="wait so many seconds at most"
    )
    add_limit(parser)
    add_json(parser)
