"""Small live graphs for tests: queries over readings, and their elements as plain rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import clew
from clew.live.deliver import delivered_files
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from frames import Rows

Frame = clew.TracedFrame


def summed(frame: Frame) -> Frame:
    grouped = frame.withWatermark("ts", "10 seconds").groupBy(
        F.window("ts", "40 seconds", "20 seconds"), "meter"
    )
    return grouped.agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n"))


def nested(frame: Frame) -> Frame:
    first = summed(frame).filter("n % 2 = 1 or kwh > 2")
    return first.groupBy(F.window(F.window_time("window"), "40 seconds"), "n").agg(
        F.count("*").alias("windows")
    )


def joined(frame: Frame) -> Frame:
    marked = frame.withWatermark("ts", "10 seconds")
    later = marked.select(F.col("ts").alias("then"), F.col("meter").alias("m"), "rid")
    condition = "meter = m and then > ts and then <= ts + interval 15 seconds"
    return marked.select("ts", "meter", "kwh").join(later, F.expr(condition))


def large(frame: Frame) -> Frame:
    return frame.filter("kwh > 1").select("rid", "ts", "kwh")


QUERIES: Mapping[str, Callable[[Frame], Frame]] = {
    "summed": summed,
    "nested": nested,
    "joined": joined,
    "large": large,
}


def readings(spark: SparkSession, folder: Path, **options: Any) -> Frame:
    stream = read_batches(spark, folder / "in", READINGS_DDL)
    return clew.trace(stream, "readings", event_time="ts", **options)


def run(
    spark: SparkSession,
    folder: Path,
    names: Sequence[str],
    batches: Sequence[Rows] = (),
    *,
    capture: str = "sets",
    **options: Any,
) -> clew.Provenance:
    """Write batches, run queries over all of them, and open the store."""
    if batches:
        write_batches(folder / "in", READINGS, batches)
    for name in names:
        frame = QUERIES[name](readings(spark, folder, **options))
        run_stream(frame, folder / "prov", name, checkpoint=folder / name, capture=capture)
    return clew.open(folder / "prov")


def elements(prov: clew.Provenance, graph: str = "live") -> list[dict[str, Any]]:
    """Read everything that a graph delivered, in the order of delivery."""
    from pathlib import Path

    files = delivered_files(Path(prov.path), graph)
    if not files:
        return []
    tables = [pq.read_table(f, partitioning=None) for f in files]
    rows: list[dict[str, Any]] = pa.concat_tables(tables, promote_options="default").to_pylist()
    return rows


def of(kind: str, found: Sequence[dict[str, Any]], side: str | None = None) -> Counter[Any]:
    """Count the elements of a kind by what they are about."""
    keys = ("sink", "sink_a", "sink_b") if kind == "edge" else ("side",)
    return Counter(
        tuple(each[k] for k in (*keys, "stream", "a", "b"))
        for each in found
        if each["element"] == kind and side in (None, each["side"])
    )
