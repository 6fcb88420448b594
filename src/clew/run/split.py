"""Split a batch into clean rows and provenance, and commit it.

The query hands over rows that carry their annotation in hidden columns. Clean rows go to the
user's sink, edges and content to the store, and the commit file last. Everything here works on
data that Spark can send to another process, since under Spark Connect a batch is handled on the
server.
"""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.again.carried import edges_of, source_rows, sources_of
from clew.again.held import note
from clew.again.tables import covered, is_under
from clew.capture.kinds import SETS
from clew.capture.sets import content, storable
from clew.exceptions import StoreConflictError, StoreError
from clew.model import EdgesCome
from clew.plan.columns import ID_A, ID_B, is_hidden, named, quote
from clew.plan.mask import NOTHING, Mask, masking_with
from clew.run.sink import FileSink, NoSink
from clew.sources.arrivals import parse_offsets, topics_of
from clew.sources.state import files_of_batch
from clew.sources.topics import topic_ids
from clew.steps import reached
from clew.store.collect import put_rows
from clew.store.commit import Commit, commit, committed_rows, is_committed
from clew.store.draft import rows_in
from clew.store.layout import batch_file, batch_folder, edges_folder, rows_folder
from clew.store.packed import pack_folder
from clew.store.private import make_folder
from clew.store.said import read_commit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.again.recorded_streams import Time
    from clew.capture.kinds import CaptureKind
    from clew.run.sink import Sink
    from clew.sources.arrivals import Offsets
    from clew.sources.state import FileState

