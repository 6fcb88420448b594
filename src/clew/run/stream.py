"""Write a traced stream: Spark's `writeStream`, with a place for provenance.

Without `.provenance(...)` the query is the user's own and runs as it would without clew. With it,
batches go through one function that writes clean rows, provenance and the commit, in that order.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from clew.again.carried import repeating
from clew.again.choose import choose
from clew.again.describe import carried_in_state, check_name, describe_streams
from clew.again.held import tables_of
from clew.again.known import Known, remember
from clew.again.record import Recorder
from clew.again.recorded_streams import describe_recorded, recorded_streams
from clew.again.stage import Stage
from clew.again.tables import addresses_of, times_of
from clew.again.which_pipeline import Versions
from clew.exceptions import StoreConflictError, WriterError
from clew.model import EdgesCome
from clew.plan.columns import is_hidden, refuse_lookalike_fields, sole
from clew.plan.node import interpret, with_secret
from clew.run.mark import bind, check_bound, own_secret, run_of
from clew.run.masking import check_mask, mask_described
from clew.run.modes import DeliverJob, PassJob, with_property_values
from clew.run.place import Place, check_id_column, check_settings, place
from clew.run.point import start_points
from clew.run.query import Follower, TracedQuery
from clew.run.sink import (
    FILE_FORMATS,
    ConsoleSink,
    FileSink,
    FormatSink,
    FunctionSink,
    NoSink,
    Sink,
    TableSink,
)
from clew.run.split import BatchJob, clean_rows, is_kept_whole, sink_rows
from clew.run.when import time_of_results
from clew.store.commit import (
    forget_streams,
    forget_writer,
    has_batches,
    make_store,
    planned_secret,
    put_stream,
    read_stream,
    store_secret,
)
from clew.store.layout import header_file, store_root
from clew.store.versions import last_version, said_of
from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from clew.again.choose import Choice
    from clew.again.recorded_streams import Content, Recorded, Time
    from clew.capture.kinds import CaptureName
    from clew.plan.node import Node
    from clew.run.modes import Mode
    from clew.run.query import Work
    from clew.run.split import OnError
    from clew.run.subscribe import Receiver

_log = logging.getLogger("clew")
_NOTES = "clew"
"""The folder in the checkpoint of a query without a store that says which batches are done."""
_UNFOLD_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class TracedStreamWriter:
    """Spark's `DataStreamWriter`, with provenance.

    Each method returns a changed copy, so a half-configured writer can be shared.
    """

    _node: Node
    _format: str | None = None
    _options: dict[str, Any] = field(default_factory=dict)
    _partition_by: tuple[str, ...] = ()
    _trigger: dict[str, Any] = field(default_factory=dict)
    _name: str | None = None
    _mode: str = "append"
    _function: Callable[[DataFrame, int], None] | None = None
    _place: Place | None = None

    def provenance(
        self,
        path: str | None = None,
        *,
        keep_id: bool = False,
        on_error: OnError = "fail",
        restart: str = "refuse",
        event_time: str | None = None,
        capture: CaptureName = "auto",
        unfold: str = "here",
        mode: Mode = "store",
        assertions: str | Sequence[str] | None = None,
        content: Content = "first",
        to: Receiver | None = None,
        where: Column | str | None = None,
        mask: Iterable[str] | Mapping[str, str] | None = None,
        mask_literals: bool = False,
    ) -> TracedStreamWriter:
        """Say what becomes of the provenance of this query, and name the store that takes it.

        Args:
            path: A folder; it is made if it is not there. Several queries may share it.
            keep_id: Add each row's id to the sink as a column `clew_id`, so that another traced
                query can read it and answers go on through both.
            on_error: `"fail"` stops the query when provenance cannot be written; `"gap"` goes on,
                and answers name the gap.
            restart: What to do when the store holds this stream from another checkpoint:
                `"refuse"`, `"append"` (answers are about both) or `"overwrite"`.
            event_time: The result's column that says when it happened, for ordering answers; if
                left out, the end of its window, if it has one.
            capture: How provenance is carried: `"pointers"`, `"intervals"`, `"keys"`, `"sets"`,
                `"off"`, or `"auto"`, which chooses by the query and its sources and notes why.
            unfold: With pointers, `"here"` turns them into edges behind the query, in this
                process; `"later"` leaves that to `clew unfold`.
            mode: `"store"` keeps provenance in the store; `"on-the-fly"` hands each result with its
                properties to `to` and keeps nothing; `"receive"` carries provenance and lets it go.
            assertions: Also record the event keys of the rows of these streams, or of `"all"`
                steps, behind the query. The capture is then `"keys"` unless another is named.
            content: With assertions, keep the rows themselves of sources only (`"first"`), or of
                all recorded streams and of the results (`"all"`).
            to: In mode `"on-the-fly"`: a function that is called with each result, the name of a
                table, or options of Spark's Kafka sink.
            where: Deliver only results that meet a condition over their columns and properties.
            mask: Columns that the store does not keep as they are, in no frame of the query; each
                with `"drop"` (what a list means), `"hash"` or `"redact"`.
            mask_literals: Keep no literals of expressions; the pipeline is then not stored, and
                has to be handed in where something is computed again.
        """
        settings = place(
            path,
            keep_id=keep_id,
            on_error=on_error,
            restart=restart,
            event_time=event_time,
            capture=capture,
            unfold=unfold,
            mode=mode,
            assertions=assertions,
            content=content,
            to=to,
            where=where,
            mask=mask,
            mask_literals=mask_literals,
        )
        return replace(self, _place=None if settings.is_off else settings)

    def format(self, source: str) -> TracedStreamWriter:
        """Choose the format of the sink."""
        return replace(self, _format=source)

    def option(self, key: str, value: object) -> TracedStreamWriter:
        """Set an option of the sink, or `checkpointLocation`."""
        return replace(self, _options={**self._options, key: value})

    def options(self, **options: object) -> TracedStreamWriter:
        """Set several options."""
        return replace(self, _options={**self._options, **options})

    def outputMode(self, outputMode: str) -> TracedStreamWriter:
        """Choose the output mode; with provenance it is `append`."""
        return replace(self, _mode=outputMode)

    def partitionBy(self, *cols: str | list[str]) -> TracedStreamWriter:
        """Lay files out by the values of columns."""
        names = [name for c in cols for name in ([c] if isinstance(c, str) else c)]
        return replace(self, _partition_by=tuple(names))

    def queryName(self, queryName: str) -> TracedStreamWriter:
        """Name the query, and with it the stream of its results."""
        return replace(self, _name=queryName)

    def trigger(self, **trigger: object) -> TracedStreamWriter:
        """Choose when batches run, e.g. `availableNow=True`."""
        return replace(self, _trigger=trigger)

    def foreachBatch(self, func: Callable[[DataFrame, int], None]) -> TracedStreamWriter:
        """Hand each batch's clean rows to a function of your own."""
        return replace(self, _function=func)

    def foreach(self, f: object) -> TracedStreamWriter:
        """Refused: rows are written by batch.

        Raises:
            WriterError: Always; the message says what to write instead.
        """
        msg = "`foreach` has no batches to commit.\n\nUse `.foreachBatch(function)`."
        raise WriterError(msg)

    def clusterBy(self, *cols: str) -> TracedStreamWriter:
        """Refused: clustering belongs to the table.

        Raises:
            WriterError: Always; the message says what to write instead.
        """
        msg = "`clusterBy` is not available here.\n\nCreate the table with its clustering first."
        raise WriterError(msg)

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: str | list[str] | None = None,
        queryName: str | None = None,
        **options: object,
    ) -> StreamingQuery:
        """Start the query.

        Returns:
            Spark's own query handle.

        Raises:
            WriterError: The settings do not fit together; nothing was written.
        """
        writer = self._with(path, format, outputMode, partitionBy, queryName, options)
        return writer._run(writer._sink())

    def toTable(self, tableName: str, **options: object) -> StreamingQuery:
        """Start the query, writing to a table of the catalog."""
        writer = replace(self, _options={**self._options, **options})
        if writer._place is None:
            started: StreamingQuery = writer._native().toTable(tableName)
            return started
        kept = writer._sink_options()
        return writer._run(TableSink(tableName, writer._format, kept, writer._partition_by))

    def _with(
        self,
        path: str | None,
        form: str | None,
        mode: str | None,
        partition: str | list[str] | None,
        name: str | None,
        options: dict[str, object],
    ) -> TracedStreamWriter:
        out = replace(self, _options={**self._options, **options})
        out = out.option("path", path) if path else out
        out = out.format(form) if form else out
        out = out.outputMode(mode) if mode else out
        out = out.partitionBy(partition) if partition else out
        return out.queryName(name) if name else out

    def _native(self) -> Any:
        """Spark's own writer over the user's own query."""
        writer: Any = _without_hidden(self._node.plain.df).writeStream.options(**self._options)
        writer = writer.outputMode(self._mode)
        writer = writer.format(self._format) if self._format else writer
        writer = writer.queryName(self._name) if self._name else writer
        writer = writer.partitionBy(*self._partition_by) if self._partition_by else writer
        writer = writer.trigger(**self._trigger) if self._trigger else writer
        return writer.foreachBatch(self._function) if self._function else writer

    def _run(self, sink: Sink) -> StreamingQuery:
        settings = self._place
        if settings is None:
            query: StreamingQuery = self._native().start()
            return query
        self._check()
        if settings.root is None:
            return self._run_unstored(settings, sink)
        return self._run_stored(settings, settings.root, sink)

    def _run_unstored(self, settings: Place, sink: Sink) -> StreamingQuery:
        """Start a query that carries provenance and stores nothing."""
        name = self._name
        assert name is not None
        checkpoint = self._checkpoint(None)
        if settings.mode == "on-the-fly":
            df = with_property_values(self._node)
        else:
            node = with_secret(self._node, own_secret(checkpoint))
            rows = interpret(node, choose(node, settings.capture).kind.moves())
            df = rows.df.drop(*rows.references)
        sink.prepare(clean_rows(df, keep_id=settings.keep_id))
        said: dict[str, Any] = {
            "root": str(checkpoint / _NOTES),
            "writer": name,
            "run": run_of(checkpoint),
            "sink": sink,
            "keep_id": settings.keep_id,
        }
        job = PassJob(**said)
        if settings.to is not None:
            job = DeliverJob(**said, to=settings.to, where=settings.where)
        return self._start(df, job, checkpoint)

    def _run_stored(self, settings: Place, root: Path, sink: Sink) -> StreamingQuery:
        name = self._name
        assert name is not None
        check_name(self._node, name)
        secret = planned_secret(root)
        node = with_secret(self._node, secret, settings.mask)
        streams = self._recorded(settings, node, name)
        choice = choose(node, settings.capture)
        check_mask(settings.mask, node, choice.kind, settings.event_time)
        _log.info("%s: capture %s, because %s", name, choice.capture, choice.why)
        keeps_rows = not streams or settings.content == "all"
        rows = interpret(node, choice.kind.moves())
        df = rows.df.drop(*rows.references)
        if not keeps_rows and not settings.keep_id:
            # Keys are computed behind the query, so its rows need not carry any.
            df = _without_hidden(self._node.plain.df)
        sink.prepare(clean_rows(df, keep_id=settings.keep_id))
        users, time = self._results(settings)
        is_stored = (
            keeps_rows
            and choice.kind.fits_one_pass
            and is_kept_whole(users)
            and not settings.mask.hides(users.names)
        )
        if is_stored:
            df = sink_rows(df, time, hidden=True)
        is_new = not header_file(root).exists()
        make_store(root, __version__, secret)
        if store_secret(root) != secret:
            return self._run_stored(settings, root, sink)  # another process has just made it
        checkpoint = self._checkpoint(root)
        check_bound(checkpoint, root, secret)
        run = run_of(checkpoint)
        _admit(settings.restart, root, name, run)
        described = self._described(settings, node, choice, checkpoint, streams)
        _refuse_mixed_keys(root, described[-1])
        _refuse_other_state(root, run, described[-1])
        version = described[-1]["version"]
        unknown = [s["name"] for s in described if read_stream(root, s["name"]) is None]
        for stream in described:
            put_stream(root, stream)
        kind = BatchJob if keeps_rows else PassJob
        job = kind(
            root=str(root),
            writer=name,
            run=run,
            sink=sink,
            keep_id=settings.keep_id,
            on_error=settings.on_error,
            checkpoint=str(checkpoint),
            time=time,
            capture=choice.kind,
            repeating=repeating(node),
            stored=users if is_stored else None,
            mask=settings.mask.keyed(secret),
            tables=tables_of(node, again=choice.kind.reads_again or bool(streams)),
            addresses=addresses_of(node) if choice.kind.reads_again else [],
            times=times_of(node) if choice.kind.reads_again else {},
            version=version,
        )
        remember(root, name, Known(node, rows.annotation, version))
        try:
            started = self._start(df, job, checkpoint)
        except Exception:
            # Spark refuses some queries only now, e.g. an aggregate without a watermark.
            forget_streams(root, unknown, whole=is_new)
            raise
        bind(checkpoint, secret)
        recorder = None
        if streams:
            recorder = Recorder(root, name, run, streams, settings.content, str(checkpoint))
        sides: Sequence[StreamingQuery] = ()
        if choice.kind.keeps_points:
            sides = start_points(node, root, name, checkpoint, self._trigger)
        is_behind = choice.kind.edges_come is EdgesCome.BEHIND_IT and settings.unfold == "here"
        at = (root, name, run, node, str(checkpoint))
        stage = Stage(*at, versions=Versions(root, name)) if is_behind else None
        return _followed(started, sides, stage, recorder)

    def _results(self, settings: Place) -> tuple[StructType, Time | None]:
        """Return what results are made of, and which of it says when they are."""
        users = self._node.schema
        return users, time_of_results(users, settings.event_time, settings.mask)

    def _described(
        self,
        settings: Place,
        node: Node,
        choice: Choice,
        checkpoint: Path,
        streams: Sequence[Recorded],
    ) -> list[dict[str, Any]]:
        at = (run_of(checkpoint), str(checkpoint))
        described = describe_streams(self._node, str(self._name), choice, *at)
        if choice.kind.carries_sources:
            described[-1]["state"]["carried"] = carried_in_state(node)
        _, time = self._results(settings)
        described[-1]["by_window"] = time is not None and time.is_window
        described[-1]["assertions"] = describe_recorded(streams, settings.content)
        mask_described(described, settings.mask)
        return described

    def _recorded(self, settings: Place, node: Node, name: str) -> list[Recorded]:
        if not settings.assertions:
            return []
        which, time = settings.assertions, settings.event_time
        return recorded_streams(node, name, which, time, settings.content)

    def _start(self, df: DataFrame, job: BatchJob, checkpoint: Path) -> StreamingQuery:
        writer: Any = df.writeStream.queryName(str(self._name)).outputMode("append")
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(**self._trigger) if self._trigger else writer
        started: StreamingQuery = writer.foreachBatch(job.__call__).start()
        return started

    def _check(self) -> None:
        if self._name is None:
            msg = (
                "a traced query needs a name, by which its results are asked for.\n\n"
                'Add `.queryName("name")` before `.start()`.'
            )
            raise WriterError(msg)
        if self._mode.lower() != "append":
            msg = (
                f"provenance is for output mode `append`; got `{self._mode}`. In that mode "
                "Spark writes a row again each time it changes, so a row has no final answer.\n\n"
                "Leave `outputMode` out and give the aggregate a watermark and a window: "
                '`.withWatermark("ts", "1 minute").groupBy(F.window("ts", "5 minutes"))`.'
            )
            raise WriterError(msg)
        if not self._node.plain.df.isStreaming:
            msg = "the frame is not a stream.\n\nUse `.write` for a batch frame."
            raise WriterError(msg)
        sole(self._node.columns, "writeStream", self._node.plain.df)
        refuse_lookalike_fields(self._node.schema, "the result")
        if self._place:
            check_id_column(self._node, self._place)
            check_settings(self._node)
            if self._place.keep_id and self._place.mode == "on-the-fly":
                msg = '`keep_id` is for modes that carry ids; "on-the-fly" carries properties.'
                raise WriterError(msg)
        time = self._place.event_time if self._place else None
        if time is not None and time not in self._node.columns:
            msg = f"`event_time` names `{time}`, which the result does not have."
            raise WriterError(msg)

    def _checkpoint(self, root: Path | None) -> Path:
        given = self._options.get("checkpointLocation")
        if given is None:
            spark = self._node.plain.df.sparkSession
            base = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
            if base is None and root is None:
                msg = (
                    "a query without a store needs a place for its checkpoint.\n\n"
                    'Add `.option("checkpointLocation", "path")`.'
                )
                raise WriterError(msg)
            given = f"{base}/{self._name}" if base else f"{root}/checkpoints/{self._name}"
        return store_root(str(given))

    def _sink_options(self) -> dict[str, Any]:
        own = {"checkpointlocation", "path"}
        return {k: v for k, v in self._options.items() if k.lower() not in own}

    def _sink(self) -> Sink:
        if self._place is None or self._function is not None:
            return FunctionSink(self._function) if self._function else NoSink()
        options = self._sink_options()
        path = self._options.get("path")
        form = (self._format or ("parquet" if path else "noop")).lower()
        if form in FILE_FORMATS:
            if path is None:
                msg = f'format `{form}` needs a path.\n\nAdd `.option("path", "out/")`.'
                raise WriterError(msg)
            return FileSink(str(path), form, options, self._partition_by)
        if form == "console":
            truncate = str(options.get("truncate", "true")).lower() == "true"
            return ConsoleSink(int(options.get("numRows", 20)), truncate)
        if form == "noop":
            return NoSink()
        if form == "memory":
            msg = (
                "the `memory` sink cannot take rows from a traced query.\n\nLeave the format out "
                "and read the results from the store: "
                f'`clew.open("{self._place.root or "prov/"}").rows("{self._name}")`.'
            )
            raise WriterError(msg)
        kept = {**options, "path": path} if path else options
        return FormatSink(form, kept)


