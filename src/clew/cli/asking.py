"""Commands that ask a store: its streams, their rows, where they came from and went to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.cli.output import HINT, limit_of, print_answer, print_json, print_limited, print_lines
from clew.cli.parser import (
    add_command,
    add_json,
    add_limit,
    add_pipeline,
    add_question,
    whole_number,
)
from clew.exceptions import QueryError
from clew.show.export import FORMS

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance
    from clew.ask.row import Rows
    from clew.ask.trace import Trace


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_streams(commands)
    _add_rows(commands)
    _add_trace(commands, "backward", "find the rows that a row was made from", "car=7")
    where = "part-0.parquet:17"
    _add_trace(commands, "forward", "find the results that a row took part in", where)
    _add_export(commands)


def _streams(provenance: Provenance, options: argparse.Namespace) -> None:
    from clew.show.stream_table import lines as stream_lines

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
        found = _chosen(provenance, options, limit)
    if options.json:
        print_json(found.to_dict())
    else:
        print_lines(found.lines(limit, HINT))


def _chosen(provenance: Provenance, options: argparse.Namespace, limit: int | None) -> Rows:
    from clew.ask.where import parse_filter

    wanted = [parse_filter(each) for each in options.filter]
    return provenance.rows(
        options.stream,
        options.where,
        limit,
        options.order_by,
        filters=[(each.column, each.op, each.value) for each in wanted],
        since=options.since,
        until=options.until,
        id=options.id,
        text=options.text,
        sort=options.sort,
        descending=options.descending,
        offset=options.offset,
    )


def _about(provenance: Provenance, options: argparse.Namespace) -> None:
    about = provenance.about()
    print_answer(about, options)


def _flow(provenance: Provenance, options: argparse.Namespace) -> None:
    flow = provenance.flow()
    print_answer(flow, options)


def _trace(provenance: Provenance, options: argparse.Namespace) -> None:
    ask = provenance.backward if options.direction == "backward" else provenance.forward
    trace = ask(options.stream, options.row, options.scope, intermediate=options.intermediate)
    print_limited(trace, options)


def _export(provenance: Provenance, options: argparse.Namespace) -> None:
    from clew.show.export import BINARY, chunks, encode

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
    form = options.format or "prov-json"
    if form not in BINARY:
        for text in chunks(trace, form):
            sys.stdout.write(text)
        return
    if sys.stdout.isatty():
        msg = f"`{form}` is not text, and would not read well here.\n\nName a file: `-o FILE`."
        raise QueryError(msg)
    for piece in encode(trace, form):
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _written(trace: Trace, options: argparse.Namespace) -> dict[str, Any]:
    """Say what was written, and where to."""
    from clew.show.export import ENDINGS

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


def _add_streams(commands: Any) -> None:
    parser = add_command(
        commands, "streams", _streams, "list the streams of a store", "clew streams prov/"
    )
    add_json(parser)
    parser = add_command(
        commands, "about", _about, "say what a store is and how much it holds", "clew about prov/"
    )
    add_json(parser)
    parser = add_command(
        commands, "flow", _flow, "show the queries of a store, step by step", "clew flow prov/"
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
    _add_choice(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--alive", action="store_true", help="only rows that may still take part in results"
    )
    which.add_argument(
        "--expired", action="store_true", help="only rows that can take part in nothing more"
    )
    add_limit(parser)
    add_json(parser)


def _add_choice(parser: Any) -> None:
    """Add what can be said of rows without SQL."""
    parser.add_argument(
        "--filter",
        metavar="CONDITION",
        action="append",
        default=[],
        help='a column, a comparison and a value, e.g. "n >= 4" or "place contains north"',
    )
    for name, text in {
        "--since": "only rows with this event time or a later one",
        "--until": "only rows with this event time or an earlier one",
        "--id": "only rows whose id begins so, or at segment:position",
        "--text": "only rows with this text in some column",
        "--sort": "order by this column",
    }.items():
        metavar = {"--since": "TIME", "--until": "TIME", "--sort": "COLUMN"}.get(name, "TEXT")
        parser.add_argument(name, metavar=metavar, help=text)
    parser.add_argument("--descending", action="store_true", help="order the other way round")
    parser.add_argument(
        "--offset", metavar="N", type=whole_number, default=0, help="leave out the first N rows"
    )


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
