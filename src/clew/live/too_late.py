"""Results that come too late for a graph: they rest on rows that were labelled as expired.

That happens to a query that joins a graph after it began, starts anew, or was given up as idle and
comes back. A label is a promise, so such a result is not in the graph, with none of its edges, and
is counted. In the store it is whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.live.deliver import delivered_files
from clew.live.elements import LABEL, SOURCE
from clew.store.engine import as_pattern, literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from clew.live.graph_state import State
    from clew.live.take import Taken


def leave_out(db: duckdb.DuckDBPyConnection, root: Path, graph: str, taken: Taken) -> State:
    """Take results that come too late out of `sink_row` and `edge`, and count them."""
    state = taken.state
    late = sorted({part.writer for part in taken.parts} & set(state.late))
    files = delivered_files(root, graph)
    if not late or not files:
        return state
    listed = ", ".join(literal(as_pattern(str(path))) for path in files)
    queries = ", ".join(map(literal, late))
    db.execute(
        "CREATE OR REPLACE TEMP TABLE too_late AS SELECT DISTINCT e.sink, e.sink_a, e.sink_b "
        f"FROM edge e SEMI JOIN (SELECT stream, a, b FROM read_parquet([{listed}], "
        f"hive_partitioning = false) WHERE element = '{LABEL}' AND side = '{SOURCE}') "
        f"USING (stream, a, b) WHERE e.sink IN ({queries})"
    )
    counts = dict(db.execute("SELECT sink, count(*) FROM too_late GROUP BY sink").fetchall())
    if not counts:
        return state
    db.execute("DELETE FROM edge WHERE (sink, sink_a, sink_b) IN (FROM too_late)")
    db.execute("DELETE FROM sink_row WHERE (stream, a, b) IN (FROM too_late)")
    left_out = {q: state.left_out.get(q, 0) + counts.get(q, 0) for q in {*state.left_out, *counts}}
    return replace(state, left_out=left_out)
