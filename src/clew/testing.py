"""Tools to test traced pipelines: finite streams, all traces of a stream, the re-execution oracle.

Everything here reads what a store holds the long way round, through its files, so that it can
serve as a check of the queries too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from clew.capture.sets import SETS, from_column
from clew.graph.columns import is_hidden
from clew.graph.node import interpret
from clew.store.edges import EDGES as _EDGES
from clew.store.edges import is_packed
from clew.store.layout import BATCHES, EDGES, ROWS, UNFOLDED, quote_name, read_json, store_root
from clew.store.packed import unpack
from clew.unfold.retrieve import Selection, retrieve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.frame.frame import TracedFrame
    from clew.unfold.choose import CaptureName

_FIRST_MTIME = 1_700_000_000


def write_batches(
    folder: str | Path, schema: pa.Schema, batches: Sequence[Sequence[Mapping[str, Any]]]
) -> None:
    """Write one Parquet file for each micro-batch, in an order that Spark keeps.

    Spark takes files in the order of their modification times, so each is a minute younger.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    before = len(list(target.glob("*.parquet")))
    for number, rows in enumerate(batches, before):
        path = target / f"{number:05d}.parquet"
        draft = target / f".{number:05d}.tmp"
        pq.write_table(pa.Table.from_pylist([dict(r) for r in rows], schema), draft)
        at = _FIRST_MTIME + 60 * number
        os.utime(draft, (at, at))
        draft.replace(path)


def read_batches(spark: SparkSession, folder: str | Path, schema: str) -> DataFrame:
    """Read such files as a stream, one file for each micro-batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def run_stream(
    frame: TracedFrame, store: str | Path, name: str, *, checkpoint: str | Path, **provenance: Any
) -> None:
    """Run a traced stream over what is there, and return when it is done."""
    writer = frame.writeStream.provenance(str(store), **provenance).queryName(name)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()


@dataclass(frozen=True, slots=True)
class Traced:
    """A result row, and the source rows behind it.

    Attributes:
        values: The result's columns.
        sources: The content of the source rows, by source.
        places: Segment and position of the same rows, where they are known.
    """

    values: dict[str, Any]
    sources: dict[str, list[dict[str, Any]]] = field(hash=False)
    places: dict[str, list[tuple[str, int]]] = field(default_factory=dict, hash=False)

    def refs(self, label: str) -> frozenset[tuple[str, Any]]:
        """Return the source rows as (source, value of a labelling column)."""
        return frozenset((s, row[label]) for s, rows in self.sources.items() for row in rows)


def collect_traces(frame: TracedFrame) -> list[Traced]:
    """Run a batch frame with its annotation and return every row with its source rows.

    The store is not involved: this is what the query itself carries.
    """
    return read_annotated(interpret(frame.node, SETS).df)


def stream_traces(frame: TracedFrame, checkpoint: str | Path, into: list[Traced]) -> StreamingQuery:
    """Start a stream with its annotation; rows and their source rows are added to a list."""

    def take(rows: DataFrame, _: int) -> None:
        into.extend(read_annotated(rows))

    writer = interpret(frame.node, SETS).df.writeStream.foreachBatch(take)
    started = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return started.start()


def batch_traces(frame: TracedFrame, folder: str | Path, capture: CaptureName) -> list[Traced]:
    """Write a batch frame to a store under a capture and return every row with its source rows."""
    place = Path(folder) / "prov"
    writer = frame.write.provenance(str(place), name="result", capture=capture)
    writer.format("noop").mode("append").save()
    if capture == "intervals":
        retrieve(store_root(place), "result", frame.node, Selection())
    return all_traces(place, "result")


def start_stream(
    frame: TracedFrame, folder: str | Path, capture: CaptureName, name: str = "result"
) -> StreamingQuery:
    """Start a stream into a store under a capture, over what is there."""
    place = Path(folder)
    writer = frame.writeStream.provenance(str(place / "prov"), capture=capture).queryName(name)
    writer = writer.option("checkpointLocation", str(place / "chk")).trigger(availableNow=True)
    return writer.start()


def finish_stream(
    query: StreamingQuery, frame: TracedFrame, folder: str | Path, name: str = "result"
) -> list[Traced]:
    """Wait for such a stream and return every row with its source rows."""
    query.awaitTermination()
    place = Path(folder) / "prov"
    retrieve(store_root(place), name, frame.node, Selection())
    return all_traces(place, name)


def read_annotated(rows: DataFrame) -> list[Traced]:
    """Read rows that carry their source rows in hidden columns."""
    prefix = from_column("")
    out = []
    for row in rows.toArrow().to_pylist():
        behind = {n.removeprefix(prefix): v for n, v in row.items() if n.startswith(prefix)}
        out.append(
            Traced(
                {name: value for name, value in row.items() if not is_hidden(name)},
                {s: [e["row"] for e in es] for s, es in behind.items() if es},
                {s: [(e["segment"], e["b"]) for e in es] for s, es in behind.items() if es},
            )
        )
    return out


def committed_files(store: str | Path, writer: str) -> list[str]:
    """List the files that a writer committed, unfoldings included."""
    root = store_root(str(store))
    commits = sorted((root / BATCHES / quote_name(writer)).glob("*.json"))
    commits += sorted((root / UNFOLDED / quote_name(writer)).glob("*.json"))
    return [str(root / name) for path in commits for name in read_json(path)["files"]]


def all_traces(store: str | Path, stream: str, *, sink: str | None = None) -> list[Traced]:
    """Return every row of a stream with the source rows behind it, read from the files."""
    writer = sink or stream
    files = committed_files(store, writer)
    edges = [f for f in files if Path(f).parents[2].name == EDGES]
    if not edges:
        return []
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    own = _contents(con, files, stream)
    table = pa.concat_tables([_edges(Path(f)) for f in edges])
    found = [
        (e["sink_a"], e["sink_b"], e["source"], e["source_a"], e["source_b"])
        for e in table.to_pylist()
        if e["sink"] == stream
    ]
    named = set(table.column("sink").to_pylist())
    contents = {s: dict(_contents(con, files, s)) for s in {row[2] for row in found} - named}
    behind: dict[tuple[int, int], dict[str, list[dict[str, Any]]]] = {}
    for a, b, source, sa, sb in found:
        if source in contents:
            rows = behind.setdefault((a, b), {}).setdefault(source, [])
            rows.append(contents[source][sa, sb])
    return [Traced(values, behind.get(row_id, {})) for row_id, values in own]


def _edges(path: Path) -> pa.Table:
    table = pq.read_table(path, partitioning=None)
    return (unpack(table) if is_packed(str(path)) else table).cast(_EDGES)


def _contents(
    con: duckdb.DuckDBPyConnection, files: Sequence[str], stream: str
) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    mine = [f for f in files if _is_content(Path(f), stream)]
    if not mine:
        return []
    rows = con.execute('SELECT a, b, "row" FROM read_parquet(?)', [mine]).fetchall()
    return [((a, b), row) for a, b, row in rows]


def _is_content(path: Path, stream: str) -> bool:
    return path.parents[3].name == ROWS and path.parent.name == quote_name(stream)
