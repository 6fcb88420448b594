"""Start a reduction: a streaming query, and what decides that its stream has ended.

Batch jobs end: by an end event, or because nothing comes for a while. What is still open then is
let go of, in a commit of its own after the last batch. Endless streams are never closed; there the
watermark decides what is final.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.prov.asked_for import Settings
from clew.prov.lines import check, lines_of
from clew.prov.one_batch import Batches
from clew.prov.remembered import State
from clew.store.commit import make_store
from clew.store.layout import store_root
from clew.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """What a reduction has done so far.

    Attributes:
        statements: Statements of derivation that were read.
        filtered: Statements that were left out: other relations, and attributes.
        foreign: Lines of other jobs.
        dead: Lines that could not be read.
        late: Statements that came after the watermark; they are reduced as far as possible.
        bytes: How much text was read.
        edges_local: Edges that local reducers handed on.
        edges_out: Reduced edges in the store.
        edges_open: Edges that are not final yet.
        ended: Whether the job said that it has ended.
        closed: Whether everything that was read is in the store.
    """

    statements: int
    filtered: int
    foreign: int
    dead: int
    late: int
    bytes: int
    edges_local: int
    edges_out: int
    edges_open: int
    ended: bool
    closed: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        text = (
            f"{self.statements} statements reduced to {self.edges_out} edges; {self.edges_open} "
            f"open, {self.filtered} left out, {self.dead} dead letters"
        )
        return text + (f", {self.late} late" if self.late else "")


class Reduction:
    """A running reduction: Spark's handle, and what has come of it.

    Args:
        query: Spark's own handle.
        batches: What reduces its batches.
        state: Where the reduction stands.
        idle: After how many seconds without anything new the stream is at its end.
        follow: Whether the query waits for more.
    """

    def __init__(
        self,
        query: StreamingQuery,
        batches: Batches,
        state: State,
        idle: float | None,
        *,
        follow: bool,
    ) -> None:
        self._query = query
        self._batches = batches
        self._state = state
        self._idle = idle
        self._watcher: threading.Thread | None = None
        self._error: Exception | None = None
        if follow:
            self._watcher = threading.Thread(target=self._watch, name="clew-reduce", daemon=True)
            self._watcher.start()

    def __repr__(self) -> str:
        return f"Reduction({self._query.name}, {'active' if self.is_active else 'ended'})"

    @property
    def query(self) -> StreamingQuery:
        """Spark's own handle."""
        return self._query

    @property
    def is_active(self) -> bool:
        """Whether the stream is still read."""
        return bool(self._query.isActive)

    def progress(self) -> Progress:
        """Say what was done so far."""
        done = self._state.last()
        total = done.totals
        return Progress(
            statements=total.get("statements", 0),
            filtered=total.get("filtered", 0),
            foreign=total.get("foreign", 0),
            dead=total.get("dead", 0),
            late=total.get("late", 0),
            bytes=total.get("bytes", 0),
            edges_local=total.get("local", 0),
            edges_out=total.get("out", 0),
            edges_open=done.open_edges + done.fresh_edges,
            ended=done.ended,
            closed=done.closed,
        )

    def dead_letters(self) -> list[Path]:
        """List the Parquet files with lines that could not be read, and why."""
        return self._state.letters("dead")

    def kept_apart(self) -> list[Path]:
        """List the Parquet files with what was left out, if that is kept."""
        return self._state.letters("apart")

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 (Spark's name)
        """Wait until the stream was read to its end, and let go of what is open if it ended.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether it is done.
        """
        if timeout is None:
            self._query.awaitTermination()
        elif not self._query.awaitTermination(timeout):  # type: ignore[arg-type]
            return False
        if self._watcher is not None:
            self._watcher.join()
            if self._error is not None:
                raise self._error
        elif self._is_at_end():
            self._batches.close()
        return True

    def stop(self) -> None:
        """Stop reading; what is open stays so, and the next start goes on from here."""
        self._query.stop()
        if self._watcher is not None:
            self._watcher.join()

    def close(self) -> None:
        """Stop reading, and let go of what is open: nothing more comes."""
        self.stop()
        self._batches.close()

    def _is_at_end(self) -> bool:
        return self._idle is not None or self._state.last().ended

    def _watch(self) -> None:
        """End the query when its stream has."""
        since, seen = time.monotonic(), -1
        while self._query.isActive:
            time.sleep(_LOOK_EVERY)
            done = self._state.last()
            waiting = self._query.status
            if done.number != seen or waiting["isDataAvailable"] or waiting["isTriggerActive"]:
                since, seen = time.monotonic(), done.number
                continue
            quiet = time.monotonic() - since
            over = self._idle is not None and quiet >= self._idle
            if seen >= 0 and (over or (done.ended and quiet >= 1)):
                self._end()

    def _end(self) -> None:
        try:
            self._query.stop()
            self._batches.close()
        except Exception as error:  # noqa: BLE001 (told to whoever waits)
            self._error = error


def reduce(
    source: DataFrame | str | os.PathLike[str],
    *,
    job: str,
    store: str | os.PathLike[str],
    mode: str = "watermark",
    partitioning: str = "source",
    partitions: int | None = None,
    local_batch: int = 20_000,
    global_batch: int = 1_000_000,
    delay: str = "10 minutes",
    window: int = 1_000,
    single_use: bool = False,
    flush: bool = False,
    keep_apart: bool = False,
    idle: float | None = None,
    follow: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    spark: SparkSession | None = None,
) -> Reduction:
    """Reduce the provenance of a job, as it arrives, to what connects its inputs with its outputs.

    Args:
        source: A streaming DataFrame whose `value` holds lines of PROV, as Kafka gives it; a
            folder with files of such lines; or another store, whose edges are reduced.
        job: The job. Statements that name another one are left out.
        store: The folder of the store that gets the reduced edges.
        mode: How vertices are kept from being taken out too early. `"watermark"`: until nothing
            can name them any more, by the times of the statements. `"grouping"`: function
            executions come whole; entities stay to the end. `"window"`: at once, with a window of
            past edges; not exact.
        partitioning: What goes to the same local reducer: `"source"`, `"function"`, `"node"`,
            `"random"` or `"lineage"`.
        partitions: How many local reducers there are, where `partitioning` moves statements.
        local_batch: After how many elements a local reducer hands on what it has.
        global_batch: After how many edges the global reducer folds them in.
        delay: How long after something was named it may be named again, in the statements' time.
        window: How many past edges a sliding window remembers.
        single_use: A promise that each intermediate entity is made by one function execution and
            used by one, as in MapReduce. Then it can go at once.
        flush: Let go of edges at each global batch. This bounds the state by `global_batch`;
            entities that are in several batches then stay.
        keep_apart: Keep other relations and attributes in a table of their own.
        idle: After how many seconds without anything new the job has ended; None waits for its
            end event. Without `follow`, any number closes the job when all was read.
        follow: Wait for more when all was read.
        checkpoint: Where Spark keeps how far it has read; by default inside the store.
        spark: The session; by default the active one.

    Returns:
        A handle of the reduction.

    Raises:
        ReduceSettingError: A setting cannot be what it is.
        ReduceConflictError: The job was begun with other settings.
        StoreConflictError: The checkpoint is not the one of the job's reduction in this store; it
            is raised by the query.
    """
    settings = Settings(
        job,
        mode,
        partitioning,
        partitions,
        local_batch,
        global_batch,
        delay,
        window,
        single_use,
        flush,
        keep_apart,
    )
    session = _session(spark)
    check(source)
    root = store_root(store)
    make_store(root, __version__)
    state = State(root, job)
    lines = lines_of(session, source, state.intake)
    place = os.fspath(checkpoint or state.checkpoint)
    batches = Batches(session, root, state, settings, state.begin(settings), place)
    batches.recover()
    writer = lines.writeStream.queryName(f"reduce {job}").foreachBatch(batches.take)
    writer = writer.option("checkpointLocation", place)
    writer = (
        writer.trigger(processingTime="0 seconds") if follow else writer.trigger(availableNow=True)
    )
    return Reduction(writer.start(), batches, state, idle, follow=follow)


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