OnError = Literal["fail", "gap"]
_ROWS_PER_FILE = 500_000
_SMALL = 200_000
_FEW = 50_000
_ANY_NUMBER = 1 << 20
_log = logging.getLogger("clew")


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
        time: What says when a result is.
        skip_empty: Do not trouble the sink with a batch that has no rows.
        capture: How provenance is carried.
        stored: The user's columns, if rows come in the form in which the store keeps them.
        mask: What of the rows is not kept as it is.
        tables: What the tables of the query are made of.
        repeating: The sources of which different rows may have one id.
        times: The folders of files that are read again, and the column with the event time.
        addresses: How Kafka is reached, for topics that are read again.
        found: The state of the sources when the batch began.
        version: The version of the query.
    """

    root: str
    writer: str
    run: str
    sink: Sink
    keep_id: bool = False
    on_error: OnError = "fail"
    checkpoint: str | None = None
    time: Time | None = None
    skip_empty: bool = True
    capture: CaptureKind = SETS
    stored: T.StructType | None = None
    mask: Mask = NOTHING
    tables: Mapping[str, Any] = field(default_factory=dict)
    repeating: Collection[str] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    addresses: Sequence[Mapping[str, str]] = ()
    found: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Handle one batch; safe to call again for the same batch."""
        root = Path(self.root)
        with masking_with(self.mask):
            if not self._is_done(root, rows, batch):
                # Before anything is read: what changes from here on is not what is noted.
                replace(self, found=self._sources(batch)).handle(root, rows, batch)

    def handle(self, root: Path, rows: DataFrame, batch: int) -> None:
        """Handle a batch that was not handled before."""
        if self.stored is not None:
            if self._can_write(root, batch):
                self._handle_stored(root, rows, batch, self.stored)
                return
            rows = _as_users(rows, self.stored)
        with held(rows) as kept:
            self._handle(root, kept, batch)

    def _is_done(self, root: Path, rows: DataFrame, batch: int) -> bool:
        """Tell whether a batch was finished before, and Spark does not know."""
        if is_committed(root, self.writer, self.run, batch):
            self._refuse_other_input(root, batch)
            # Spark's own state still has to take the batch in, and does while rows are computed.
            run_through(rows)
            return True
        reached("batch begun", batch)
        return False

    def _refuse_other_input(self, root: Path, batch: int) -> None:
        """Refuse a batch whose number is taken by one that read something else.

        Raises:
            StoreConflictError: It would be skipped, and its rows would reach neither.
        """
        planned = read_offsets(self.checkpoint, batch)
        said = read_commit(batch_file(root, self.writer, self.run, batch))
        if planned is None or not said.get("offsets"):
            return
        kept = (said.get("sources") or {}).get("files")
        before = None if kept is None else {path: state[1] for path, state in kept.items()}
        now = {path: state.modified_ms for path, state in self._files(batch).items()}
        if list(planned.ends) == said["offsets"] and before in (None, now):
            return
        msg = (
            f"batch {batch} of `{self.writer}` is in the store and the sink already, with other "
            "input than the checkpoint now names for it: the checkpoint is an older one, e.g. "
            "restored from a backup. The query stops before anything is lost or written twice.\n\n"
            "Go on with the latest checkpoint; or restore store and sink to the same moment as the "
            'checkpoint; or begin anew with another checkpoint and `restart="overwrite"`.'
        )
        raise StoreConflictError(msg)

    def _sources(self, batch: int) -> dict[str, Any]:
        """Look at what a batch is about to read."""
        files = {path: self._with_span(path, each) for path, each in self._files(batch).items()}
        return {
            "files": {path: list(astuple(each)) for path, each in files.items()},
            "tables": note(self.tables),
            "topics": self._topics(batch),
        }

    def _topics(self, batch: int) -> dict[str, str]:
        """Ask which topics the batch reads: their names do not tell."""
        planned = read_offsets(self.checkpoint, batch) if self.addresses else None
        names = topics_of(planned.ends) if planned is not None else set()
        ids: dict[str, str] = {}
        for each in self.addresses:
            ids |= topic_ids(each, names)
        return ids

    def _with_span(self, path: str, state: FileState) -> FileState:
        """Note what a file covers: once it is gone, that tells which results it was behind."""
        column = next((c for folder, c in self.times.items() if is_under(path, folder)), None)
        return state if column is None else replace(state, span=covered(path, column))

    def _files(self, batch: int) -> dict[str, FileState]:
        return {} if self.checkpoint is None else files_of_batch(self.checkpoint, batch)

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

    def _can_write(self, root: Path, batch: int) -> bool:
        """Make the folder for a batch's rows; if that fails, the slower way says what to do."""
        try:
            make_folder(self._own_folder(root, batch))
        except OSError:
            return False
        return True

    def _own_folder(self, root: Path, batch: int) -> Path:
        return rows_folder(root, self.writer, batch_folder(self.run, batch), self.writer)

    def _handle_stored(self, root: Path, rows: DataFrame, batch: int, users: T.StructType) -> None:
        """Compute the batch straight into the store, and hand the sink what was stored.

        Rows with a few numbers beside them need no cache: one pass writes them, in the form that
        the store has, and the clean rows are taken from there.
        """
        folder = self._own_folder(root, batch)
        self._compute(root, rows, batch, folder)
        files = sorted(folder.glob("*.parquet"))
        count = rows_in(folder)
        reached("batch computed", batch)
        if count or not self.skip_empty:
            if isinstance(self.sink, FileSink) and self.sink.takes_files and count <= _SMALL:
                self.sink.write_files(files, users, self.run, batch, keep_id=self.keep_id)
            elif type(self.sink) is not NoSink:
                stored = rows.sparkSession.read.schema(_stored_schema(users)).parquet(str(folder))
                clean = clean_rows(_as_users(stored, users), keep_id=self.keep_id)
                self.sink.write(clean, self.run, batch)
        reached("sink written", batch)
        names = [str(p.relative_to(root)) for p in files] if count else []
        self._commit(root, batch, count, None, names)
        reached("batch committed", batch)
        if count:
            self.sink.done(self.run, batch)
        reached("batch done", batch)

    def _compute(self, root: Path, rows: DataFrame, batch: int, folder: Path) -> None:
        """Write a batch, through the driver if the batch before it had few rows."""
        before = committed_rows(root, self.writer, self.run, batch - 1)
        put_rows(rows, folder, few=before is not None and before <= _FEW)

    def _commit(
        self, root: Path, batch: int, count: int | None, edges: int | None, files: list[str]
    ) -> None:
        reached("provenance written", batch)
        commit(root, replace(self._said(batch, count), edges=edges, files=files))

    def _said(self, batch: int, count: int | None) -> Commit:
        """Say what a batch was made of."""
        planned = read_offsets(self.checkpoint, batch)
        return Commit(
            writer=self.writer,
            run=self.run,
            batch=batch,
            watermark=_iso(planned.watermark_ms) if planned and planned.watermark_ms > 0 else None,
            sink_rows=count,
            capture=self.capture.name,
            watermark_ms=planned.watermark_ms if planned else 0,
            offsets=list(planned.ends) if planned else [],
            sources=dict(self.found),
            version=self.version,
        )

    def _record(self, root: Path, rows: DataFrame, batch: int, count: int) -> None:
        try:
            files, edges = self._put(root, rows, batch, count) if count else ([], 0)
            self._commit(root, batch, count, edges, files)
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
            why = kind if self.mask else why
            _log.warning("provenance of batch %d of %s is missing: %s", batch, self.writer, kind)
            self._record_gap(root, replace(self._said(batch, count), gap=why))

    def _record_gap(self, root: Path, missing: Commit) -> None:
        try:
            commit(root, missing)
        except OSError as error:
            # Not even the gap can be noted; a number missing between two batches is one, too.
            _log.warning("the gap could not be noted: %s", error.strerror)

    def _put(
        self, root: Path, rows: DataFrame, batch: int, count: int
    ) -> tuple[list[str], int | None]:
        if self.capture.edges_come is not EdgesCome.WITH_THE_BATCH:
            own = self._own_folder(root, batch)
            _put(sink_rows(rows, self.time, hidden=True), own, count)
            return [str(p.relative_to(root)) for p in sorted(own.glob("*.parquet"))], None
        streams = sources_of(rows)
        name = batch_folder(self.run, batch)
        edges_to = edges_folder(root, self.writer, name)
        edges = _put(edges_of(rows, self.writer, streams), edges_to, count)
        reached("edges written", batch)
        pack_folder(edges_to)
        reached("edges packed", batch)
        outs = [edges_to]
        for stream, frame in self._contents(rows, streams):
            out = rows_folder(root, self.writer, name, stream)
            _put(frame, out, count)
            outs.append(out)
            reached("rows written", batch)
        return [
            str(p.relative_to(root)) for out in outs for p in sorted(out.glob("*.parquet"))
        ], edges

    def _contents(self, rows: DataFrame, streams: list[str]) -> Iterator[tuple[str, DataFrame]]:
        yield self.writer, sink_rows(rows, self.time)
        for stream in streams:
            # A stream that feeds this query and is another's sink has its content there already,
            # but that store may be another one: keep it here as well.
            yield stream, source_rows(rows, stream, apart=stream in self.repeating)


