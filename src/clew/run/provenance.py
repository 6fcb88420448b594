"""Split a batch into clean rows and provenance, and commit it.

The query hands over rows that carry their annotation in hidden columns. Clean rows go to the
user's sink, edges and content to the store, and the commit file last. Everything here works on
data that Spark can send to another process, since under Spark Connect a batch is handled on the
server.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.sets import content, from_column
from clew.exceptions import StoreError
from clew.graph.columns import ID_A, ID_B, is_hidden, named
from clew.run.steps import reached
from clew.store.commit import Commit, commit, is_committed
from clew.store.layout import edges_folder, rows_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from clew.run.sink import Sink

OnError = Literal["fail", "gap"]
_ROWS_PER_FILE = 500_000
_ANY_NUMBER = 1 << 20
_log = logging.getLogger("clew")
_EDGE = T.StructType(
    [
        T.StructField("sink", T.StringType()),
        T.StructField("sink_a", T.LongType()),
        T.StructField("sink_b", T.LongType()),
        T.StructField("source", T.StringType()),
        T.StructField("source_a", T.LongType()),
        T.StructField("source_b", T.LongType()),
    ]
)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """What to do with each batch of a query.

    Attributes:
        root: The store's folder.
        writer: The stream that the query fills.
        run: The checkpoint's own name, the same after a restart.
        sink: Where clean rows go.
        keep_id: Add the row's id to the clean rows, as `clew_id`.
        on_error: What to do when provenance cannot be written.
        checkpoint: The query's checkpoint, for the watermark of a batch.
        event_time: The result's event-time column.
        skip_empty: Do not trouble the sink with a batch that has no rows.
    """

    root: str
    writer: str
    run: str
    sink: Sink
    keep_id: bool = False
    on_error: OnError = "fail"
    checkpoint: str | None = None
    event_time: str | None = None
    skip_empty: bool = True

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Handle one batch; safe to call again for the same batch."""
        root = Path(self.root)
        if is_committed(root, self.writer, self.run, batch):
            # It was finished before, and Spark does not know. Its own state still has to take the
            # batch in, and does so while the rows are computed.
            rows.write.format("noop").mode("overwrite").save()
            return
        reached("batch begun", batch)
        # Spark 4.3 fails to cache rows whose sort order names a column that they no longer have
        # (a join by name); a coalesce, here one that changes nothing, forgets the order.
        held = rows.coalesce(_ANY_NUMBER).persist()
        try:
            self._handle(root, held, batch)
        finally:
            held.unpersist()

    def _handle(self, root: Path, rows: DataFrame, batch: int) -> None:
        count = rows.count()
        reached("batch computed", batch)
        if count or not self.skip_empty:
            self.sink.write(clean_rows(rows, keep_id=self.keep_id), self.run, batch)
        reached("sink written", batch)
        self._record(root, rows, batch, count)
        reached("batch committed", batch)
        if count:
            self.sink.done(self.run, batch)
        reached("batch done", batch)

    def _record(self, root: Path, rows: DataFrame, batch: int, count: int) -> None:
        watermark = read_watermark(self.checkpoint, batch)
        try:
            files, edges = self._put(root, rows, batch, count) if count else ([], 0)
            done = Commit(self.writer, self.run, batch, watermark, count, edges, files)
            reached("provenance written", batch)
            commit(root, done)
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            if self.on_error == "fail":
                msg = (
                    f"provenance of batch {batch} of `{self.writer}` could not be written to "
                    f"`{self.root}` ({why}), so the query stops: going on would lose it.\n\n"
                    "Mend the cause and start the query again: it repeats the batch. To go on "
                    'without, write `.provenance(path, on_error="gap")`; answers then name the gap.'
                )
                raise StoreError(msg) from error
            # The kind of error only: its text may hold values of rows, which no log should.
            kind = type(error).__name__
            _log.warning("provenance of batch %d of %s is missing: %s", batch, self.writer, kind)
            self._record_gap(root, Commit(self.writer, self.run, batch, watermark, count, gap=why))

    def _record_gap(self, root: Path, missing: Commit) -> None:
        try:
            commit(root, missing)
        except OSError as error:
            # Not even the gap can be noted; a number missing between two batches is one, too.
            _log.warning("the gap could not be noted: %s", error.strerror)

    def _put(self, root: Path, rows: DataFrame, batch: int, count: int) -> tuple[list[str], int]:
        streams = sources_of(rows)
        edges_to = edges_folder(root, self.writer, self.run, batch)
        edges = _put(edges_of(rows, self.writer, streams), edges_to, count)
        reached("edges written", batch)
        outs = [edges_to]
        for stream, frame in self._contents(rows, streams):
            out = rows_folder(root, self.writer, self.run, batch, stream)
            _put(frame, out, count)
            outs.append(out)
            reached("rows written", batch)
        return [
            str(p.relative_to(root)) for out in outs for p in sorted(out.glob("*.parquet"))
        ], edges

    def _contents(self, rows: DataFrame, streams: list[str]) -> Iterator[tuple[str, DataFrame]]:
        yield self.writer, sink_rows(rows, self.event_time)
        for stream in streams:
            # A stream that feeds this query and is another's sink has its content there already,
            # but that store may be another one: keep it here as well.
            yield stream, source_rows(rows, stream)


