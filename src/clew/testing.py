"""Tools to test traced pipelines: finite streams, all traces of a stream, the re-execution oracle.

Everything here reads what a store holds the long way round, through its files, so that it can
serve as a check of the queries too.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from clew.again.around import around
from clew.again.cover import covers
from clew.again.levels import Unfolding, pointers_of
from clew.again.reach import reach
from clew.again.replay import Wanted, replay
from clew.again.tables import as_tables
from clew.capture.pointers import PointersCapture
from clew.capture.sets import SETS, from_column
from clew.plan.columns import ID_A, ID_B, is_hidden
from clew.plan.node import interpret, with_secret
from clew.plan.secret import UNKEYED, Secret
from clew.sources.arrivals import read_arrivals
from clew.store.commit import make_store, store_secret
from clew.store.edges import EDGES as _EDGES
from clew.store.edges import is_packed
from clew.store.layout import BATCHES, EDGES, ROWS, UNFOLDED, quote_name, read_json, store_root
from clew.store.packed import unpack
from clew.store.spill import database
from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.frame.frame import TracedFrame
    from clew.plan.node import Node

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


def make_alike(*stores: str | Path) -> None:
    """Make empty stores with one secret, so that the ids in them can be compared."""
    secret = Secret.make()
    for each in stores:
        make_store(store_root(str(each)), __version__, secret)


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


def keyed(frame: TracedFrame, store: str | Path | None = None) -> Node:
    """Return the pipeline of a frame with the secret of a store, or one that everybody knows."""
    secret = UNKEYED if store is None else store_secret(store_root(str(store)))
    return with_secret(frame.node, secret)


def collect_traces(frame: TracedFrame) -> list[Traced]:
    """Run a batch frame with its annotation and return every row with its source rows.

    The store is not involved: this is what the query itself carries.
    """
    return read_annotated(interpret(keyed(frame), SETS).df)


def stream_traces(frame: TracedFrame, checkpoint: str | Path, into: list[Traced]) -> StreamingQuery:
    """Start a stream with its annotation; rows and their source rows are added to a list."""

    def take(rows: DataFrame, _: int) -> None:
        into.extend(read_annotated(rows))

    writer = interpret(keyed(frame), SETS).df.writeStream.foreachBatch(take)
    started = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return started.start()


def pointed_rows(frame: TracedFrame) -> pa.Table:
    """Run a batch frame with pointers and return its rows, hidden columns included."""
    return interpret(keyed(frame), PointersCapture()).df.toArrow()


def stream_pointed_rows(
    frame: TracedFrame, checkpoint: str | Path, into: list[pa.Table]
) -> StreamingQuery:
    """Start a stream with pointers; its rows, hidden columns included, are added to a list."""

    def take(rows: DataFrame, _: int) -> None:
        into.append(rows.toArrow())

    writer = interpret(keyed(frame), PointersCapture()).df.writeStream.foreachBatch(take)
    started = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return started.start()


def unfolded_traces(
    frame: TracedFrame, rows: pa.Table, checkpoint: str | Path | None = None
) -> list[Traced]:
    """Follow the pointers of rows, and return every row with its source rows."""
    node, spark = keyed(frame), frame.node.plain.df.sparkSession
    arrivals = None if checkpoint is None else read_arrivals(spark, str(checkpoint))
    annotation = pointers_of(node)
    ids = [ID_A, ID_B]
    hidden = [c for c in annotation.columns if c not in ids]
    pointing = rows.select([*ids, *hidden]).rename_columns(["sink_a", "sink_b", *hidden])
    behind: dict[tuple[int, int], dict[str, list[dict[str, Any]]]] = {}
    if rows.num_rows:
        needed = covers([rows], reach(node, whole=False))
        unfolding = Unfolding(as_tables(node, needed, arrivals))
        # Row by row: an Arrow table with nulls would pass through floating point.
        kind = ", ".join(f"`{name}` bigint" for name in pointing.column_names)
        pointed = spark.createDataFrame([tuple(r.values()) for r in pointing.to_pylist()], kind)
        for found in unfolding.follow(pointed, annotation, rows.num_rows):
            edges = found.edges.dropDuplicates(["sink_a", "sink_b", "source_a", "source_b"])
            if not found.has_content:
                contents = unfolding.rows_of(found.source)
                contents = contents.withColumnsRenamed({"a": "source_a", "b": "source_b"})
                edges = edges.join(contents, ["source_a", "source_b"])
            for edge in edges.toArrow().to_pylist():
                of = behind.setdefault((edge["sink_a"], edge["sink_b"]), {})
                of.setdefault(found.source, []).append(edge["content"])
        unfolding.close()
    out = []
    for row in rows.to_pylist():
        found_rows = behind.get((row[ID_A], row[ID_B]), {})
        out.append(
            Traced(
                {name: value for name, value in row.items() if not is_hidden(name)},
                {s: [c["row"] for c in contents] for s, contents in found_rows.items()},
            )
        )
    return out


def replayed_traces(
    frame: TracedFrame, rows: pa.Table, checkpoint: str | Path | None = None
) -> list[Traced]:
    """Replay rows from what covers them, and return every row with its source rows."""
    return _replayed(frame, rows, rows, checkpoint)


def keyed_traces(
    frame: TracedFrame, rows: pa.Table, checkpoint: str | Path | None = None
) -> list[Traced]:
    """Replay rows of which only the id is known, and return every row with its source rows."""
    where = around(frame.node)
    spans = pa.table({}) if where is None else pa.table(where.spans(rows[where.column]))
    return _replayed(frame, rows, spans, checkpoint)


def _replayed(
    frame: TracedFrame, rows: pa.Table, spans: pa.Table, checkpoint: str | Path | None
) -> list[Traced]:
    if not rows.num_rows:
        return []
    node, spark = keyed(frame), frame.node.plain.df.sparkSession
    arrivals = None if checkpoint is None else read_arrivals(spark, str(checkpoint))
    ids = rows.select([ID_A, ID_B]).group_by([ID_A, ID_B]).aggregate([])
    wanted = Wanted(ids.rename_columns(["a", "b"]), covers([spans], reach(node, whole=True)))
    values = {(r[ID_A], r[ID_B]): r for r in rows.to_pylist()}
    with tempfile.TemporaryDirectory() as folder:
        replay(node, wanted, arrivals, None, Path(folder) / "draft")
        found = spark.read.parquet(f"{folder}/draft").toArrow().to_pylist()
    return [_traced({**values[row[ID_A], row[ID_B]], **row}) for row in found]


def read_annotated(rows: DataFrame) -> list[Traced]:
    """Read rows that carry their source rows in hidden columns."""
    return [_traced(row) for row in rows.toArrow().to_pylist()]


def _traced(row: dict[str, Any]) -> Traced:
    prefix = from_column("")
    behind = {n.removeprefix(prefix): v for n, v in row.items() if n.startswith(prefix)}
    return Traced(
        {name: value for name, value in row.items() if not is_hidden(name)},
        {s: [e["row"] for e in es] for s, es in behind.items() if es},
        {s: [(e["segment"], e["b"]) for e in es] for s, es in behind.items() if es},
    )


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
    con = database()
    con.execute("SET TimeZone = 'UTC'")
    own = _contents(con, files, stream)
    table = pa.concat_tables([read_edges(Path(f)) for f in edges])
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


def read_edges(path: Path) -> pa.Table:
    """Read a file of edges, packed or not."""
    table = pq.read_table(path, partitioning=None)
    return (unpack(table) if is_packed(str(path)) else table).cast(_EDGES)


def _contents(
    con: duckdb.DuckDBPyConnection, files: Sequence[str], stream: str
) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    mine = [f for f in files if _is_content(Path(f), stream)]
    if not mine:
        return []
    rows = con.execute('SELECT a, b, "row" FROM read_parquet(?)', [mine]).fetchall()
    return [((a, b), without_zone(row)) for a, b, row in rows]


def without_zone(value: Any) -> Any:
    """Give all points in time in UTC, without saying so: files differ in whether they do."""
    if isinstance(value, dict):
        return {key: without_zone(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_zone(each) for each in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return value


def _is_content(path: Path, stream: str) -> bool:
    return path.parents[3].name == ROWS and path.parent.name == quote_name(stream)
