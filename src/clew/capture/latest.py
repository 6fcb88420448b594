"""Capture for event keys: a row's own id, and the latest time among the rows it was made from.

The thesis's event key has a delay: a row's own time less that of the input that brought it about.
For a map that is what the map added, for a window the time from its last row to its end. The
latest time is a span of one pseudo-source that all sources share, so the moves are those of
`intervals`; only that here a window's own ends do not serve, since its last row may lie before
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.capture.intervals import IntervalsCapture, Spans, begun, high, last_of, low
from clew.plan.columns import named

if TYPE_CHECKING:
    from pyspark.sql import Column

    from clew.plan.algebra import Annotation, Gathering, Groups, Move, Origin
    from clew.plan.node import Annotated

_ALL = "latest"


class LatestCapture(IntervalsCapture):
    """Carry the row's own id and the latest time behind it."""

    name = "latest"

    def at_source(self, origin: Origin) -> Move:
        return begun(origin, _ALL)

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        return super().gather(before, replace(groups, within=None))


LATEST = LatestCapture()


def latest(annotation: Annotation) -> Column | None:
    """Return the latest time behind a row, in microseconds; None if nothing has a time."""
    if not isinstance(annotation, Spans) or _ALL not in annotation.timed:
        return None
    return named(last_of(annotation, _ALL))


def begin_anew(made: Annotated, time: str) -> Annotated:
    """Let the steps that follow count from a row's own time.

    Args:
        made: The rows.
        time: Their own time, as SQL.
    """
    spans = made.annotation
    assert isinstance(spans, Spans)
    if _ALL not in spans.timed:
        return made
    micros = F.expr(f"unix_micros(CAST({time} AS TIMESTAMP))")
    ends = [n for n in (low(_ALL), high(_ALL)) if n in spans.columns]
    return made.with_df(made.df.withColumns(dict.fromkeys(ends, micros)))
