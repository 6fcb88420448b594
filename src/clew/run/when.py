"""When results are: what the column says that the user named, or else the end of their window.

Spark marks the columns that `window` and `session_window` make, and the mark stays where a column
is only handed on or renamed. A result with one such column has its time there; with several, none
is more likely than the other, so it has none.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from clew.again.recorded_streams import Time

if TYPE_CHECKING:
    from clew.plan.mask import Mask

_MARKS = frozenset({"spark.timeWindow", "spark.sessionWindow"})
_USUAL = "window"
"""What Spark calls such a column where nobody does; a mark may be lost on the way."""


def time_of_results(schema: T.StructType, event_time: str | None, mask: Mask) -> Time | None:
    """Say which column holds the time of results, if one does.

    Args:
        schema: The columns of the results.
        event_time: The column that the user named.
        mask: What of the results is not kept; the time of a row must not tell it.
    """
    if event_time is not None:
        return Time(event_time, is_window=False)
    windows = [field for field in schema.fields if _is_window(field.dataType)]
    marked = [field for field in windows if not _MARKS.isdisjoint(field.metadata or ())]
    usual = [field for field in windows if field.name == _USUAL and len(windows) == 1]
    names = [field.name for field in marked or usual]
    named = Counter(field.name.lower() for field in schema.fields)
    if len(names) != 1 or named[names[0].lower()] > 1 or mask.hides(names):
        return None
    return Time(names[0], is_window=True)


def _is_window(kind: T.DataType) -> bool:
    if not isinstance(kind, T.StructType) or kind.names != ["start", "end"]:
        return False
    return all(isinstance(f.dataType, (T.TimestampType, T.TimestampNTZType)) for f in kind.fields)
