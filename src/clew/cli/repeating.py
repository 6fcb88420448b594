"""Commands that run a query again: to compute edges, to compare results, to change the input."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from clew.cli.output import print_json, progress
from clew.cli.parser import (
    Conditions,
    add_command,
    add_follow,
    add_json,
    add_pipeline,
    whole_number,
)

if TYPE_CHECKING:
    import argparse

    from clew.ask.outcome import Replay
    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_unfold(commands)
    _add_replay(commands)


def _unfold(provenance: Provenance, options: argparse.Namespace) -> None:
    chosen = {"where": options.where, "first": options.first, "sample": options.sample}
    while True:
        with progress("unfolding rows") as advance:
            done = provenance.unfold(options.stream, progress=advance, **chosen)
        if options.json:
            print_json({"stream": options.stream, "rows": done}, paged=not options.follow)
        elif done or not options.follow:
            print(f"{done} rows computed")
        if not options.follow:
            return
        sys.stdout.flush()
        time.sleep(options.every)


def _replay(provenance: Provenance, options: argparse.Namespace) -> int:
    with progress("replaying"):
        done = _replayed(provenance, options)
    if options.json:
        print_json(done.to_dict())
    else:
        print(done)
    return 0 if done.same or done.changed_input else 1


def _replayed(provenance: Provenance, options: argparse.Namespace) -> Replay:
    if options.row is not None:
        return provenance.replay(provenance.backward(options.stream, options.row))
    return provenance.replay(
        options.stream,
        period=tuple(options.period) if options.period else None,
        what_if=_what_if(options.what_if),
    )


def _what_if(named: str | None) -> dict[str, Any] | None:
    if named is None:
        return None
    from clew.pipelines import load_changes

    return load_changes(named)


def _add_unfold(commands: Any) -> None:
    parser = add_command(
        commands,
        "unfold",
        _unfold,
        "compute edges of rows that carry pointers or intervals",
        'clew unfold prov/ stopped --where "car = 7"',
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of the results")
    add_pipeline(parser)
    parser.add_argument("--where", metavar="SQL", help="only rows that meet this, in Spark SQL")
    parser.add_argument("--first", metavar="N", type=whole_number, help="only the first N rows")
    parser.add_argument(
        "--sample", metavar="SHARE", type=float, help="only a share of the rows, e.g. 0.01"
    )
    add_follow(parser, every=10.0)
    add_json(parser)


def _add_replay(commands: Any) -> None:
    parser = add_command(
        commands,
        "replay",
        _replay,
        "run a query again and compare its results with those in the store",
        "clew replay prov/ stopped car=7",
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of the results")
    help_text = "only this row, from its trace alone"
    parser.add_argument("row", metavar="ROW", nargs="*", action=Conditions, help=help_text)
    add_pipeline(parser)
    parser.add_argument(
        "--period",
        metavar=("FROM", "TO"),
        nargs=2,
        help='only results between two moments in UTC, e.g. "2026-01-01 12:00:00"',
    )
    parser.add_argument(
        "--what-if",
        metavar="MODULE:NAME",
        help="change source rows before: a dict of functions of a DataFrame, by source",
    )
    add_json(parser)