def run_through(rows: DataFrame) -> None:
    """Compute rows and keep none."""
    rows.write.format("noop").mode("overwrite").save()


@contextmanager
def held(rows: DataFrame) -> Iterator[DataFrame]:
    """Keep the rows of a batch while they are used more than once."""
    # Spark 4.3 fails to cache rows whose sort order names a column that they no longer have
    # (a join by name); a coalesce, here one that changes nothing, forgets the order.
    kept = rows.coalesce(_ANY_NUMBER).persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _put(frame: DataFrame, folder: Path, count: int) -> int:
    files = max(1, math.ceil(count / _ROWS_PER_FILE))
    put_rows(frame.coalesce(files), folder, few=False)
    return rows_in(folder)


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


def sink_rows(rows: DataFrame, time: Time | None, *, hidden: bool = False) -> DataFrame:
    """Return the content of a batch's own rows, for the store; with what they carry, if asked."""
    packed, _ = content([(f.name, f.dataType) for f in rows.schema.fields if not is_hidden(f.name)])
    own = (ID_A, ID_B)
    return rows.selectExpr(
        f"{ID_A} AS a",
        f"{ID_B} AS b",
        "CAST(NULL AS STRING) AS segment",
        f"CAST({time.sql if time else 'NULL'} AS TIMESTAMP) AS `time`",
        f"{packed} AS `row`",
        *[quote(c) for c in rows.columns if hidden and is_hidden(c) and c not in own],
    )


def is_kept_whole(users: T.StructType) -> bool:
    """Tell whether the store keeps every column with its own type: rows can then be read back."""
    return all(storable(f.name, f.dataType)[1] == f.dataType for f in users.fields)


def _stored_schema(users: T.StructType) -> T.StructType:
    return T.StructType().add("a", T.LongType()).add("b", T.LongType()).add("row", users)


def _as_users(stored: DataFrame, users: T.StructType) -> DataFrame:
    """Turn rows in the store's form into rows with hidden columns again."""
    columns = [F.col("row").getField(name).alias(name) for name in users.names]
    hidden = [named(c) for c in stored.columns if is_hidden(c)]
    return stored.select(*columns, F.col("a").alias(ID_A), F.col("b").alias(ID_B), *hidden)


def read_offsets(checkpoint: str | None, batch: int) -> Offsets | None:
    """Read what Spark planned for a batch from the query's own checkpoint."""
    if checkpoint is None:
        return None
    try:
        return parse_offsets((Path(checkpoint) / "offsets" / str(batch)).read_text())
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _iso(millis: int) -> str:
    import datetime as dt

    at = dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(milliseconds=millis)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
