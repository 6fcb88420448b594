"""The engine `native`: only Spark's own operators, so that it scales with partitions.

It is Ananke's ANK-N in Spark's terms. Each step puts what the queries finished into an intake of
files: all vertices and edges, also those that were delivered before, and one row for the clock. A
streaming query reads it. `dropDuplicatesWithinWatermark` forwards each vertex once, and the clock's
own watermark, of which Spark takes the smaller one, says when a vertex may be forgotten.

The time of that query is the number of the step in which a row came, not an event time: rows of a
step are expired once the watermarks of all queries are past the last of them. So no vertex is too
late for Spark, whatever the speed of the queries, and the labels of a step are its vertices, read
back from what was delivered.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clew.exceptions import WriterError
from clew.live.deliver import (
    STEP,
    commit_draft,
    delivered_files,
    draft_folder,
    last_state,
    step_folder,
    steps,
)
from clew.live.elements import EDGE, LABEL, SCHEMA, SINK, SOURCE, VERTEX, graph_folder
from clew.live.gather import Gathered, connect, merge_equal_results
from clew.live.graph_state import State
from clew.live.too_late import leave_out
from clew.steps import reached
from clew.store.commit import put_json
from clew.store.engine import as_pattern, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.expiry.horizon import Horizon
    from clew.live.graph_state import Definition
    from clew.live.take import Taken

CLOCK = "clock"
_MOST_STEPS = 16
_LOOK_EVERY = "200 milliseconds"
_KEY = ["element", "side", "stream", "a", "b", "sink", "sink_a", "sink_b"]
_LASTING = 253_000_000_000
"""A step that never comes, as a time: in the year 9987."""

_FIELDS = (
    "element string, side string, stream string, a bigint, b bigint, sink string, sink_a bigint, "
    "sink_b bigint, time timestamp, row string, segment string, once boolean, came timestamp, "
    "step bigint, at timestamp, done bigint, never string"
)
_ELEMENT = SCHEMA.names


class NativeEngine:
    """Builds a graph with a streaming query of Spark.

    Args:
        root: The store.
        definition: The graph.
        spark: The session; the active one if left out.
    """

    def __init__(self, root: Path, definition: Definition, spark: SparkSession | None) -> None:
        self._root = root
        self.definition = definition
        self._spark = spark
        self._db = connect()
        self._state: State | None = None
        self._query: StreamingQuery | None = None

    @property
    def _intake(self) -> Path:
        return graph_folder(self._root, self.definition.name) / "intake"

    def state(self) -> State:
        """Say how far the graph is with what it took in."""
        found = self._taken_in()
        if self._state is None or found.step != self._state.step:
            self._state = found
        delivered = last_state(self._root, self.definition.name)
        self._state = replace(
            self._state,
            vertices=delivered.vertices,
            edges=delivered.edges,
            labels=delivered.labels,
        )
        return self._state

    def flush(self) -> None:
        """Deliver what was taken in, also by a process that died."""
        if self._taken_in().step > last_state(self._root, self.definition.name).step:
            self._drain()

    def alive(self) -> int:
        """Count the source vertices that are alive."""
        files = delivered_files(self._root, self.definition.name)
        if not files:
            return 0
        listed = ", ".join(literal(as_pattern(str(path))) for path in files)
        [(count,)] = self._db.execute(
            f"SELECT sum(CASE element WHEN '{VERTEX}' THEN 1 ELSE -1 END) FROM "
            f"read_parquet([{listed}], hive_partitioning = false) WHERE side = '{SOURCE}'"
        ).fetchall()
        return int(count or 0)

    def step(self, taken: Taken) -> State:
        """Take finished batches in, for the next `flush`; return how far the graph is then."""
        db = self._db
        if any(part.writer in taken.state.late for part in taken.parts):
            self.flush()  # whether results come too late is decided by what was delivered
        merges = self.definition.results == "merged"
        gathered = Gathered(
            db,
            self._root,
            taken.parts,
            taken.sources(),
            with_content=self.definition.content or merges,
        )
        state = leave_out(db, self._root, self.definition.name, taken)
        if merges:
            merge_equal_results(db, self._root)
        db.execute("CREATE OR REPLACE TEMP TABLE behind AS SELECT DISTINCT stream, a, b FROM edge")
        gathered.fetch_sources("behind")
        state = self._with_time(taken, state)
        opened = self._open(taken, state)
        state = replace(state, open=(*state.open, *([opened] if opened["streams"] else [])))
        state = _closed(state, taken.horizon)
        rows = self._rows(state, taken.horizon, merges=merges)
        if not rows.num_rows and len(state.open) == len(taken.state.open):
            self._state = replace(state, step=state.step - 1, done=taken.state.done)
            return self._state
        self._put(state, taken.horizon, rows)
        self._state = state
        return state

    def _with_time(self, taken: Taken, state: State) -> State:
        if taken.timed:
            return state
        [(latest,)] = self._db.execute("SELECT max(time) FROM source_row").fetchall()
        return state if latest is None else replace(state, at_us=max(state.at_us, latest))

    def _taken_in(self) -> State:
        found = sorted(each for each in self._intake.glob("*") if each.name.isdigit())
        return State.read(found[-1] / STEP) if found else State()

    def _open(self, taken: Taken, state: State) -> dict[str, Any]:
        """Note what must be passed before all rows of this step are expired."""
        streams: dict[str, Any] = {}
        for stream, latest, without in self._db.execute(
            "SELECT b.stream, max(r.time), count(*) FILTER (r.time IS NULL) FROM behind b "
            "LEFT JOIN source_row r USING (stream, a, b) GROUP BY b.stream"
        ).fetchall():
            limit = taken.horizon.limit(stream)
            if limit.never:
                continue
            segments = []
            if len(limit.read_by) > 1 or len(taken.horizon.readers(stream)) > 1:
                segments = self._db.execute(
                    "SELECT segment, min(b), max(b) FROM source_row WHERE stream = ? "
                    "GROUP BY segment",
                    [stream],
                ).fetchall()
            streams[stream] = {
                "latest": None if without else latest,
                "segments": [list(each) for each in segments],
            }
        if self.definition.results == "merged":
            for stream, latest in self._db.execute(
                "SELECT stream, max(time) FROM sink_row GROUP BY stream"
            ).fetchall():
                if not taken.horizon.sink_limit(stream).never:
                    streams[f"{SINK} {stream}"] = {"latest": latest, "segments": []}
        return {"step": state.step, "streams": streams}

    def _rows(self, state: State, horizon: Horizon, *, merges: bool) -> pa.Table:
        """Put all vertices and edges of a step together, delivered before or not."""
        content = '"row"' if self.definition.content else "NULL::VARCHAR"
        ends = "NULL::VARCHAR AS sink, NULL::BIGINT AS sink_a, NULL::BIGINT AS sink_b"
        sql = (
            f"SELECT '{VERTEX}' AS element, '{SINK}' AS side, stream, a, b, {ends}, time, "
            f'{content} AS "row", NULL::VARCHAR AS segment FROM sink_row '
            f"UNION ALL SELECT '{VERTEX}', '{SOURCE}', n.stream, n.a, n.b, {ends}, r.time, "
            f"{content}, r.segment FROM behind n LEFT JOIN source_row r USING (stream, a, b) "
            f"UNION ALL SELECT '{EDGE}', NULL, stream, a, b, sink, sink_a, sink_b, "
            "NULL, NULL, NULL FROM edge"
        )
        table = self._db.sql(sql).to_arrow_table()
        is_source = pc.equal(pc.fill_null(table.column("side"), ""), SOURCE)
        own = pc.if_else(
            pc.equal(table.column("element"), EDGE), table.column("sink"), table.column("stream")
        )
        again = pc.is_in(own, pa.array(state.repeating, pa.string()))
        once = pc.or_(is_source, pa.scalar(True) if merges else again)
        never = [s for s in set(table.column("stream").to_pylist()) if horizon.limit(s).never]
        lasting = pc.and_(is_source, pc.is_in(table.column("stream"), pa.array(never, pa.string())))
        lasting = pc.or_(lasting, pc.and_(pc.invert(is_source), again))
        came = pc.if_else(lasting, pa.scalar(_LASTING), pa.scalar(_moment(state.step)))
        table = table.append_column("once", once)
        return table.append_column("came", pc.cast(came, pa.int64()))

    def _put(self, state: State, horizon: Horizon, rows: pa.Table) -> None:
        """Add a step to the intake; its folder appears whole or not at all."""
        draft = graph_folder(self._root, self.definition.name) / "_intake"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        never = self._never(horizon)
        tick = pa.table(
            {
                name: pa.array([None], rows.schema.field(name).type)
                for name in rows.column_names
                if name not in ("element", "once", "came")
            }
        )
        tick = tick.append_column("element", pa.array([CLOCK]))
        tick = tick.append_column("once", pa.array([False]))
        tick = tick.append_column("came", pa.array([_moment(state.done)], pa.int64()))
        table = pa.concat_tables([rows, tick.select(rows.column_names)])
        count = table.num_rows
        for name, value in (("step", state.step), ("done", state.done), ("at", state.at_us)):
            table = table.append_column(name, pa.array([value] * count, pa.int64()))
        table = table.append_column("never", pa.array([json.dumps(never)] * count))
        for name, unit in (("time", 1), ("at", 1), ("came", 1_000_000)):
            micros = pc.multiply(table.column(name), unit) if unit > 1 else table.column(name)
            place = table.column_names.index(name)
            table = table.set_column(place, name, micros.cast(SCHEMA.field("at").type))
        pq.write_table(table, draft / "part-0.parquet")
        put_json(draft / STEP, state.to_dict())
        reached("live intake written", state.step)
        self._intake.mkdir(parents=True, exist_ok=True)
        draft.rename(self._intake / f"{state.step:010d}")
        reached("live intake committed", state.step)

    def _never(self, horizon: Horizon) -> list[str]:
        streams = [s for (s,) in self._db.execute("SELECT DISTINCT stream FROM edge").fetchall()]
        return sorted(s for s in streams if horizon.limit(s).never)

    def start(self) -> None:
        """Keep the streaming query running, so that a flush need not start one."""
        self._query = self._begin({"processingTime": _LOOK_EVERY})

    def stop(self) -> None:
        """End the streaming query."""
        query, self._query = self._query, None
        if query is not None:
            query.stop()

    def _drain(self) -> None:
        """Let the streaming query deliver what is in the intake."""
        if self._query is not None:
            self._query.processAllAvailable()
            return
        self._begin({"availableNow": True}).awaitTermination()

    def _begin(self, trigger: dict[str, Any]) -> StreamingQuery:
        spark = self._spark or SparkSession.getActiveSession()
        if spark is None:
            msg = (
                "the engine `native` runs on Spark, and this process has no session.\n\n"
                'Start one: `SparkSession.builder.getOrCreate()`, or take `engine="operator"`.'
            )
            raise WriterError(msg)
        spark = spark.newSession()
        # The clock holds the watermark back; with `max` it would not.
        spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "min")
        # A batch without rows would only forget vertices, which has time until the next.
        spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        self._intake.mkdir(parents=True, exist_ok=True)
        intake = (
            spark.readStream.schema(_FIELDS)
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", _MOST_STEPS)
            .parquet(str(self._intake))
        )
        once = intake.filter("once").withWatermark("came", "0 seconds")
        once = once.dropDuplicatesWithinWatermark(_KEY)
        clock = intake.filter(f"element = '{CLOCK}'").withWatermark("came", "0 seconds")
        others = intake.filter(f"NOT once AND element <> '{CLOCK}'")
        merges = self.definition.results == "merged"
        sink = Delivery(str(self._root), self.definition.name, merges)
        folder = graph_folder(self._root, self.definition.name) / "checkpoint"
        writer: Any = once.union(clock).union(others).writeStream.foreachBatch(sink.__call__)
        writer = writer.option("checkpointLocation", str(folder)).trigger(**trigger)
        started: StreamingQuery = writer.start()
        return started


def _moment(step: int) -> int:
    """Turn the number of a step into a time: before the first one, it is zero."""
    return step + 1


def _closed(state: State, horizon: Horizon) -> State:
    """Find the steps whose rows are all expired by now."""
    open_steps = list(state.open)
    while open_steps and _is_over(open_steps[0], horizon):
        open_steps.pop(0)
    done = open_steps[0]["step"] - 1 if open_steps else state.step
    return replace(state, open=tuple(open_steps), done=max(done, state.done))


def _is_over(opened: Any, horizon: Horizon) -> bool:
    for name, each in opened["streams"].items():
        is_sink = name.startswith(f"{SINK} ")
        stream = name.removeprefix(f"{SINK} ")
        limit = horizon.sink_limit(stream) if is_sink else horizon.limit(stream)
        if limit.never:
            return False
        if limit.before_us is not None and (
            each["latest"] is None or each["latest"] >= limit.before_us
        ):
            return False
        if not is_sink and limit.read_by:
            for segment, first, last in each["segments"]:
                if not all(horizon.is_read(stream, None, segment, at) for at in (first, last)):
                    return False
    return True


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivers what a batch of the streaming query let through.

    Attributes:
        root: The store's folder.
        graph: The graph.
        merges: Results are merged, so their labels wait like those of source rows.
    """

    root: str
    graph: str
    merges: bool

    def __call__(self, rows: DataFrame, _batch: int) -> None:
        """Deliver one batch; safe to call again for the same batch."""
        root = Path(self.root)
        held = rows.persist()
        try:
            ticks = (
                held.filter(f"element = '{CLOCK}'").select("step", "at", "done", "never").collect()
            )
            if ticks:
                self._deliver(root, held, max(ticks, key=lambda tick: tick.step))
        finally:
            held.unpersist()

    def _deliver(self, root: Path, held: DataFrame, tick: Any) -> None:
        before = last_state(root, self.graph)
        if step_folder(root, self.graph, tick.step).exists():
            return  # it was delivered before, and Spark does not know
        draft = draft_folder(root, self.graph)
        shutil.rmtree(draft, ignore_errors=True)
        stamps = {"at": F.lit(tick.at), "step": F.lit(tick.step).cast("bigint")}
        came = held.filter(f"element <> '{CLOCK}'").withColumns(stamps).select(*_ELEMENT)
        out = came
        if not self.merges:
            out = out.union(_labels(came.filter(f"element = '{VERTEX}' AND side = '{SINK}'")))
        waiting = f"element = '{VERTEX}'" + ("" if self.merges else f" AND side = '{SOURCE}'")
        never = json.loads(tick.never)
        lasting = (
            ~(F.col("stream").isin(never) & (F.col("side") == SOURCE)) if never else F.lit(True)
        )
        if tick.done >= tick.step:
            out = out.union(_labels(came.filter(waiting).filter(lasting)))
        over = [s for s in steps(root, self.graph) if before.done < int(s.name) <= tick.done]
        if over:
            old = held.sparkSession.read.parquet(*map(str, over))
            old = old.filter(waiting).filter(lasting).withColumns(stamps).select(*_ELEMENT)
            out = out.union(_labels(old))
        reached("live elements made", tick.step)
        out.write.parquet(str(draft))
        counts: dict[str, int] = dict.fromkeys((VERTEX, EDGE, LABEL), 0)
        for file in sorted(draft.glob("*.parquet")):
            found = pq.read_table(file, columns=["element"], partitioning=None)
            for each in found.column("element").value_counts().to_pylist():
                counts[each["values"]] += each["counts"]
        intake = graph_folder(root, self.graph) / "intake" / f"{tick.step:010d}" / STEP
        state = State.read(intake)
        state = replace(
            state, vertices=before.vertices, edges=before.edges, labels=before.labels
        ).counted(counts[VERTEX], counts[EDGE], counts[LABEL])
        commit_draft(root, self.graph, state)


def _labels(vertices: DataFrame) -> DataFrame:
    """Make labels of vertices."""
    nothing = {
        name: F.lit(None).cast(kind)
        for name, kind in (("time", "timestamp"), ("row", "string"), ("segment", "string"))
    }
    return vertices.withColumns({"element": F.lit(LABEL), **nothing}).select(*_ELEMENT)
