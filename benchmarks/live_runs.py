"""Run the queries of a use case once, plain or with a live graph, and say what it took.

The clock runs from before the first query is started: plain, until both have ended; live, until the
graph has delivered its last element. Both run in one session, on the same cores.
"""

from __future__ import annotations

import datetime as dt
import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

import clew
from benchmarks.live_domains import EVENT_TIME
from benchmarks.processes import cpu_seconds
from clew.expiry.parts import new_parts
from clew.frame.door import trace
from clew.live.deliver import STEP, delivered_files, steps
from clew.live.verify import verify
from clew.store.layout import read_json
from clew.store.reader import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from benchmarks.live_domains import Domain
    from benchmarks.streams import Stream
    from clew.frame.frame import TracedFrame
    from clew.live.graph_state import EngineName
    from clew.store.reader import Snapshot

ENGINES: tuple[EngineName, ...] = ("operator", "native")
FOLLOW_EVERY = 1.0
"""Seconds between two looks of a graph at the store; news of this process it hears at once."""


@dataclass(frozen=True)
class Run:
    """What one run took.

    Attributes:
        seconds: From before the first query was started to the end.
        cpu: CPU seconds of all processes in that time.
        sink_rows: How many results the queries wrote.
        vertices: How many vertices were delivered.
        edges: How many edges.
        labels: How many labels.
        delays: For each part of the provenance, the seconds from its commit to its delivery.
    """

    seconds: float
    cpu: float
    sink_rows: int
    vertices: int = 0
    edges: int = 0
    labels: int = 0
    delays: tuple[float, ...] = ()


def source(spark: SparkSession, folder: Path, schema: str, per_trigger: int) -> DataFrame:
    """Read a folder of files as a stream."""
    reader = spark.readStream.schema(schema)
    return reader.option("maxFilesPerTrigger", per_trigger).parquet(str(folder))


def plain_frames(spark: SparkSession, domain: Domain, stream: Stream) -> dict[str, DataFrame]:
    """Apply the queries of a use case to their source."""
    return {
        name: query(source(spark, stream.folder, stream.data.schema, stream.per_trigger))
        for name, query in domain.queries.items()
    }


def traced_frames(spark: SparkSession, domain: Domain, stream: Stream) -> dict[str, TracedFrame]:
    """Apply the queries of a use case to their traced source."""
    read = (stream.folder, stream.data.schema, stream.per_trigger)
    return {
        name: query(trace(source(spark, *read), stream.data.name, event_time="ts"))
        for name, query in domain.queries.items()
    }


def start_traced(
    frames: Mapping[str, TracedFrame], folder: Path, capture: Any = "auto"
) -> list[StreamingQuery]:
    """Start queries with provenance, all into one store."""
    return [
        _to_files(
            frame.writeStream.provenance(
                str(folder / "store"), event_time=EVENT_TIME, capture=capture
            ).queryName(name),
            folder / name,
        )
        for name, frame in frames.items()
    ]


def run_plain(frames: Mapping[str, DataFrame], folder: Path) -> Run:
    """Run queries as Spark would without clew."""
    cpu, clock = cpu_seconds(), time.perf_counter()
    queries = [_to_files(each.writeStream, folder / name) for name, each in frames.items()]
    for query in queries:
        query.awaitTermination()
    seconds, cpu = time.perf_counter() - clock, cpu_seconds() - cpu
    return Run(seconds, cpu, _count(folder, frames))


def run_live(
    frames: Mapping[str, TracedFrame], folder: Path, follow: Callable[[Path], Callable[[], None]]
) -> Run:
    """Run queries with provenance, followed by whatever builds the graph.

    Args:
        frames: The queries.
        folder: A folder of its own for this run.
        follow: Begins to build the graph `live` of a store, and returns what ends it: a function
            that returns when the last element is delivered.
    """
    cpu, clock = cpu_seconds(), time.perf_counter()
    queries = start_traced(frames, folder)
    end = follow(folder / "store")
    for query in queries:
        query.awaitTermination()
    end()
    seconds, cpu = time.perf_counter() - clock, cpu_seconds() - cpu
    root = folder / "store"
    counts = check(root, "live")
    delays = tuple(_delays(root, "live", tuple(frames)))
    return Run(seconds, cpu, _count(folder, frames), *counts, delays)


def follow_with(
    spark: SparkSession, engine: EngineName, queries: Iterable[str]
) -> Callable[[Path], Callable[[], None]]:
    """Let clew build the graph."""

    def follow(root: Path) -> Callable[[], None]:
        prov = clew.open(root)
        graph = prov.graph(tuple(queries), engine=engine, spark=spark).start(FOLLOW_EVERY)

        def end() -> None:
            graph.stop()
            prov.close()

        return end

    return follow


def check(root: Path, graph: str) -> tuple[int, int, int]:
    """Verify a graph; return how many vertices, edges and labels it has."""
    report = verify(delivered_files(root, graph))
    assert report.ok, f"{root}, {graph}: {report}"
    return report.vertices, report.edges, report.labels


def settle(spark: SparkSession) -> None:
    """Clear away what the run before left in memory."""
    gc.collect()
    java: Any = spark.sparkContext._jvm  # noqa: SLF001 (no other way to ask)
    java.System.gc()


def _to_files(writer: Any, folder: Path) -> StreamingQuery:
    writer = writer.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query: StreamingQuery = writer.trigger(availableNow=True).start()
    return query


def _count(folder: Path, names: Iterable[str]) -> int:
    found = [folder / name / "out" for name in names]
    return sum(ds.dataset(each, format="parquet").count_rows() for each in found)


def _delays(root: Path, graph: str, queries: tuple[str, ...]) -> Iterator[float]:
    """Yield, for each part with results, how long after its commit it was delivered."""
    snapshot = Store(root).snapshot()
    committed = _commit_times(snapshot)
    before: dict[str, dict[str, int]] = {}
    for step in steps(root, graph):
        delivered = step.stat().st_ctime  # of the rename that made it appear
        taken = read_json(step / STEP)["taken"]
        for query in queries:
            for part in new_parts(snapshot, query, before.get(query, {})):
                if part.last > taken.get(query, {}).get(part.run, -1):
                    break
                if part.sink_rows:
                    yield delivered - max(committed[file] for file in part.edge_files)
        before = taken


def _commit_times(snapshot: Snapshot) -> dict[str, float]:
    """Map each file of edges to the time when it was committed."""
    found = (each for kind in (snapshot.batches, snapshot.unfolded) for each in kind.values())
    return {
        file: dt.datetime.fromisoformat(batch.committed.replace("Z", "+00:00")).timestamp()
        for batches in found
        for batch in batches
        for file in batch.edge_files
    }