def _put(frame: DataFrame, folder: Path, count: int) -> int:
    if folder.exists():
        shutil.rmtree(folder)  # an interrupted run of the same batch
    parts = max(1, math.ceil(count / _ROWS_PER_FILE))
    frame.coalesce(parts).write.mode("overwrite").parquet(str(folder))
    return _rows_in(folder)


def _rows_in(folder: Path) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(p).num_rows for p in folder.glob("*.parquet"))


def clean_rows(rows: DataFrame, *, keep_id: bool) -> DataFrame:
    """Return the user's rows as they would have been, with their id if it was asked for."""
    hidden = [name for name in rows.columns if is_hidden(name)]
    if not keep_id:
        return rows.drop(*hidden)
    return rows.withColumn("clew_id", id_text()).drop(*hidden)


def id_text() -> Column:
    """Write a row's own id as text."""
    halves = [F.lpad(F.lower(F.hex(named(half))), 16, "0") for half in (ID_A, ID_B)]
    return F.concat(*halves)


def sources_of(rows: DataFrame) -> list[str]:
    """List the streams that the rows of a batch may come from."""
    prefix = from_column("")
    return [name.removeprefix(prefix) for name in rows.columns if name.startswith(prefix)]


def sink_rows(rows: DataFrame, event_time: str | None) -> DataFrame:
    """Return the content of a batch's own rows, for the store."""
    fields = [f for f in rows.schema.fields if not is_hidden(f.name)]
    packed, _ = content([(f.name, named(f.name), f.dataType) for f in fields])
    time = (named(event_time) if event_time else F.lit(None)).cast("timestamp")
    return rows.select(
        named(ID_A).alias("a"),
        named(ID_B).alias("b"),
        F.lit(None).cast("string").alias("segment"),
        time.alias("time"),
        packed.alias("row"),
    )


def source_rows(rows: DataFrame, stream: str) -> DataFrame:
    """Return the content of the rows of one stream that contributed, each once."""
    each = rows.select(F.explode(named(from_column(stream))).alias("e"))
    kind = each.schema["e"].dataType
    has_row = isinstance(kind, T.StructType) and "row" in kind.names
    row = F.col("e.row") if has_row else F.struct(F.lit(None).cast("string").alias("_"))
    found = each.select("e.a", "e.b", "e.segment", "e.time", row.alias("row"))
    return found.dropDuplicates(["a", "b"])


def edges_of(rows: DataFrame, writer: str, streams: list[str]) -> DataFrame:
    """Return the edges of a batch: from its rows to all streams, and from named frames on."""
    lists = []
    nested = False
    for stream in streams:
        array = named(from_column(stream))
        kind = rows.schema[from_column(stream)].dataType
        lists.append(_edges(writer, named(ID_A), named(ID_B), stream, array))
        inner = _sources_inside(kind)
        nested = nested or bool(inner)
        lists += [_edges_inside(stream, array, source) for source in inner]
    together = F.concat(*lists) if lists else F.array().cast(T.ArrayType(_EDGE))
    edges = rows.select(F.explode(together).alias("e")).select("e.*")
    # Several rows may come from one row of a named frame; its own edges are then met again.
    return edges.dropDuplicates() if nested else edges


def _sources_inside(kind: T.DataType) -> list[str]:
    element = kind.elementType if isinstance(kind, T.ArrayType) else kind
    if not isinstance(element, T.StructType) or "from" not in element.names:
        return []
    inner = element["from"].dataType
    return list(inner.names) if isinstance(inner, T.StructType) else []


def _edges(sink: str, a: Column, b: Column, source: str, array: Column) -> Column:
    def one(element: Column) -> Column:
        return F.struct(
            F.lit(sink).alias("sink"),
            a.alias("sink_a"),
            b.alias("sink_b"),
            F.lit(source).alias("source"),
            element["a"].alias("source_a"),
            element["b"].alias("source_b"),
        )

    return F.transform(array, one)


def _edges_inside(stream: str, array: Column, source: str) -> Column:
    def of(element: Column) -> Column:
        return _edges(stream, element["a"], element["b"], source, element["from"][source])

    return F.flatten(F.transform(array, of))


def read_watermark(checkpoint: str | None, batch: int) -> str | None:
    """Read the watermark of a batch from the query's own checkpoint."""
    if checkpoint is None:
        return None
    try:
        lines = (Path(checkpoint) / "offsets" / str(batch)).read_text().splitlines()
        millis = int(json.loads(lines[1])["batchWatermarkMs"])
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return _iso(millis) if millis > 0 else None


def _iso(millis: int) -> str:
    import datetime as dt

    at = dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(milliseconds=millis)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