def _followed(
    started: StreamingQuery, sides: Sequence[StreamingQuery], *work: Work | None
) -> StreamingQuery:
    """Let work follow a query, if there is any."""
    due = [each for each in work if each is not None]
    if not due:
        return started
    running = [started, *sides]
    follower = Follower(due, lambda: any(q.isActive for q in running), _UNFOLD_EVERY)
    follower.start()
    return cast("StreamingQuery", TracedQuery(started, follower, sides))


def _without_hidden(df: DataFrame) -> DataFrame:
    hidden = [name for name in df.columns if is_hidden(name)]
    return df.drop(*hidden) if hidden else df


def _refuse_mixed_keys(root: Path, now: Mapping[str, Any]) -> None:
    """Refuse to record keys of a query that was changed, among those of the one it was.

    Steps go by their numbers, so keys of two steps would be recorded under one name.
    """
    name = now["name"]
    before = read_stream(root, name)
    if before is None or not before.get("version") or not has_batches(root, name):
        return
    if not (before.get("assertions") or now["assertions"]) or before["version"] == now["version"]:
        return
    if _does(before) == _does(now):
        return
    msg = (
        f"the query that fills `{name}` is not the one that the store holds batches of, and keys "
        "of its steps are recorded: keys of two versions would be mixed under the same names."
        "\n\nGive the new one another name and checkpoint; or begin anew with another checkpoint "
        'and `restart="overwrite"`.'
    )
    raise StoreConflictError(msg)


