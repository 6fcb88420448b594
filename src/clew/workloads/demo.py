"""The demo: stream Linear Road, then ask why an accident alert was raised.

Two queries read the same reports and write to one store: cars that stand still, and accidents. When
they are done the demo picks an accident and asks the store three questions, without Spark.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from clew.ask.provenance import open_store
from clew.exceptions import ClewError
from clew.frame.door import trace
from clew.show.text import count
from clew.workloads import linear_road
from clew.workloads.files import write_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.ask.provenance import Provenance
    from clew.ask.row import Row, Rows
    from clew.ask.trace import Trace

_FILES = 6
_MARK = ".clew-demo"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    options = _parser().parse_args(argv)
    # With JSON on standard output, the story goes to standard error.
    console = Console(highlight=False, stderr=options.json)
    folder = _fresh(Path(options.folder))
    rows = _make_reports(folder, options.cars, options.minutes, options.seed)
    console.print(
        f"[bold]Linear Road[/]: {rows:,} reports of {options.cars:,} cars in {folder / 'in'}"
    )
    with console.status("starting Spark"):
        spark = _session(folder)
    try:
        seconds = _stream(spark, folder, console)
    finally:
        spark.stop()
    console.print(
        f"streamed in {seconds:.1f} s; Spark is stopped, the rest reads the store alone\n"
    )
    why = _ask(folder / "prov", console)
    if options.json:
        said = {"folder": str(folder), "reports": rows, "seconds": seconds, "why": why.to_dict()}
        sys.stdout.write(json.dumps(said, indent=2) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="clew demo", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="clew-demo", help="where data and store go")
    parser.add_argument("--cars", type=int, default=4000, help="how many cars drive")
    parser.add_argument("--minutes", type=int, default=30, help="for how long")
    parser.add_argument("--seed", type=int, default=7, help="the same seed gives the same data")
    parser.add_argument(
        "--json", action="store_true", help="print JSON, and tell the rest on standard error"
    )
    return parser


def _fresh(folder: Path) -> Path:
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        msg = (
            f"`{folder}` holds files that the demo did not make, so it is left alone.\n\n"
            "Name another folder: `clew demo --folder NAME`."
        )
        raise ClewError(msg)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()
    return folder


def _make_reports(folder: Path, cars: int, minutes: int, seed: int) -> int:
    road = linear_road.generate(
        cars=cars, minutes=minutes, seed=seed, stopped=40, accidents=12, decoys=4
    )
    closing = linear_road.closing_report(road.table)
    parts = write_files(road.table, folder / "in", files=_FILES, closing=closing)
    return sum(part.rows for part in parts)


def _session(folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    return (
        SparkSession.builder.master("local[*]")
        .appName("clew demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


def _stream(spark: SparkSession, folder: Path, console: Console) -> float:
    source = spark.readStream.schema(linear_road.SCHEMA).option("maxFilesPerTrigger", 1)
    reports = trace(source.parquet(str(folder / "in")), "reports", event_time="ts")
    stopped = linear_road.stopped_cars(reports)
    frames = {"stopped": stopped, "accidents": linear_road.accidents(stopped)}
    began = time.perf_counter()
    queries = {}
    for name, frame in frames.items():
        writer = frame.writeStream.provenance(str(folder / "prov")).queryName(name)
        writer = writer.format("parquet").option("path", str(folder / name))
        writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
        queries[name] = writer.trigger(availableNow=True).start()
    _watch(queries, console)
    return time.perf_counter() - began


def _watch(queries: dict[str, StreamingQuery], console: Console) -> None:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        tasks = {name: progress.add_task(f"query {name}", total=_FILES) for name in queries}
        while any(query.isActive for query in queries.values()):
            for name, query in queries.items():
                last: Any = query.lastProgress
                done = 0 if last is None else min(_FILES, last["batchId"] + 1)
                progress.update(tasks[name], completed=done)
            time.sleep(0.2)
        for name, query in queries.items():
            query.awaitTermination()
            progress.update(tasks[name], completed=_FILES)


def _ask(store: Path, console: Console) -> Trace:
    """Ask about an accident, and return what it was made from."""
    prov = open_store(store)
    for stream in prov.streams():
        counts = f"{stream.sink_rows:,} rows, {stream.edges:,} edges" if stream.sink_rows else ""
        console.print(f"  {stream.name:<10} {stream.kind:<7} {counts}")
    accident = prov.rows("accidents", order_by='"window".start, pos')[0]
    console.print(f"\n[bold]An alert:[/] {_said(accident)}")
    why = prov.backward("accidents", accident)
    console.print(
        f"[bold]Why is it there?[/] {len(why)} reports made it "
        f"({why.exactness}, {why.seconds * 1000:.0f} ms):"
    )
    _show_by_car(why.of("reports"), console)
    for line in why.path:
        console.print(f"  {line}", style="dim", markup=False)
    _show_forward(prov, why.of("reports")[0], console)
    console.print("\nAsk more yourself:", style="bold")
    for words in (
        f"streams {store}",
        f'rows {store} stopped --where "n >= 4" --limit 3',
        f"backward {store} accidents {accident.id.text}",
    ):
        console.print(f"  clew {words}", markup=False)
    return why


def _said(accident: Row) -> str:
    window = accident["window"]
    return (
        f"{accident['cars']} cars stand at position {accident['pos']} "
        f"between {window['start']:%H:%M:%S} and {window['end']:%H:%M:%S}"
    )


def _show_by_car(reports: Rows, console: Console) -> None:
    table = Table("car", "time", "speed", "position", "file", "row", box=None, pad_edge=False)
    for row in sorted(reports, key=lambda r: (r["car"], r["ts"])):
        file = (row.segment or "").rsplit("/", 1)[-1]
        values = (row["car"], f"{row['ts']:%H:%M:%S}", row["speed"], row["pos"], file, row.position)
        table.add_row(*map(str, values))
    console.print(table)


def _show_forward(prov: Provenance, report: Row, console: Console) -> None:
    what = prov.forward("reports", report)
    counts = {name: len(what.of(name)) for name in what.rows.streams}
    said = " and ".join(f"{count(n, 'row')} of `{name}`" for name, n in counts.items())
    console.print(
        f"\n[bold]What did the report of car {report['car']} at {report['ts']:%H:%M:%S} lead to?[/]"
        f" {said} ({what.seconds * 1000:.0f} ms)"
    )


if __name__ == "__main__":
    sys.exit(main())
