"""The windows of results, and when a row is.

Spark's `window` is a struct of `start` and `end`. A result that has one, and no event time of its
own, is put where its window ends.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from clew.ask.row import Content

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

NO_TIME = int(np.iinfo(np.int64).max)
"""Stands for the time of a row that has none, and puts it behind all others."""


def moment(micros: int) -> dt.datetime | None:
    """Return a point in time; None for `NO_TIME` and for years that Python does not have.

    Examples:
        >>> moment(60_000_000).minute, moment(NO_TIME)
        (1, None)
    """
    try:
        return None if micros == NO_TIME else _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return None


def window_columns(content: Content) -> list[str]:
    """Return the columns that hold windows: structs with a start and an end in time."""
    return [name for name in content.columns if _is_window(content.table.schema.field(name).type)]


def _is_window(dtype: pa.DataType) -> bool:
    if not pa.types.is_struct(dtype):
        return False
    types = {dtype.field(i).name: dtype.field(i).type for i in range(dtype.num_fields)}
    return all(name in types and pa.types.is_timestamp(types[name]) for name in ("start", "end"))


def window_ends(content: Content, column: str, end: str) -> npt.NDArray[np.int64]:
    """Return where windows start or end, in microseconds, with `NO_TIME` where there is none."""
    return _micros(pc.struct_field(content.table.column(column), end))


def times_of(content: Content) -> npt.NDArray[np.int64]:
    """Return when rows are, in microseconds: their event time, or the end of their window."""
    times = _micros(content.table.column("_clew_time"))
    for column in window_columns(content):
        missing = times == NO_TIME
        if not missing.any():
            break
        times[missing] = window_ends(content, column, "end")[missing]
    return times


def _micros(column: Any) -> npt.NDArray[np.int64]:
    kind = pa.timestamp("us", column.type.tz)
    numbers = column.cast(kind, safe=False).cast(pa.int64()).fill_null(NO_TIME)
    return np.array(numbers.to_numpy(), np.int64)
