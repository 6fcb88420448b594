"""Commands that ask a store: its streams, their rows, where they came from and went to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.cli.output import HINT, limit_of, print_json, print_lines
from clew.cli.parser import add_command, add_json, add_limit, add_pipeline, add_question
from clew.exceptions import QueryError
from clew.export import FORMS

if TYPE_CHECKING:
    import argparse

    from clew.query.provenance import Provenance
    from clew.query.trace import Trace


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_streams(commands)
    _add_rows(commands)
    _add_trace(commands, "backward", "find the rows that a row was made from", "car=7")
    where = "part-0.parquet:17"
    _add_trace(commands, "forward", "find the results that a row took part in", where)
    _add_export(commands)


def _streams(provenance: Provenance, options: argparse.Namespace) -> None:
    from clew.query.stream import lines as stream_lines

    streams = provenance.streams()
    if options.json:
        print_json({"streams": [each.to_dict() for each in streams]})
    else:
        print_lines(stream_lines(streams))


def _rows(provenance: Provenance, options: argparse.Namespace) -> None:
    limit = limit_of(options)
    if options.alive or options.expired:
        ask = provenance.alive if options.alive else provenance.expired
        found = ask(options.stream, limit)
    else:
        found = provenance.rows(options.stream, options.where, limit, options.order_by)
    if options.json:
        left_out = found.total - len(found)
        print_json({"rows": found.to_dicts(), "total": found.total, "left_out": left_out})
    else:
        print_lines(found.lines(limit, HINT))


def _trace(provenance: Provenance, options: argparse.Namespace) -> None:
    ask = provenance.backward if options.direction == "backward" else provenance.forward
    trace = ask(options.stream, options.row, options.scope, intermediate=options.intermediate)
    _print_trace(trace, options)


def _export(provenance: Provenance, options: argparse.Namespace) -> None:
    from clew.export import chunks

    ask = provenance.forward if options.forward else provenance.backward
    trace = ask(options.stream, options.row, options.scope, intermediate=options.intermediate)
    if options.output is not None:
        trace.write(options.output, options.format)
        if options.json:
            print_json(_written(trace, options))
        return
    if options.json:
        msg = "`--json` tells of the file that was written.\n\nName the file: `-o FILE --json`."
        raise QueryError(msg)
    for piece in chunks(trace, options.format or "prov-json"):
        sys.stdout.write(piece)


def _written(trace: Trace, options: argparse.Namespace) -> dict[str, Any]:
    """Say what was written, and where to."""
    from clew.export import ENDINGS

    file = Path(options.output)
    return {
        "file": str(file),
        "format": options.format or ENDINGS[file.suffix],
        "bytes": file.stat().st_size,
        "direction": trace.direction,
        "stream": trace.stream,
        "rows": len(trace.rows),
        "edges": len(trace.edges),
        "exactness": trace.exactness,
        "complete": trace.complete,
    }


def _print_trace(trace: Trace, options: argparse.Namespace) -> None:
    limit = limit_of(options)
    if options.json:
        print_json(trace.to_dict(limit))
    else:
        print_lines(trace.lines(limit, HINT))


def _add_streams(commands: Any) -> None:
    parser = add_command(
        commands, "streams", _streams, "list the streams of a store", "clew streams prov/"
    )
    add_json(parser)


def _add_rows(commands: Any) -> None:
    parser = add_command(
        commands,
        "rows",
        _rows,
        "show rows of a stream",
        'clew rows prov/ stopped --where "car = 7" --order-by "n DESC"',
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream")
    parser.add_argument(
        "--where", metavar="SQL", help="a condition over the columns, in DuckDB SQL"
    )
    parser.add_argument("--order-by", metavar="SQL", help="what to order by instead of the time")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--alive", action="store_true", help="only rows that may still take part in results"
    )
    which.add_argument(
        "--expired", action="store_true", help="only rows that can take part in nothing more"
    )
    add_limit(parser)
    add_json(parser)


def _add_trace(commands: Any, name: str, help_text: str, row: str) -> None:
    stream = "stopped" if name == "backward" else "reports"
    parser = add_command(commands, name, _trace, help_text, f"clew {name} prov/ {stream} {row}")
    parser.set_defaults(direction=name)
    add_question(parser)
    if name == "backward":
        add_pipeline(parser)
    add_limit(parser)
    add_json(parser)


def _add_export(commands: Any) -> None:
    parser = add_command(
        commands,
        "export",
        _export,
        "write where a row came from for other tools",
        "clew export prov/ stopped car=7 --format prov-n -o why.provn",
    )
    add_question(parser)
    parser.add_argument(
        "--forward", action="store_true", help="write what the row took part in instead"
    )
    parser.add_argument(
        "--format",
        choices=FORMS,
        help="the form (default: what the file's name ends with, else prov-json)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the file (default: print it)")
    add_pipeline(parser)
    parser.add_argument("--json", action="store_true", help="tell of the written file, as JSON")
