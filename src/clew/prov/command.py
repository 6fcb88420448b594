"""`clew reduce`: options, progress, and the last word."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from clew.exceptions import ReduceSettingError
from clew.prov.asked_for import MODES, PARTITIONINGS

if TYPE_CHECKING:
    import argparse

    from clew.prov.reducing import Reduction

_LOOK_EVERY = 1.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("path", metavar="PATH", nargs="?", help="a folder with files of PROV, or another store")
    add("--kafka", metavar="SERVERS", help="read a topic from these brokers, host:port,...")
    add("--topic", metavar="TOPIC", help="the topic, one for each job")
    add("--store", metavar="PROV", required=True, help="the store that gets the reduced edges")
    add("--job", metavar="JOB", required=True, help="the job; statements of others are left out")
    add("--mode", choices=MODES, default="watermark", help="what keeps things from going early")
    add(
        "--partitioning",
        choices=PARTITIONINGS,
        default="source",
        help="what goes to the same local reducer",
    )
    add("--partitions", metavar="N", type=int, help="how many local reducers there are")
    add("--local-batch", metavar="N", type=int, default=20_000, help="elements (default: 20000)")
    add("--global-batch", metavar="N", type=int, default=1_000_000, help="edges (default: 1000000)")
    add(
        "--delay",
        metavar="TIME",
        default="10 minutes",
        help="how long after something was named it may be named again (default: 10 minutes)",
    )
    add("--window", metavar="N", type=int, default=1_000, help="past edges (default: 1000)")
    add(
        "--single-use",
        action="store_true",
        help="each intermediate entity is made once and used once",
    )
    add("--flush", action="store_true", help="let go of all edges at each global batch")
    add("--keep-apart", action="store_true", help="keep other relations in a table of their own")
    add("--documents", action="store_true", help="each file is one document of PROV-JSON")
    add("--follow", action="store_true", help="wait for more when all was read; end with Ctrl-C")
    add(
        "--idle",
        metavar="SECONDS",
        type=float,
        help="the job has ended after so long without news (default with PATH: 0)",
    )
    add("--json", action="store_true", help="print JSON and nothing else")


def run(options: argparse.Namespace) -> int:
    """Reduce, show how far it is, and say what was done."""
    if (options.path is None) == (options.kafka is None):
        raise ReduceSettingError("PATH", options.path, "a folder, or `--kafka` and `--topic`")
    if (options.kafka is None) != (options.topic is None):
        raise ReduceSettingError("--topic", options.topic, "a topic, beside `--kafka`")
    reduction = _start(options)
    try:
        while not reduction.awaitTermination(_LOOK_EVERY):
            _show(reduction)
    except KeyboardInterrupt:
        reduction.stop()
    _show(reduction, end="\n")
    _tell(reduction, as_json=options.json)
    return 0


def _start(options: argparse.Namespace) -> Reduction:
    from pyspark.sql import SparkSession

    from clew.prov import lines
    from clew.prov.reducing import reduce

    if options.path is not None:
        lines.check(options.path)
    spark = SparkSession.builder.appName("clew reduce").getOrCreate()
    source: Any = options.path
    idle = options.idle
    if options.kafka is not None:
        source = lines.topic(spark, options.kafka, options.topic)
    else:
        idle = 0.0 if idle is None and not options.follow else idle
        if options.documents:
            source = lines.files(spark, source, documents=True)
    same = ("job", "store", "mode", "partitioning", "partitions", "local_batch", "global_batch")
    rest = ("delay", "window", "single_use", "flush", "keep_apart", "follow")
    settings = {name: getattr(options, name) for name in (*same, *rest)}
    return reduce(source, spark=spark, idle=idle, **settings)


def _show(reduction: Reduction, end: str = "") -> None:
    if sys.stderr.isatty():
        print(f"\r{reduction.progress()}", end=end, file=sys.stderr, flush=True)


def _tell(reduction: Reduction, *, as_json: bool) -> None:
    progress = reduction.progress()
    letters = [str(path) for path in reduction.dead_letters()]
    if as_json:
        print(json.dumps({**progress.to_dict(), "dead_letters": letters}, indent=2))
        return
    print(progress)
    for path in letters:
        print(f"dead letters: {path}")
