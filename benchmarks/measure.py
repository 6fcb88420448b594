"""Run one query once, plain or traced, and say what it took.

The time of the main query is what Spark itself says of its batches, so building the pipeline is no
part of it. It is complete when the last edge is stored: with pointers, when what the query left
behind is unfolded, which happens here after the query and on the same cores. CPU time counts from
the moment the query runs until it is complete.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from benchmarks.processes import cpu_seconds
from clew.again.retrieve import Selection, retrieve
from clew.again.stage import Stage
from clew.again.which_pipeline import Versions
from clew.frame.door import trace
from clew.store.layout import batches_folder, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from benchmarks.queries import Case
    from benchmarks.streams import Stream
    from clew.frame.frame import TracedFrame

_PROVIDERS = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
_SINK = "results"


@dataclass(frozen=True)
class Asked:
    """What it took to find the source rows behind a share of the results."""

    seconds: float
    cpu: float
    rows: int
    edges: int
    edge_bytes: int


@dataclass(frozen=True)
class Run:
    """What one run took.

    Attributes:
        seconds: The batches of the main query.
        complete: The same and all until the last edge is stored; None if no edges are.
        cpu: CPU seconds of all processes, until complete.
        state_bytes: The largest state of all operators: in memory, or the files of RocksDB.
        sink_rows: How many results there are.
        edges: How many edges are stored.
        edge_bytes: How large their files are.
        asked: For each share, what it took to retrieve it.
    """

    seconds: float
    complete: float | None
    cpu: float
    state_bytes: int
    sink_rows: int
    edges: int | None = None
    edge_bytes: int = 0
    asked: dict[float, Asked] = field(default_factory=dict)


def run_plain(result: DataFrame, folder: Path) -> Run:
    """Run a query as Spark would without clew."""
    writer = result.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    began = cpu_seconds()
    query.awaitTermination()
    seconds, cpu = _seconds(query), cpu_seconds() - began
    rows = ds.dataset(folder / "out", format="parquet").count_rows()
    return Run(seconds, seconds, cpu, _state_bytes(query), rows)


def run_traced(
    frame: TracedFrame, capture: str, folder: Path, shares: Sequence[float], *, complete: bool
) -> Run:
    """Run a query with provenance and, if it is to be complete, unfold or retrieve afterwards."""
    query = start(frame, capture, folder)
    began = cpu_seconds()
    query.awaitTermination()
    seconds = _seconds(query)
    until = seconds if capture == "sets" else None
    root, state = folder / "store", _state_bytes(query)
    rows, edges = _committed(root)
    if capture == "pointers" and complete:
        clock = time.perf_counter()
        edges = _unfold(frame, folder)
        until = seconds + time.perf_counter() - clock
    cpu = cpu_seconds() - began
    asked = {share: _ask(frame, root, share) for share in shares}
    if until is None:
        return Run(seconds, None, cpu, state, rows, asked=asked)
    return Run(seconds, until, cpu, state, rows, edges, edge_bytes(root), asked)


def _unfold(frame: TracedFrame, folder: Path) -> int:
    checkpoint = folder / "checkpoint"
    run = str(read_json(checkpoint / "clew.json")["run"])
    return Stage(folder / "store", _SINK, run, frame.node, str(checkpoint)).unfold()


def plain(spark: SparkSession, case: Case, stream: Stream) -> DataFrame:
    """Apply a query to its source."""
    result: DataFrame = case.make(_source(spark, stream))
    return result


def traced(spark: SparkSession, case: Case, stream: Stream) -> TracedFrame:
    """Apply a query to its traced source."""
    source = trace(_source(spark, stream), stream.data.name, event_time="ts")
    result: TracedFrame = case.make(source)
    return result


def start(frame: TracedFrame, capture: str, folder: Path) -> StreamingQuery:
    """Start a query with provenance that is unfolded later."""
    place: Any = {"capture": capture, "unfold": "later"}
    writer = frame.writeStream.provenance(str(folder / "store"), **place).queryName(_SINK)
    writer = writer.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def retrieve_some(frame: TracedFrame, root: Path, selection: Selection) -> int:
    """Find the rows behind some results; return how many results those are."""
    return retrieve(root, _SINK, Versions(root, _SINK, frame.node), selection)


def edge_bytes(root: Path) -> int:
    """Add up the sizes of the files with edges."""
    return sum(p.stat().st_size for p in (root / "edges").rglob("*.parquet"))


def _ask(frame: TracedFrame, root: Path, share: float) -> Asked:
    # What is found is kept, so each share asks a store that knows nothing yet.
    own = root.with_name(f"store-{share}")
    shutil.copytree(root, own)
    cpu, clock = cpu_seconds(), time.perf_counter()
    rows = retrieve_some(frame, own, Selection(sample=share / 100))
    seconds, cpu = time.perf_counter() - clock, cpu_seconds() - cpu
    parts = (own / "unfolded").rglob("*.json")
    edges = sum(int(read_json(path)["edges"]) for path in parts)
    asked = Asked(seconds, cpu, rows, edges, edge_bytes(own))
    shutil.rmtree(own)
    return asked


def settle(spark: SparkSession, case: Case) -> None:
    """Choose the state store and clear away what the turn before left in memory."""
    provider = _PROVIDERS[case.state_store]
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    if case.small:
        return
    java: Any = spark.sparkContext._jvm  # noqa: SLF001 (no other way to ask)
    java.System.gc()


def _source(spark: SparkSession, stream: Stream) -> DataFrame:
    reader = spark.readStream.schema(stream.data.schema)
    return reader.option("maxFilesPerTrigger", stream.per_trigger).parquet(str(stream.folder))


def _seconds(query: StreamingQuery) -> float:
    batches: Any = query.recentProgress
    return sum(int(each["durationMs"].get("triggerExecution", 0)) for each in batches) / 1_000


def _state_bytes(query: StreamingQuery) -> int:
    batches: Any = query.recentProgress
    return max(sum(_size(operator) for operator in p["stateOperators"]) for p in batches)


def _size(operator: Any) -> int:
    # RocksDB's memory is caches of a fixed size; what it holds is in its files.
    return int(operator["customMetrics"].get("rocksdbSstFileSize") or operator["memoryUsedBytes"])


def _committed(root: Path) -> tuple[int, int]:
    said = [read_json(path) for path in batches_folder(root, _SINK).glob("*.json")]
    return sum(int(s["sink_rows"]) for s in said), sum(int(s["edges"] or 0) for s in said)
