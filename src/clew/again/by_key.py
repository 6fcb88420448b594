"""Results whose content is not kept: found by their ids, and their time by what was recorded.

The store then has keys only. Rows are named by their ids, as the sink has them in `clew_id`; where
the results were recorded, their time says which part of the sources to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.again.around import around
from clew.capture.intervals import HIGH, LOW
from clew.exceptions import QueryError
from clew.store.asserted import assertions_of, recorded_streams
from clew.store.engine import Engine

if TYPE_CHECKING:
    from pathlib import Path

    from clew.again.selection import Selection
    from clew.plan.node import Node


def chosen_by_key(
    node: Node, root: Path, stream: str, selection: Selection, known: set[tuple[int, int]]
) -> pa.Table:
    """Return the ids of the rows that are wanted, with spans where their time was recorded.

    Raises:
        QueryError: Rows are asked for by what they hold.
    """
    if selection.ids is None or selection.where is not None:
        msg = (
            f"the store keeps keys of `{stream}` and not what its rows hold, so they are asked for "
            "by id.\n\nName rows by `clew_id`, which the sink has with `keep_id=True`; or run the "
            'query with `content="all"`.'
        )
        raise QueryError(msg)
    wanted = sorted(set(selection.ids) - known)
    ids = pa.table(
        {
            "a": pa.array([a for a, _ in wanted], pa.int64()),
            "b": pa.array([b for _, b in wanted], pa.int64()),
        }
    )
    where = around(node)
    times = _times(root, stream, ids)
    if where is None or times is None:
        return ids
    # A window is recorded by its end, and is no longer than what the graph says in all.
    micros = times["time"].cast(pa.int64())
    low, high = pc.subtract(micros, 2 * where.micros), pc.add(micros, where.micros)
    spans: dict[str, pa.ChunkedArray] = {}
    for source in where.sources:
        spans |= {LOW + source: low, HIGH + source: high}
    return pa.table({"a": times["a"], "b": times["b"], **spans})


def _times(root: Path, stream: str, ids: pa.Table) -> pa.Table | None:
    """Look up when rows were; None unless it is known of all of them."""
    streams = recorded_streams(root)
    if stream not in streams:
        return None
    found = assertions_of(root, streams, stream)
    engine = Engine(root)
    try:
        with engine.session() as session:
            session.register("wanted", ids)
            sql = (
                'SELECT a, b, CAST(min("time") AS TIMESTAMPTZ) AS "time" '
                f"FROM wanted JOIN {found.sql} USING (a, b) GROUP BY a, b"
            )
            table = session.table(sql, found.params)
    finally:
        engine.close()
    if table.num_rows < ids.num_rows or table["time"].null_count:
        return None
    return table.set_column(2, "time", table["time"].cast(pa.timestamp("us", "UTC")))
