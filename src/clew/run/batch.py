"""Write a traced batch frame: Spark's `write`, with a place for provenance.

The result is computed once, with its annotation; the user's sink and the provenance are both made
from that. So what is written and what is traced are the same rows, even if the query would not give
the same rows twice.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew.again.carried import repeating
from clew.again.choose import choose
from clew.again.describe import check_name, describe_streams
from clew.again.held import note, tables_of
from clew.again.known import Known, remember
from clew.again.record import Recorder
from clew.again.recorded_streams import describe_recorded, recorded_streams
from clew.again.stage import Stage
from clew.again.which_pipeline import Versions
from clew.exceptions import WriterError
from clew.model import EdgesCome
from clew.plan.columns import refuse_lookalike_fields, sole
from clew.plan.mask import masking_with
from clew.plan.node import interpret, with_secret
from clew.run.masking import check_mask, mask_described
from clew.run.place import Place, check_id_column, check_settings, place
from clew.run.sink import FunctionSink
from clew.run.split import BatchJob, clean_rows
from clew.run.when import time_of_results
from clew.steps import reached
from clew.store.commit import (
    Commit,
    commit,
    forget_writer,
    make_store,
    planned_secret,
    put_stream,
    store_secret,
)
from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, DataFrameWriter

    from clew.again.recorded_streams import Content
    from clew.capture.kinds import CaptureName
    from clew.plan.node import Node


_NOT_FINISHED = "the result was being overwritten, and that did not come to its end"


@dataclass(frozen=True, slots=True)
class TracedWriter:
    """Spark's `DataFrameWriter`, with provenance."""

    _node: Node
    _format: str | None = None
    _options: dict[str, Any] = field(default_factory=dict)
    _mode: str | None = None
    _partition_by: tuple[str, ...] = ()
    _place: Place | None = None
    _name: str | None = None

    def provenance(
        self,
        path: str,
        *,
        name: str | None = None,
        keep_id: bool = False,
        event_time: str | None = None,
        capture: CaptureName = "auto",
        assertions: str | Sequence[str] | None = None,
        content: Content = "first",
        mask: Iterable[str] | Mapping[str, str] | None = None,
        mask_literals: bool = False,
    ) -> TracedWriter:
        """Name the store that takes the provenance of this result.

        Args:
            path: A folder; it is made if it is not there.
            name: The stream of the results; by default the last part of the path or table written.
            keep_id: Add each row's id to the sink as a column `clew_id`.
            event_time: The result's column that says when it happened; if left out, the end of its
                window, if it has one.
            capture: How provenance is carried, as for streams.
            assertions: Also record the keys of the rows of these streams, or of `"all"` steps.
            content: Of which recorded streams the rows themselves are kept, as for streams.
            mask: Columns that the store does not keep as they are, as for streams.
            mask_literals: Keep no literals of expressions, as for streams.
        """
        settings = place(
            path,
            keep_id=keep_id,
            restart="append",
            event_time=event_time,
            capture=capture,
            assertions=assertions,
            content=content,
            mask=mask,
            mask_literals=mask_literals,
        )
        kept = None if settings.is_off else settings
        return replace(self, _place=kept, _name=name or self._name)

    def format(self, source: str) -> TracedWriter:
        """Choose the format of the sink."""
        return replace(self, _format=source)

    def option(self, key: str, value: object) -> TracedWriter:
        """Set an option of the sink."""
        return replace(self, _options={**self._options, key: value})

    def options(self, **options: object) -> TracedWriter:
        """Set several options."""
        return replace(self, _options={**self._options, **options})

    def mode(self, saveMode: str | None) -> TracedWriter:
        """Choose what happens to rows that are there: `append`, `overwrite`, `ignore`, `error`."""
        # In any case, as Spark takes it: what is compared with it here must see the same.
        return replace(self, _mode=saveMode and saveMode.lower())

    def partitionBy(self, *cols: str | list[str]) -> TracedWriter:
        """Lay files out by the values of columns."""
        names = [name for c in cols for name in ([c] if isinstance(c, str) else c)]
        return replace(self, _partition_by=tuple(names))

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: object,
    ) -> None:
        """Write the result to a path or another sink."""
        writer = replace(self, _options={**self._options, **options})
        writer = writer.format(format) if format else writer
        writer = writer.mode(mode) if mode else writer
        writer = writer.partitionBy(partitionBy) if partitionBy else writer
        target = path or writer._options.get("path")
        writer._run(lambda w: w.save(path), str(target) if target else None)

    def parquet(self, path: str, mode: str | None = None, **options: Any) -> None:
        """Write Parquet files."""
        self.save(path, "parquet", mode, **options)

    def orc(self, path: str, mode: str | None = None, **options: Any) -> None:
        """Write ORC files."""
        self.save(path, "orc", mode, **options)

    def json(self, path: str, mode: str | None = None, **options: Any) -> None:
        """Write JSON files."""
        self.save(path, "json", mode, **options)

    def csv(self, path: str, mode: str | None = None, **options: Any) -> None:
        """Write CSV files."""
        self.save(path, "csv", mode, **options)

    def text(self, path: str, mode: str | None = None, **options: Any) -> None:
        """Write text files."""
        self.save(path, "text", mode, **options)

    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: str | list[str] | None = None,
        **options: object,
    ) -> None:
        """Write the result to a table of the catalog."""
        writer = replace(self, _options={**self._options, **options})
        writer = writer.format(format) if format else writer
        writer = writer.mode(mode) if mode else writer
        writer = writer.partitionBy(partitionBy) if partitionBy else writer
        writer._run(lambda w: w.saveAsTable(name), name)

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Insert the result into a table that is there, by position."""
        mode = {True: "overwrite", False: "append", None: self._mode}[overwrite]
        replace(self, _mode=mode)._run(lambda w: w.insertInto(tableName), tableName)

    def _writer(self, df: DataFrame) -> DataFrameWriter:
        writer = df.write.options(**self._options)
        writer = writer.format(self._format) if self._format else writer
        writer = writer.mode(self._mode) if self._mode else writer
        return writer.partitionBy(*self._partition_by) if self._partition_by else writer

    def _run(self, write: Callable[[DataFrameWriter], None], target: str | None) -> None:
        if self._node.plain.df.isStreaming:
            msg = "the frame is a stream.\n\nUse `.writeStream`."
            raise WriterError(msg)
        if self._place is None:
            write(self._writer(clean_rows(self._node.plain.df, keep_id=False)))
            return
        self._traced(self._place, self._stream_name(target), write)

    def _stream_name(self, target: str | None) -> str:
        name = self._name or (target or "").rstrip("/").rsplit("/", 1)[-1].rsplit(".", 1)[-1]
        if not name:
            msg = 'the result needs a name.\n\nWrite `.provenance(path, name="name")`.'
            raise WriterError(msg)
        return name

    def _traced(self, settings: Place, name: str, write: Callable[[DataFrameWriter], None]) -> None:
        sole(self._node.columns, "write", self._node.plain.df)
        refuse_lookalike_fields(self._node.schema, "the result")
        if self._mode == "ignore":
            msg = (
                "mode `ignore` may write nothing, and then there is nothing to trace.\n\n"
                "Check first whether the target is there, or use `append` or `overwrite`."
            )
            raise WriterError(msg)
        check_id_column(self._node, settings)
        check_settings(self._node)
        check_name(self._node, name)
        root = settings.root
        assert root is not None
        secret = planned_secret(root)
        node = with_secret(self._node, secret, settings.mask)
        choice = choose(node, settings.capture)
        check_mask(settings.mask, node, choice.kind, settings.event_time)
        which = settings.assertions
        said = (which, settings.event_time, settings.content)
        streams = recorded_streams(node, name, *said) if which else []
        rows = interpret(node, choice.kind.moves())
        make_store(root, __version__, secret)
        if store_secret(root) != secret:
            self._traced(settings, name, write)  # another process has just made the store
            return
        run = uuid.uuid4().hex[:8]
        tables = tables_of(node, again=choice.kind.reads_again)
        found = {"tables": note(tables)}
        # Computed once and cut off from its plan: nothing can compute it again, with other rows.
        copy = rows.df.drop(*rows.references).localCheckpoint(eager=True)

        def write_all(clean: DataFrame, _: int) -> None:
            if self._mode == "overwrite":
                # Before the write: one that is cut off leaves a gap, not the old rows' provenance.
                commit(root, Commit(name, run, 0, gap=_NOT_FINISHED))
                reached("overwriting noted", 0)
                forget_writer(root, name, but=run)
                reached("old provenance removed", 0)
            write(self._writer(clean))

        described = describe_streams(self._node, name, choice, run)
        time = time_of_results(self._node.schema, settings.event_time, settings.mask)
        described[-1]["by_window"] = time is not None and time.is_window
        described[-1]["assertions"] = describe_recorded(streams, settings.content)
        mask_described(described, settings.mask)
        for stream in described:
            put_stream(root, stream)
        version = described[-1]["version"]
        job = BatchJob(
            root=str(root),
            writer=name,
            run=run,
            sink=FunctionSink(write_all),
            keep_id=settings.keep_id,
            time=time,
            skip_empty=False,
            capture=choice.kind,
            mask=settings.mask.keyed(secret),
            repeating=repeating(node),
            found=found,
            version=version,
        )
        with masking_with(job.mask):
            job.handle(root, copy, 0)
        if streams:
            Recorder(root, name, run, streams, settings.content, None).advance()
        remember(root, name, Known(node, rows.annotation, version))
        if choice.kind.edges_come is EdgesCome.BEHIND_IT:
            Stage(root, name, run, node, None, versions=Versions(root, name)).unfold()
