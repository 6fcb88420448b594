"""Commands that go along with running queries: deliveries, and the live graph."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.cli.output import print_json, print_lines, progress
from clew.cli.parser import PIPELINE, STORE, add_command, add_follow, add_json
from clew.exceptions import ClewError

if TYPE_CHECKING:
    import argparse

    from clew.ask.provenance import Provenance
    from clew.frame.frame import TracedFrame
    from clew.live.verify import Report


def add(commands: Any) -> None:
    """Add the commands of this file."""
    _add_subscribe(commands)
    _add_live(commands)
    _add_verify_live(commands)


def _subscribe(options: argparse.Namespace) -> None:
    from clew.ask.provenance import open_store
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


def _live(provenance: Provenance, options: argparse.Namespace) -> None:
    from clew.ask import live_status

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
        with progress("taking in what queries have finished"):
            done = graph.advance()
        paged = not options.follow
        if options.json:
            print_json(live_status.to_dict(graph.status()), paged=paged)
        elif done.steps or not options.follow:
            print_lines(live_status.lines(graph.status()), paged=paged)
        if not options.follow:
            return
        sys.stdout.flush()
        time.sleep(options.every)


def _verify_live(options: argparse.Namespace) -> int:
    from clew.ask.provenance import open_store
    from clew.store.layout import is_store

    if not is_store(options.path):
        return _verify_files(options)
    with open_store(options.path) as provenance:
        graph = provenance.graph(name=options.name)
        return _print_report(graph.verify(complete=options.complete), options)


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
        print_json(report.to_dict())
    else:
        print(report)
    return 0 if report.ok else 1


def _add_subscribe(commands: Any) -> None:
    parser = add_command(
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
        help=PIPELINE,
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
    parser = add_command(
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
    add_follow(parser, every=1.0)
    add_json(parser)


def _add_verify_live(commands: Any) -> None:
    parser = add_command(
        commands,
        "verify-live",
        _verify_live,
        "check that a live graph keeps its promises",
        "clew verify-live prov/",
        has_path=False,
    )
    parser.add_argument("path", metavar="PATH", help=STORE)
    parser.add_argument("--name", default="live", help="the graph (default: live)")
    parser.add_argument(
        "--complete", action="store_true", help="all queries have ended, so all must be labelled"
    )
    add_json(parser)
