"""Commands about recorded keys: what there is of them, what they will take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli.output import HINT, limit_of, print_json, print_lines
from clew.cli.parser import PIPELINE, add_command, add_json, add_limit, whole_number
from clew.exceptions import QueryError

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_assertions(commands)
    _add_estimate(commands)


def _assertions(provenance: Provenance, options: argparse.Namespace) -> None:
    from clew.ask.recordings import recording_lines

    if options.stream is None:
        found = provenance.recordings()
        if options.json:
            print_json({"recordings": [each.to_dict() for each in found]})
        else:
            print_lines(recording_lines(found))
        return
    answer = provenance.assertions(options.stream, limit_of(options))
    if options.json:
        print_json({**answer.to_dict(), "left_out": answer.total - len(answer)})
    else:
        print_lines(answer.lines(HINT))


def _estimate(options: argparse.Namespace) -> None:
    from clew.again.estimate import estimate
    from clew.ask.recordings import estimate_lines
    from clew.pipelines import load_pipeline
    from clew.plan.duration import micros

    frames = load_pipeline(options.pipeline, options.stream)
    frame = frames.get(options.stream) or next(iter(frames.values()))
    rows = options.rows
    if rows is None:
        if options.rate is None:
            msg = "say how many rows: `--rows N`, or `--rate ROWS_A_SECOND --for PERIOD`."
            raise QueryError(msg)
        rows = round(options.rate * micros(options.period) / 1e6)
    found = estimate(
        frame.node, rows, rate=options.rate, sample=options.sample, name=options.stream
    )
    if options.json:
        print_json(found.to_dict())
    else:
        print_lines(estimate_lines(found))


def _add_assertions(commands: Any) -> None:
    parser = add_command(
        commands,
        "assertions",
        _assertions,
        "show the keys of rows that were recorded of each stream",
        "clew assertions prov/ kept",
    )
    parser.add_argument(
        "stream",
        metavar="STREAM",
        nargs="?",
        help="a recorded stream; without it, all recorded streams are listed",
    )
    add_limit(parser)
    add_json(parser)


def _add_estimate(commands: Any) -> None:
    parser = add_command(
        commands,
        "estimate",
        _estimate,
        "predict what recording keys will take, from a sample of the source",
        "clew estimate --pipeline traffic:stopped --rate 5000 --for '1 day'",
        has_path=False,
    )
    parser.add_argument("--pipeline", metavar="MODULE:FUNCTION", required=True, help=PIPELINE)
    parser.add_argument(
        "--stream", metavar="STREAM", default="out", help="the results (default: out)"
    )
    parser.add_argument("--rows", metavar="N", type=whole_number, help="how many source rows")
    parser.add_argument("--rate", metavar="N", type=float, help="source rows a second")
    parser.add_argument(
        "--for",
        dest="period",
        metavar="PERIOD",
        default="1 day",
        help="for how long, with --rate (default: 1 day)",
    )
    parser.add_argument(
        "--sample",
        metavar="N",
        type=whole_number,
        default=20_000,
        help="how many rows of each source to look at (default: 20000)",
    )
    add_json(parser)
