"""The command line: parse, ask, print.

Every command is one call of `clew.query` and one way to show the answer. Answers go to standard
output, as text or with `--json` as JSON and nothing else; errors go to standard error, without a
traceback. Exit codes: 0 for an answer, 1 if the question cannot be answered, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.text import Text

from clew.exceptions import ClewError, QueryError
from clew.export import FORMS, chunks
from clew.query import live_status, show
from clew.query.assertions import recording_lines
from clew.query.provenance import open_store
from clew.query.stream import lines as stream_lines
from clew.query.trace import STATUS
from clew.reduce import command as reduce_command
from clew.store.layout import is_store
from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.frame.frame import TracedFrame
    from clew.live.verify import Report
    from clew.query.provenance import Provenance
    from clew.query.trace import Trace

_STYLES: dict[show.Part, str] = {
    "headline": "bold",
    "header": "bold cyan",
    "row": "",
    "note": "dim",
    "warning": "yellow",
}
_SHOWN = 20
_PIPELINE = "the pipeline, a function that takes a SparkSession and returns the traced frame"
_HINT = " (--limit 0 shows all)"
_ROW_HELP = (
    "the row: its id (32 hexadecimal digits, the value of clew_id), segment:position of a source "
    "row, column=value[,column=value] with enough columns to tell it apart, or the identifier of "
    "an entity that jobs published"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except ClewError as error:
        _complain(str(error))
        return 1
    except BrokenPipeError:
        # The reader of our output is gone, as in `clew rows ... | head`. What Python still has
        # in its buffer must go nowhere, or it complains at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    return code


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["demo"]:
        from clew.workloads.demo import main as demo

        return demo(arguments[1:])
    options = _parser().parse_args(arguments)
    if not options.has_path:
        return options.command(options) or 0
    if options.command is _verify_live and not is_store(options.path):
        return _verify_files(options)
    command: Callable[[Provenance, argparse.Namespace], int | None] = options.command
    with open_store(options.path, pipelines=_pipelines(options)) as provenance:
        return command(provenance, options) or 0


def _pipelines(options: argparse.Namespace) -> dict[str, TracedFrame]:
    named = getattr(options, "pipeline", None)
    if named is None:
        return {}
    from clew.pipelines import load_pipeline

    return load_pipeline(named, options.stream)


def _streams(provenance: Provenance, options: argparse.Namespace) -> None:
    streams = provenance.streams()
    if options.json:
        _print_json({"streams": [each.to_dict() for each in streams]})
    else:
        _print_lines(stream_lines(streams))


def _rows(provenance: Provenance, options: argparse.Namespace) -> None:
    limit = _limit(options)
    if options.alive or options.expired:
        ask = provenance.alive if options.alive else provenance.expired
        found = ask(options.stream, limit)
    else:
        found = provenance.rows(options.stream, options.where, limit, options.order_by)
    if options.json:
        left_out = found.total - len(found)
        _print_json({"rows": found.to_dicts(), "total": found.total, "left_out": left_out})
    else:
        _print_lines(found.lines(limit, _HINT))


def _trace(provenance: Provenance, options: argparse.Namespace) -> None:
    ask = provenance.backward if options.direction == "backward" else provenance.forward
    trace = ask(options.stream, options.row, options.scope, intermediate=options.intermediate)
    _print_trace(trace, options)


def _export(provenance: Provenance, options: argparse.Namespace) -> None:
    ask = provenance.forward if options.forward else provenance.backward
    trace = ask(options.stream, options.row, options.scope, intermediate=options.intermediate)
    if options.output is not None:
        trace.write(options.output, options.format)
        return
    for piece in chunks(trace, options.format or "prov-json"):
        sys.stdout.write(piece)


def _unfold(provenance: Provenance, options: argparse.Namespace) -> None:
    chosen = {"where": options.where, "first": options.first, "sample": options.sample}
    while True:
        done = provenance.unfold(options.stream, progress=_show_progress, **chosen)
        if options.json:
            _print_json({"stream": options.stream, "rows": done})
        elif done or not options.follow:
            print(f"{done} rows computed")
        if not options.follow:
            return
        sys.stdout.flush()
        time.sleep(options.every)


def _assertions(provenance: Provenance, options: argparse.Namespace) -> None:
    if options.stream is None:
        found = provenance.recordings()
        if options.json:
            _print_json({"recordings": [each.to_dict() for each in found]})
        else:
            _print_lines(recording_lines(found))
        return
    answer = provenance.assertions(options.stream, _limit(options))
    if options.json:
        _print_json({**answer.to_dict(), "left_out": answer.total - len(answer)})
    else:
        _print_lines(answer.lines(_HINT))


def _estimate(options: argparse.Namespace) -> None:
    from clew.assertions.estimate import estimate
    from clew.graph.duration import micros
    from clew.pipelines import load_pipeline
    from clew.query.assertions import estimate_lines

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
        _print_json(found.to_dict())
    else:
        _print_lines(estimate_lines(found))


def _replay(provenance: Provenance, options: argparse.Namespace) -> int:
    if options.row is not None:
        done = provenance.replay(provenance.backward(options.stream, options.row))
    else:
        done = provenance.replay(
            options.stream,
            period=tuple(options.period) if options.period else None,
            what_if=_what_if(options.what_if),
        )
    if options.json:
        _print_json(done.to_dict())
    else:
        print(done)
    return 0 if done.same or done.changed_input else 1


def _what_if(named: str | None) -> dict[str, Any] | None:
    if named is None:
        return None
    from clew.pipelines import load_changes

    return load_changes(named)


def _subscribe(options: argparse.Namespace) -> None:
    from clew.pipelines import load_pipeline
    from clew.subscriptions import Delivery, target_of

    target = target_of(options.to_table, options.to_kafka, options.topic)
    if options.pipeline is None:
        if options.stream is None:
            msg = "which stream of the store? Name it: `--stream NAME`."
            raise ClewError(msg)
        with open_store(options.store) as provenance:
            node = provenance.pipeline(options.stream)
    else:
        frames = load_pipeline(options.pipeline, options.stream or "results")
        node = _one_of(frames, options.stream).node
    Delivery(
        options.property, options.where, target, options.once, options.checkpoint, options.json
    ).run(node)


def _one_of(frames: dict[str, TracedFrame], stream: str | None) -> TracedFrame:
    if stream is None and len(frames) == 1:
        return next(iter(frames.values()))
    if stream not in frames:
        known = ", ".join(f"`{name}`" for name in frames)
        msg = f"the pipeline has {known}.\n\nName one of them: `--stream NAME`."
        raise ClewError(msg)
    return frames[stream]


def _status(provenance: Provenance, options: argparse.Namespace) -> None:
    status = provenance.status(options.stream, options.row)
    if options.json:
        _print_json({"stream": options.stream, "status": status})
    else:
        print(STATUS[status])


def _erase(provenance: Provenance, options: argparse.Namespace) -> None:
    erased = provenance.erase(
        options.stream, options.row, wait=options.wait, timeout=options.timeout
    )
    if options.json:
        _print_json(erased.to_dict())
        return
    print(f"{erased.copies} copies of the row's content erased")
    _print_lines(erased.results.lines(_limit(options), _HINT))


def _live(provenance: Provenance, options: argparse.Namespace) -> None:
    graph = provenance.graph(
        options.query,
        name=options.name,
        engine=options.engine,
        results=options.results,
        idle=options.idle,
    )
    if graph.engine == "native":
        from pyspark.sql import SparkSession

        SparkSession.builder.appName("clew live").getOrCreate()
    while True:
        done = graph.advance()
        if options.json:
            _print_json(live_status.to_dict(graph.status()))
        elif done.steps or not options.follow:
            _print_lines(live_status.lines(graph.status()))
        if not options.follow:
            return
        sys.stdout.flush()
        time.sleep(options.every)


def _verify_live(provenance: Provenance, options: argparse.Namespace) -> int:
    return _print_report(
        provenance.graph(name=options.name).verify(complete=options.complete), options
    )


def _verify_files(options: argparse.Namespace) -> int:
    """Check a graph that was written to files."""
    from clew.live.verify import verify

    files = sorted(Path(options.path).rglob("*.parquet"))
    if not files:
        msg = (
            f"`{options.path}` is neither a store nor a folder with the elements of a graph.\n\n"
            "Name the folder given to .provenance(), or the one that a live graph was written to."
        )
        raise ClewError(msg)
    return _print_report(verify(files, complete=options.complete), options)


def _print_report(report: Report, options: argparse.Namespace) -> int:
    if options.json:
        _print_json(report.to_dict())
    else:
        print(report)
    return 0 if report.ok else 1


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} rows", end=end, file=sys.stderr, flush=True)


def _print_trace(trace: Trace, options: argparse.Namespace) -> None:
    limit = _limit(options)
    if options.json:
        _print_json(trace.to_dict(limit))
    else:
        _print_lines(trace.lines(limit, _HINT))


def _limit(options: argparse.Namespace) -> int | None:
    """Return how many rows to show: all with `--limit 0`, and with `--json` unless limited."""
    if options.limit is None:
        return None if options.json else _SHOWN
    return options.limit or None


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2))


def _print_lines(lines: Sequence[show.Line]) -> None:
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


def _complain(message: str) -> None:
    text = "\n".join(show.escape(line) for line in message.split("\n"))
    print(f"error: {text}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others of the command."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        _complain(message)
        self.exit(2)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help of one width, wherever it is read."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=96)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="clew",
        description="Row-level provenance for Apache Spark: ask a store where rows came from.",
        epilog="example: clew backward prov/ stopped car=7",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"clew {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_streams(commands)
    _add_rows(commands)
    _add_trace(commands, "backward", "find the rows that a row was made from", "car=7")
    where = "part-0.parquet:17"
    _add_trace(commands, "forward", "find the results that a row took part in", where)
    _add_export(commands)
    _add_assertions(commands)
    _add_estimate(commands)
    _add_unfold(commands)
    _add_replay(commands)
    _add_subscribe(commands)
    _add_live(commands)
    _add_status(commands)
    _add_erase(commands)
    _add_reduce(commands)
    # `demo` is handed over before parsing, with all its own options; here it is only listed.
    commands.add_parser("demo", help="run an example pipeline and trace one of its results")
    return parser


def _add(
    commands: Any, name: str, run: Any, help_text: str, example: str, *, has_path: bool = True
) -> Any:
    parser = commands.add_parser(
        name,
        help=help_text,
        description=f"{help_text[0].upper()}{help_text[1:]}.",
        epilog=f"example: {example}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=run, has_path=has_path)
    if has_path:
        text = "the store: the folder given to .provenance()"
        parser.add_argument("path", metavar="PATH", help=text)
    return parser


def _add_streams(commands: Any) -> None:
    parser = _add(
        commands, "streams", _streams, "list the streams of a store", "clew streams prov/"
    )
    _add_json(parser)


def _add_rows(commands: Any) -> None:
    parser = _add(
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
    _add_limit(parser)
    _add_json(parser)


def _add_trace(commands: Any, name: str, help_text: str, row: str) -> None:
    stream = "stopped" if name == "backward" else "reports"
    parser = _add(commands, name, _trace, help_text, f"clew {name} prov/ {stream} {row}")
    parser.set_defaults(direction=name)
    _add_question(parser)
    if name == "backward":
        _add_pipeline(parser)
    _add_limit(parser)
    _add_json(parser)


def _add_question(parser: Any) -> None:
    parser.add_argument("stream", metavar="STREAM", help="the stream of the row")
    parser.add_argument("row", metavar="ROW", help=_ROW_HELP)
    parser.add_argument(
        "--scope",
        metavar="STREAM",
        nargs="+",
        action="extend",
        help="stop at these streams or named frames and show only their rows",
    )
    parser.add_argument(
        "--intermediate",
        action="store_true",
        help="show the rows of every stream and named frame on the way",
    )


def _add_export(commands: Any) -> None:
    parser = _add(
        commands,
        "export",
        _export,
        "write where a row came from for other tools",
        "clew export prov/ stopped car=7 --format prov-n -o why.provn",
    )
    _add_question(parser)
    parser.add_argument(
        "--forward", action="store_true", help="write what the row took part in instead"
    )
    parser.add_argument(
        "--format",
        choices=FORMS,
        help="the form (default: what the file's name ends with, else prov-json)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the file (default: print it)")
    _add_pipeline(parser)


def _add_assertions(commands: Any) -> None:
    parser = _add(
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
    _add_limit(parser)
    _add_json(parser)


def _add_estimate(commands: Any) -> None:
    parser = _add(
        commands,
        "estimate",
        _estimate,
        "predict what recording keys will take, from a sample of the source",
        "clew estimate --pipeline traffic:stopped --rate 5000 --for '1 day'",
        has_path=False,
    )
    parser.add_argument("--pipeline", metavar="MODULE:FUNCTION", required=True, help=_PIPELINE)
    parser.add_argument(
        "--stream", metavar="STREAM", default="out", help="the results (default: out)"
    )
    parser.add_argument("--rows", metavar="N", type=_whole_number, help="how many source rows")
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
        type=_whole_number,
        default=20_000,
        help="how many rows of each source to look at (default: 20000)",
    )
    _add_json(parser)


def _add_unfold(commands: Any) -> None:
    parser = _add(
        commands,
        "unfold",
        _unfold,
        "compute edges of rows that carry pointers or intervals",
        'clew unfold prov/ stopped --where "car = 7"',
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of the results")
    _add_pipeline(parser)
    parser.add_argument("--where", metavar="SQL", help="only rows that meet this, in Spark SQL")
    parser.add_argument("--first", metavar="N", type=_whole_number, help="only the first N rows")
    parser.add_argument(
        "--sample", metavar="SHARE", type=float, help="only a share of the rows, e.g. 0.01"
    )
    parser.add_argument(
        "--follow", action="store_true", help="go on with what the query commits; end with Ctrl-C"
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="how often to look for new batches (default: 10)",
    )
    _add_json(parser)


def _add_replay(commands: Any) -> None:
    parser = _add(
        commands,
        "replay",
        _replay,
        "run a query again and compare its results with those in the store",
        "clew replay prov/ stopped car=7",
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of the results")
    parser.add_argument("row", metavar="ROW", nargs="?", help="only this row, from its trace alone")
    _add_pipeline(parser)
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
    _add_json(parser)


def _add_subscribe(commands: Any) -> None:
    parser = _add(
        commands,
        "subscribe",
        _subscribe,
        "deliver results whose property meets a condition, as soon as they are there",
        'clew subscribe --pipeline rooms:averages --property trust --where "trust < 0.5"',
        has_path=False,
    )
    whence = parser.add_mutually_exclusive_group(required=True)
    whence.add_argument(
        "--pipeline",
        metavar="MODULE:FUNCTION",
        help=_PIPELINE,
    )
    whence.add_argument(
        "--store", metavar="PATH", help="rebuild the pipeline from a store that it fills"
    )
    parser.add_argument("--stream", help="which one, if the pipeline or the store has several")
    parser.add_argument("--property", required=True, help="the property, as declared in it")
    parser.add_argument(
        "--where", metavar="SQL", help="only results that meet this, in Spark SQL (default: all)"
    )
    where_to = parser.add_mutually_exclusive_group()
    where_to.add_argument(
        "--to-table", metavar="TABLE", help="append to a table (default: print JSON lines)"
    )
    where_to.add_argument("--to-kafka", metavar="SERVERS", help="send to a topic of Kafka")
    parser.add_argument("--topic", help="the topic, with --to-kafka")
    parser.add_argument(
        "--once", action="store_true", help="end when all that is there now is delivered"
    )
    parser.add_argument(
        "--checkpoint", metavar="FOLDER", help="where Spark keeps how far the delivery is"
    )
    parser.add_argument(
        "--json", action="store_true", help="report progress, on standard error, as JSON"
    )


def _add_live(commands: Any) -> None:
    parser = _add(
        commands,
        "live",
        _live,
        "build the live graph of what rows did and may still do",
        "clew live prov/ --follow",
    )
    parser.add_argument(
        "--query", metavar="QUERY", nargs="+", action="extend", help="the queries (default: all)"
    )
    parser.add_argument("--name", default="live", help="the graph (default: live)")
    parser.add_argument("--engine", choices=("operator", "native"), help="what builds it")
    parser.add_argument(
        "--results", choices=("unique", "merged"), help="one vertex for equal results, or not"
    )
    parser.add_argument(
        "--idle", metavar="SECONDS", type=float, help="give a query up after so long without news"
    )
    parser.add_argument(
        "--follow", action="store_true", help="go on with what queries commit; end with Ctrl-C"
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=float,
        default=1.0,
        help="how often to look for new batches (default: 1)",
    )
    _add_json(parser)
    parser = _add(
        commands,
        "verify-live",
        _verify_live,
        "check that a live graph keeps its promises",
        "clew verify-live prov/",
    )
    parser.add_argument("--name", default="live", help="the graph (default: live)")
    parser.add_argument(
        "--complete", action="store_true", help="all queries have ended, so all must be labelled"
    )
    _add_json(parser)


def _add_status(commands: Any) -> None:
    parser = _add(
        commands,
        "status",
        _status,
        "say whether a row may still take part in results",
        "clew status prov/ reports part-0.parquet:17",
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of the row")
    parser.add_argument("row", metavar="ROW", help=_ROW_HELP)
    _add_json(parser)


def _add_erase(commands: Any) -> None:
    parser = _add(
        commands,
        "erase",
        _erase,
        "take the content of a row out of the store and list its results",
        "clew erase prov/ reports part-0.parquet:17 --wait",
    )
    parser.add_argument("stream", metavar="STREAM", help="the stream of the row")
    parser.add_argument("row", metavar="ROW", help=_ROW_HELP)
    parser.add_argument("--wait", action="store_true", help="wait until the row is expired")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=float, help="wait so many seconds at most"
    )
    _add_limit(parser)
    _add_json(parser)


def _add_reduce(commands: Any) -> None:
    parser = _add(
        commands,
        "reduce",
        reduce_command.run,
        "reduce the provenance of another system to what connects inputs with outputs",
        "clew reduce events/ --store prov/ --job hashtags",
        has_path=False,
    )
    reduce_command.add_options(parser)


def _add_pipeline(parser: Any) -> None:
    text = f"{_PIPELINE}; by default it is rebuilt from the store"
    parser.add_argument("--pipeline", metavar="MODULE:FUNCTION", help=text)


def _add_limit(parser: Any) -> None:
    text = f"show at most N rows, all with 0 (default: {_SHOWN}, with --json all)"
    parser.add_argument("--limit", metavar="N", type=_whole_number, help=text)


def _add_json(parser: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        msg = f"a whole number, 0 or more, is needed; got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)