def _refuse_other_state(root: Path, run: str, now: Mapping[str, Any]) -> None:
    """Refuse to go on with a state in which source rows have other columns than they have now.

    Their values would be taken for those of other columns, or of none.
    """
    name = now["name"]
    last = last_version(root, name, run)
    before = None if last is None else said_of(read_stream(root, name) or {}, last)
    kept = ((before or {}).get("state") or {}).get("carried")
    if None in (kept, now["state"].get("carried")) or kept == now["state"]["carried"]:
        return
    msg = (
        f"the query that fills `{name}` goes on with a checkpoint in which Spark's state holds "
        "source rows with other columns than those that it reads, names or masks now: their values "
        "would be taken for those of other columns.\n\nStart it with the columns that it had, in "
        "their order, and the same `mask`; or give it a new checkpoint and "
        '`.provenance(path, restart="append")`.'
    )
    raise StoreConflictError(msg)


def _does(said: Mapping[str, Any]) -> list[Any]:
    """Return what a query does with its rows, as far as its steps say."""
    pipeline = said.get("pipeline") or {}
    return [said.get("shape"), said.get("settings"), pipeline.get("steps")]


def _admit(restart: str, root: Path, name: str, run: str) -> None:
    """Decide what becomes of provenance that another checkpoint left under the same name."""
    known = read_stream(root, name)
    runs = [] if known is None or known["kind"] != "sink" else [r["run"] for r in known["runs"]]
    if not runs or run in runs or restart == "append":
        return
    if restart == "overwrite":
        forget_writer(root, name)
        return
    msg = (
        f"the store `{root}` holds stream `{name}` from another checkpoint, so its rows "
        "would be mixed with new ones.\n\nUse the checkpoint that belongs to it; or write "
        '`.provenance(path, restart="overwrite")` to start again, or `restart="append"` to keep '
        "both."
    )
    raise StoreConflictError(msg)
