"""Which column of a source says when its rows happened, where a part of it is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as T

if TYPE_CHECKING:
    from clew.plan.algebra import Origin


def span_column(origin: Origin) -> str | None:
    """Choose the column of a source by which the part to read again is found."""
    times = [f.name for f in origin.schema.fields if isinstance(f.dataType, T.TimestampType)]
    if origin.event_time in times:
        return origin.event_time
    return times[0] if times else None
