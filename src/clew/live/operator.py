"""The engine `operator`: one stateful operator that labels rows as early as can be.

It is Ananke's Algorithm 1, with tables in place of loops. The memory `known` holds the source
vertices that are alive; a row of it becomes a label, and is forgotten, in the first step in which
the watermarks allow it. Nothing else is kept: after a crash the memory is read back from what was
delivered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from clew.live.deliver import deliver, delivered_files, last_state
from clew.live.elements import EDGE, LABEL, SCHEMA, SINK, SOURCE, VERTEX
from clew.live.gather import Gathered, connect, merge_equal_results
from clew.live.too_late import leave_out
from clew.store.engine import as_pattern, literal

if TYPE_CHECKING:
    from pathlib import Path

    from clew.expiry.horizon import Horizon, Limit
    from clew.live.graph_state import Definition, State
    from clew.live.take import Taken

_KNOWN = (
    "side VARCHAR, stream VARCHAR, a BIGINT, b BIGINT, time BIGINT, segment VARCHAR, writer VARCHAR"
)


class OperatorEngine:
    """Builds a graph in this process.

    Args:
        root: The store.
        definition: The graph.
    """

    def __init__(self, root: Path, definition: Definition) -> None:
        self._root = root
        self.definition = definition
        self._db = connect()
        self._state: State | None = None

    def state(self) -> State:
        """Say how far the graph is, reading it back if another process went on with it."""
        found = last_state(self._root, self.definition.name)
        if self._state is None or found.step != self._state.step:
            self._recall(found)
            self._state = found
        return self._state

    def flush(self) -> None:
        """Do nothing: a step delivers at once."""

    def start(self) -> None:
        """Do nothing: there is nothing to keep running."""

    def stop(self) -> None:
        """Do nothing: there is nothing to end."""

    def alive(self) -> int:
        """Count the source vertices that are alive."""
        self.state()
        [(count,)] = self._db.execute(
            f"SELECT count(*) FROM known WHERE side = '{SOURCE}'"
        ).fetchall()
        return int(count)

    def step(self, taken: Taken) -> State:
        """Deliver what follows from finished batches; return how far the graph is then."""
        db = self._db
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
        self._tell_new(merges=merges)
        gathered.fetch_sources("new_source")
        state = self._with_time(taken, state)
        self._remember(state, merges=merges)
        self._expire(taken, merges=merges)
        table = self._elements(state)
        if not table.num_rows:
            # Nothing to deliver: what was taken in is noted with the next step that has something.
            self._state = replace(state, step=state.step - 1)
        else:
            sizes = dict.fromkeys((VERTEX, EDGE, LABEL), 0)
            for each in table.column("element").value_counts().to_pylist():
                sizes[each["values"]] = each["counts"]
            state = state.counted(sizes[VERTEX], sizes[EDGE], sizes[LABEL])
            deliver(self._root, self.definition.name, state, table)
            self._state = state
        return self._state

    def _with_time(self, taken: Taken, state: State) -> State:
        """Without a watermark, take the latest event time of all rows for the graph's time."""
        if taken.timed:
            return state
        [(latest,)] = self._db.execute("SELECT max(time) FROM source_row").fetchall()
        return state if latest is None else replace(state, at_us=max(state.at_us, latest))

    def _recall(self, state: State) -> None:
        """Read the memory back from what was delivered."""
        db = self._db
        db.execute(f"CREATE OR REPLACE TABLE known ({_KNOWN})")
        db.execute(
            "CREATE OR REPLACE TABLE known_edge AS FROM (SELECT NULL::VARCHAR AS sink, "
            "0::BIGINT AS sink_a, 0::BIGINT AS sink_b, NULL::VARCHAR AS stream, "
            "0::BIGINT AS a, 0::BIGINT AS b) WHERE false"
        )
        files = delivered_files(self._root, self.definition.name)
        if not files:
            return
        listed = ", ".join(literal(as_pattern(str(path))) for path in files)
        lasting = ", ".join(map(literal, state.repeating)) or "NULL"
        old = f"read_parquet([{listed}], hive_partitioning = false)"
        db.execute(
            "INSERT INTO known SELECT side, stream, a, b, epoch_us(time), segment, NULL "
            f"FROM {old} v WHERE element = '{VERTEX}' AND (NOT EXISTS (SELECT 1 FROM {old} l "
            f"WHERE l.element = '{LABEL}' AND l.side = v.side AND l.stream = v.stream "
            f"AND l.a = v.a AND l.b = v.b) OR (side = '{SINK}' AND stream IN ({lasting})))"
        )
        db.execute(
            f"INSERT INTO known_edge SELECT sink, sink_a, sink_b, stream, a, b FROM {old} e "
            f"WHERE element = '{EDGE}' AND EXISTS (SELECT 1 FROM known k WHERE k.side = '{SINK}' "
            "AND k.stream = e.sink AND k.a = e.sink_a AND k.b = e.sink_b)"
        )

    def _tell_new(self, *, merges: bool) -> None:
        """Find the vertices and edges that were not delivered yet."""
        db = self._db
        if not merges:
            # A result that comes again under the same id brings the same edges.
            db.execute(
                "DELETE FROM edge WHERE (sink, sink_a, sink_b) IN "
                f"(SELECT (stream, a, b) FROM known WHERE side = '{SINK}')"
            )
        db.execute(
            "CREATE OR REPLACE TEMP TABLE new_edge AS "
            "SELECT * FROM edge ANTI JOIN known_edge USING (sink, sink_a, sink_b, stream, a, b)"
        )
        db.execute(
            "CREATE OR REPLACE TEMP TABLE new_sink AS SELECT * FROM sink_row r ANTI JOIN "
            f"(SELECT stream, a, b FROM known WHERE side = '{SINK}') USING (stream, a, b)"
        )
        db.execute(
            "CREATE OR REPLACE TEMP TABLE new_source AS SELECT stream, a, b, min(sink) AS writer "
            "FROM new_edge ANTI JOIN "
            f"(SELECT stream, a, b FROM known WHERE side = '{SOURCE}') USING (stream, a, b) "
            "GROUP BY stream, a, b"
        )

    def _remember(self, state: State, *, merges: bool) -> None:
        db = self._db
        db.execute(
            f"INSERT INTO known SELECT '{SOURCE}', n.stream, n.a, n.b, r.time, r.segment, n.writer "
            "FROM new_source n LEFT JOIN source_row r USING (stream, a, b)"
        )
        lasting = ", ".join(map(literal, state.repeating)) or "NULL"
        which = "true" if merges else f"stream IN ({lasting})"
        db.execute(
            f"INSERT INTO known SELECT '{SINK}', stream, a, b, time, NULL, stream FROM new_sink "
            f"WHERE {which}"
        )
        if merges:
            db.execute("INSERT INTO known_edge FROM new_edge")

    def _expire(self, taken: Taken, *, merges: bool) -> None:
        """Move rows that can take part in nothing more from the memory to `gone`."""
        db = self._db
        db.execute(f"CREATE OR REPLACE TEMP TABLE gone ({_KNOWN})")
        streams = db.execute("SELECT DISTINCT side, stream FROM known").fetchall()
        for side, stream in streams:
            horizon = taken.horizon
            limit = horizon.limit(stream) if side == SOURCE else horizon.sink_limit(stream)
            self._expire_stream(horizon, side, stream, limit)
        db.execute(
            "DELETE FROM known WHERE (side, stream, a, b) IN "
            "(SELECT (side, stream, a, b) FROM gone)"
        )
        if merges:
            db.execute(
                "DELETE FROM known_edge WHERE (sink, sink_a, sink_b) IN "
                f"(SELECT (stream, a, b) FROM gone WHERE side = '{SINK}')"
            )

    def _expire_stream(self, horizon: Horizon, side: str, stream: str, limit: Limit) -> None:
        if limit.never:
            return
        where = f"side = {literal(side)} AND stream = {literal(stream)}"
        if limit.before_us is not None:
            where += f" AND time < {limit.before_us}"
        if side == SOURCE and limit.read_by:
            groups = self._db.execute(
                f"SELECT writer, segment, min(b), max(b) FROM known WHERE {where} "
                "GROUP BY writer, segment"
            ).fetchall()
            read = [
                (writer, segment)
                for writer, segment, *ends in groups
                if all(horizon.is_read(stream, writer, segment, each) for each in ends)
            ]
            if not read:
                return
            kinds = pa.schema([("writer", pa.string()), ("segment", pa.string())])
            columns = [pa.array(c, pa.string()) for c in zip(*read, strict=True)]
            self._db.register("is_read", pa.table(columns, schema=kinds))
            where += (
                " AND EXISTS (SELECT 1 FROM is_read r WHERE r.writer IS NOT DISTINCT FROM "
                "known.writer AND r.segment IS NOT DISTINCT FROM known.segment)"
            )
        self._db.execute(f"INSERT INTO gone SELECT * FROM known WHERE {where}")

    def _elements(self, state: State) -> pa.Table:
        """Put the elements of a step together: vertices, then edges, then labels."""
        merges = self.definition.results == "merged"
        content = '"row"' if self.definition.content else "NULL::VARCHAR"
        ends = "NULL::VARCHAR AS sink, NULL::BIGINT AS sink_a, NULL::BIGINT AS sink_b"
        bare = 'NULL::BIGINT AS time, NULL::VARCHAR AS "row", NULL::VARCHAR AS segment'
        sink_labels = (
            f"SELECT '{LABEL}', side, stream, a, b, {ends}, {bare} FROM gone WHERE side = '{SINK}'"
            if merges
            else f"SELECT '{LABEL}', '{SINK}', stream, a, b, {ends}, {bare} FROM new_sink"
        )
        sql = (
            f"SELECT '{VERTEX}' AS element, '{SINK}' AS side, stream, a, b, {ends}, time, "
            f'{content} AS "row", NULL::VARCHAR AS segment FROM new_sink '
            f"UNION ALL SELECT '{VERTEX}', '{SOURCE}', n.stream, n.a, n.b, {ends}, r.time, "
            f"{content}, r.segment FROM new_source n LEFT JOIN source_row r USING (stream, a, b) "
            f"UNION ALL SELECT '{EDGE}', NULL, stream, a, b, sink, sink_a, sink_b, {bare} "
            f"FROM new_edge UNION ALL {sink_labels} "
            f"UNION ALL SELECT '{LABEL}', side, stream, a, b, {ends}, {bare} "
            f"FROM gone WHERE side = '{SOURCE}'"
        )
        return stamped(self._db.sql(sql).to_arrow_table(), state)


def stamped(found: pa.Table, state: State) -> pa.Table:
    """Give elements the graph's event time and the number of the step."""
    rows = found.num_rows
    at = pa.array([state.at_us], pa.int64()).cast(SCHEMA.field("at").type)
    table = found.append_column("at", pa.chunked_array([at.take(pa.array([0] * rows, pa.int64()))]))
    table = table.append_column("step", pa.array([state.step] * rows, pa.int64()))
    time = table.column("time").cast(SCHEMA.field("time").type)
    table = table.set_column(table.column_names.index("time"), "time", time)
    return table.select(SCHEMA.names).cast(SCHEMA)
