"""Stores with provenance that no query made: for Ananke's Figures 16 and 17 and its Table 2.

A result has `size` source rows, and shares `overlap` percent of them with the one before. There is
a source row every second, and a result every time enough new rows have come; it can be expired
`size` seconds after. The parts of a store are all there from the beginning, so an engine is as busy
as can be. A step takes no more than `MOST_EDGES` at once here, so that there are several steps.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import clew
from benchmarks import live_runs
from benchmarks.databases import OnDemand
from benchmarks.processes import cpu_seconds
from clew.live.deliver import steps
from clew.store.commit import Commit, commit, make_store, put_stream
from clew.store.edges import EDGES
from clew.store.layout import batch_folder, edges_folder, rows_folder
from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.databases import Database
    from clew.live.graph_state import EngineName

SOURCE = "readings"
MOST_EDGES = 50_000
_RUN = "0badcafe"
_PARTS = 8
_START = 1_704_067_200
_TIME = pa.timestamp("us", tz="UTC")
_SCHEMA = {
    "type": "struct",
    "fields": [{"name": "value", "type": "long", "nullable": True, "metadata": {}}],
}


@dataclass(frozen=True)
class Shape:
    """What the provenance in a store looks like.

    Attributes:
        provenance_size: How many source rows a result has.
        overlap: How many percent of them it shares with the result before.
        queries: How many queries there are.
        edges: How many edges each of them has, about.
    """

    provenance_size: int
    overlap: int
    queries: int = 1
    edges: int = 200_000

    @property
    def results(self) -> int:
        """How many results each query has."""
        return self.edges // self.provenance_size

    def names(self) -> tuple[str, ...]:
        """Name the queries."""
        return tuple(f"query_{number}" for number in range(self.queries))


def write_store(root: Path, shape: Shape) -> None:
    """Make a store whose queries have finished everything."""
    make_store(root, __version__)
    identity = {"kind": "key", "columns": ["value"]}
    put_stream(root, _stream(SOURCE, "source", writer=None, identity=identity, runs=[]))
    for number, query in enumerate(shape.names()):
        bound = {"micros": shape.provenance_size * 1_000_000, "waits": True, "by_arrival": False}
        put_stream(
            root,
            _stream(
                query,
                "sink",
                writer=query,
                identity=None,
                capture="sets",
                graph={"sources": [SOURCE]},
                bounds={SOURCE: {**bound, "why": [], "clock": ""}},
                runs=[{"run": _RUN, "checkpoint": str(root / query)}],
            ),
        )
        for part, results in enumerate(np.array_split(np.arange(shape.results), _PARTS)):
            last = _write_part(root, shape, query, number, part, results)
        # A batch without results, by whose watermark every row is expired.
        past = 1_000 * (last + 2 * shape.provenance_size)
        commit(root, Commit(query, _RUN, _PARTS, sink_rows=0, edges=0, watermark_ms=past))


def _stream(name: str, kind: str, **more: Any) -> dict[str, Any]:
    said = {"exactness": "exact", "schema": _SCHEMA, "event_time": None, "capture": None}
    return {**said, "name": name, "kind": kind, **more}


def _write_part(root: Path, shape: Shape, query: str, number: int, part: int, results: Any) -> int:
    """Write a batch of results; return the event time of the last one, in seconds."""
    new = shape.provenance_size * (100 - shape.overlap) / 100
    first = np.floor(results * new).astype(np.int64)
    ends = first[:, None] + np.arange(shape.provenance_size)
    behind = np.arange(first[0], ends[-1, -1] + 1)
    last = _START + ends[:, -1]
    name = batch_folder(_RUN, part)
    own = np.full(len(results), number)
    files = [
        _write(rows_folder(root, query, name, query), _rows(own, results, last)),
        _write(
            rows_folder(root, query, name, SOURCE),
            _rows(np.full(len(behind), number), behind, _START + behind),
        ),
        _write(edges_folder(root, query, name), _edges(query, number, results, ends)),
    ]
    commit(
        root,
        Commit(
            query,
            _RUN,
            part,
            sink_rows=len(results),
            edges=ends.size,
            files=[str(each.relative_to(root)) for each in files],
            watermark_ms=1_000 * int(last[-1]),
        ),
    )
    return int(last[-1])


def _rows(a: Any, b: Any, seconds: Any) -> pa.Table:
    value = pa.StructArray.from_arrays([pa.array(b)], names=["value"])
    columns = {
        "a": pa.array(a),
        "b": pa.array(b),
        "segment": pa.nulls(len(b), pa.string()),
        "time": pa.array(seconds * 1_000_000).cast(_TIME),
        "row": value,
    }
    return pa.table(columns)


def _edges(query: str, number: int, results: Any, ends: Any) -> pa.Table:
    size = ends.shape[1]
    columns = (
        [query] * ends.size,
        np.full(ends.size, number),
        np.repeat(results, size),
        [SOURCE] * ends.size,
        np.full(ends.size, number),
        ends.ravel(),
    )
    return pa.table([pa.array(each) for each in columns], schema=EDGES)


def _write(folder: Path, table: pa.Table) -> Path:
    folder.mkdir(parents=True)
    path = folder / "part-0.parquet"
    pq.write_table(table, path)
    return path


class Partitioned:
    """A Spark session whose sessions have so many shuffle partitions."""

    def __init__(self, spark: SparkSession, partitions: int) -> None:
        self._spark = spark
        self._partitions = partitions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def newSession(self) -> SparkSession:  # noqa: N802 (Spark's spelling)
        made = self._spark.newSession()
        made.conf.set("spark.sql.shuffle.partitions", str(self._partitions))
        return made


@dataclass(frozen=True)
class Fed:
    """What it took to build the graph of a store.

    Attributes:
        seconds: Until the last element was delivered.
        cpu: CPU seconds of all processes in that time.
        delay: Seconds until a step was delivered, median over steps.
        counts: How many vertices, edges and labels there are.
    """

    seconds: float
    cpu: float
    delay: float
    counts: tuple[int, int, int]


def feed_engine(
    root: Path, shape: Shape, engine: EngineName, spark: SparkSession, partitions: int, name: str
) -> Fed:
    """Let an engine of clew build the graph of a store."""

    def build() -> None:
        session: Any = Partitioned(spark, partitions)
        with mock.patch("clew.live.take.MOST_EDGES", MOST_EDGES), clew.open(root) as prov:
            prov.graph(shape.names(), name=name, engine=engine, spark=session).advance()

    return _timed(root, name, build)


def feed_database(
    root: Path, shape: Shape, database: Callable[[], Database], every: float, name: str
) -> Fed:
    """Let a database that is polled build the graph of a store."""

    def build() -> None:
        OnDemand(root, shape.names(), database(), every, name).start().finish()

    return _timed(root, name, build)


def _timed(root: Path, name: str, build: Callable[[], None]) -> Fed:
    began, cpu, clock = time.time(), cpu_seconds(), time.perf_counter()
    build()
    seconds, cpu = time.perf_counter() - clock, cpu_seconds() - cpu
    delays = [step.stat().st_ctime - began for step in steps(root, name)]
    return Fed(seconds, cpu, statistics.median(delays), live_runs.check(root, name))


def row(
    use_case: str, engine: str, shape: Shape, partitions: int | None, found: Sequence[Fed]
) -> dict[str, Any]:
    """Say what the runs of one engine on one store took."""
    results = shape.results * shape.queries
    rates = [results / each.seconds for each in found]
    vertices, edges, labels = found[-1].counts
    return {
        "use_case": use_case,
        "engine": engine,
        "input_rows": results,
        "live_rows_per_s": round(statistics.median(rates)),
        "live_rows_per_s_low": round(min(rates)),
        "live_rows_per_s_high": round(max(rates)),
        "edges_per_s": round(edges / results * statistics.median(rates)),
        "cores_used": round(statistics.median(each.cpu / each.seconds for each in found), 2),
        "delivery_latency_s": round(statistics.median(each.delay for each in found), 3),
        "vertices": vertices,
        "edges": edges,
        "labels": labels,
        "partitions": partitions,
        "repetitions": len(found),
        **{name: value for name, value in asdict(shape).items() if name != "edges"},
    }
