"""Provenance latency: how much event time passes until an element of the graph is there.

It is Ananke's metric of section 3, as a median for each kind of element, in multiples of U. A
vertex counts from the event time of its row, an edge from the later one of its vertices, a label
from its vertex. Event time does not depend on how fast a machine is, so this is no timed run: the
queries take a small stream in batches of a third of U (in a quick run, of U) and capture sets. Then
their batches are put before the graph again, in the order of their watermarks, and those with the
same one together.
"""

from __future__ import annotations

import shutil
from itertools import groupby
from typing import TYPE_CHECKING, Any

import duckdb

import clew
from benchmarks import live_runs
from benchmarks.streams import Stream
from clew.live.deliver import delivered_files
from clew.store.layout import BATCHES, read_json
from clew.store.reader import Store
from clew.workloads import write_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.live_domains import Domain
    from clew.live.graph_state import EngineName

_NEVER = 3_600.0
"""Seconds between two looks of a graph by itself: it is told when to look."""
KINDS = ("sink", "source", "edge", "sink_label", "source_label")

# `at` is a word of SQL, hence `clock`.
_LATENCIES = """
    WITH element AS (SELECT * RENAME ("at" AS clock) FROM read_parquet($files)),
    vertex AS (FROM element WHERE element = 'vertex')
    SELECT side AS kind, clock - time AS latency FROM vertex WHERE time IS NOT NULL
    UNION ALL
    SELECT 'edge', e.clock - greatest(s.clock, k.clock) FROM element e
    JOIN vertex s ON s.side = 'source' AND s.stream = e.stream AND s.a = e.a AND s.b = e.b
    JOIN vertex k ON k.side = 'sink' AND k.stream = e.sink AND k.a = e.sink_a AND k.b = e.sink_b
    WHERE e.element = 'edge'
    UNION ALL
    SELECT l.side || '_label', l.clock - v.clock FROM element l
    JOIN vertex v USING (side, stream, a, b) WHERE l.element = 'label'
"""


def latencies(
    spark: SparkSession, domain: Domain, engines: Iterable[EngineName], batches: int, folder: Path
) -> dict[str, dict[str, float | None]]:
    """Measure the provenance latency of a use case with each engine."""
    place = folder / "in"
    write_files(domain.fine(), place, files=batches)
    stream = Stream(domain.data, place, 0, 1)
    frames = live_runs.traced_frames(spark, domain, stream)
    for query in live_runs.start_traced(frames, folder, capture="sets"):
        query.awaitTermination()
    root = folder / "store"
    bound = bound_seconds(root, tuple(frames))
    found = {}
    for engine in engines:
        own = folder / engine
        shutil.copytree(root, own)
        _replay(spark, own, tuple(frames), engine)
        live_runs.check(own, engine)
        found[engine] = _medians(delivered_files(own, engine), bound)
    shutil.rmtree(folder)
    return found


def _replay(spark: SparkSession, root: Path, queries: tuple[str, ...], engine: EngineName) -> None:
    """Take the batches out of a store, and put them back before a graph, one after the other."""
    held = root / "held"
    (root / BATCHES).rename(held)
    with clew.open(root) as prov:
        graph = prov.graph(queries, name=engine, engine=engine, spark=spark).start(_NEVER)
        batches = sorted(held.glob("*/*.json"), key=_watermark)
        for _, together in groupby(batches, key=_watermark):
            for batch in sorted(together):
                target = root / BATCHES / batch.relative_to(held)
                target.parent.mkdir(parents=True, exist_ok=True)
                batch.rename(target)
            graph.advance()
        graph.stop()


def _watermark(batch: Path) -> int:
    return int(read_json(batch)["watermark_ms"])


def bound_seconds(root: Path, queries: Iterable[str]) -> float:
    """Return U: the longest time, over all queries, that a row may take part in results."""
    streams = Store(root).snapshot().streams
    return max(each["micros"] for q in queries for each in streams[q].bounds.values()) / 1e6


def _medians(files: Iterable[Path], bound: float) -> dict[str, float | None]:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        rows: list[tuple[Any, ...]] = db.execute(
            f"SELECT kind, median(epoch_us(latency)) FROM ({_LATENCIES}) GROUP BY kind",
            {"files": [str(each) for each in files]},
        ).fetchall()
    found = {kind: round(micros / 1e6 / bound, 3) for kind, micros in rows}
    return {kind: found.get(kind) for kind in KINDS}
