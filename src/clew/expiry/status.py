"""Whether rows may still take part in results: `alive`, or `expired`.

It follows from how far the queries of the store have come, so it is known at any time and for any
row, whether a live graph is kept or not. Where something is not known, e.g. the event time of a row
that the store has never seen, a row counts as alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.exceptions import QueryError
from clew.expiry.horizon import horizon_of

if TYPE_CHECKING:
    from clew.ask.content import Question
    from clew.ask.row import Content
    from clew.expiry.horizon import Horizon
    from clew.model import Status


def status_of(question: Question, contents: list[Content]) -> Status:
    """Say whether any of some rows is alive."""
    horizon = horizon_of(question.snapshot)
    for content in contents:
        if not pc.all(expired(horizon, content.stream, content.table), min_count=0).as_py():
            return "alive"
    return "expired"


def expired(horizon: Horizon, stream: str, rows: pa.Table) -> pa.ChunkedArray:
    """Tell of each row whether it is expired.

    Args:
        horizon: What is expired.
        stream: The stream of the rows.
        rows: Their `_clew_b`, `_clew_segment` and `_clew_time`.
    """
    count = rows.num_rows
    limit = horizon.limit(stream)
    if limit.never:
        return pa.chunked_array([pa.array([False] * count, pa.bool_())])
    out = pa.chunked_array([pa.array([True] * count, pa.bool_())])
    if limit.before_us is not None:
        times = rows.column("_clew_time").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        out = pc.fill_null(pc.less(times, limit.before_us), False)
    if limit.read_by:
        out = pc.and_(out, _read(horizon, stream, rows))
    return out


def _read(horizon: Horizon, stream: str, rows: pa.Table) -> pa.ChunkedArray:
    """Tell of each row whether the queries that must have read it have."""
    segments = rows.column("_clew_segment").to_pylist()
    places = rows.column("_clew_b").to_pylist()
    found = [
        horizon.is_read(stream, None, segment, place)
        for segment, place in zip(segments, places, strict=True)
    ]
    return pa.chunked_array([pa.array(found, pa.bool_())])


def refuse_named(question: Question, stream: str) -> None:
    """Refuse a question about rows inside a query.

    Raises:
        QueryError: The stream is a named frame.
    """
    if question.snapshot.is_named(stream):
        msg = (
            f"`{stream}` is a named frame inside a query, and whether its rows are alive is not "
            "kept.\n\nAsk of the source rows behind them: "
            f'`prov.backward("{stream}", row).rows`.'
        )
        raise QueryError(msg)
