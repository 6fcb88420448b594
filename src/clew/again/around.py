"""Where the source rows of a result lie, by a time that the result itself holds.

The thesis's stream ancestor functions, taken together: each operator says how far back in time its
input lies from its output, and the sum over the graph says so for the sources. Nothing has to be
carried for that but the time, which a result of windows has anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.again.moments import holds_moment
from clew.again.reach import time_apart
from clew.capture.intervals import HIGH, LOW
from clew.operators.source import Source
from clew.plan.spans import span_column

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class Around:
    """How to find the part of each source that a result may come from.

    Attributes:
        column: The result's column that says when.
        is_window: It is a window; else a moment.
        micros: How far from it the source rows may lie.
        sources: The sources that have a time.
    """

    column: str
    is_window: bool
    micros: int
    sources: tuple[str, ...]

    def spans(self, times: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
        """Return the ends of the span of each source, for each value of the column."""
        ends = [
            pc.struct_field(times, end) if self.is_window else times for end in ("start", "end")
        ]
        low = pc.subtract(_micros(ends[0]), self.micros)
        high = pc.add(_micros(ends[1]), self.micros)
        return {
            name: column
            for source in self.sources
            for name, column in ((LOW + source, low), (HIGH + source, high))
        }


def around(node: Node) -> Around | None:
    """Say where the source rows of a query's results lie; None if nothing says."""
    micros = time_apart(node)
    if micros is None:
        return None
    origins = [n.operator.origin for n in node.walk() if isinstance(n.operator, Source)]
    timed = tuple(dict.fromkeys(o.name for o in origins if span_column(o) is not None))
    for is_window in (True, False):
        for column in node.columns:
            if holds_moment(node, column, of_window=is_window):
                return Around(column, is_window, micros, timed)
    return None


def with_spans(
    chosen: pa.Table, root: Path, files: Iterable[str], where: Around | None
) -> pa.Table:
    """Add the spans of rows that carry none, from their own columns.

    Args:
        chosen: The ids `a`, `b` of the rows.
        root: The store.
        files: Its files with the rows.
        where: How spans are found; without it there are none.
    """
    if where is None or not chosen.num_rows:
        return chosen
    parts = [_of_file(root / file, where) for file in files]
    ids = chosen.select(["a", "b"])
    return ids.join(pa.concat_tables(parts), ["a", "b"], join_type="inner").combine_chunks()


def _of_file(path: Path, where: Around) -> pa.Table:
    unit: dict[str, Any] = {"coerce_int96_timestamp_unit": "us"}
    table = pq.read_table(path, columns=["a", "b", "row"], partitioning=None, **unit)
    return pa.table(
        {
            "a": table["a"],
            "b": table["b"],
            **where.spans(pc.struct_field(table["row"], [where.column])),
        }
    )


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    zone = times.type.tz
    return times.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
