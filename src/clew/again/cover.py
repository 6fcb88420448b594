"""Which parts of a source are needed: spans of time that cover what contributed.

Results that are far apart need parts that are far apart, and what lies between them is not read.
The number of parts is small, since each makes the condition on the source longer: the narrowest
gaps are closed first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from clew.capture.intervals import HIGH, LOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    _Ints = NDArray[np.int64]

MOST_PARTS = 32


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time in microseconds, both ends in it."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Cover:
    """The parts of a source that are needed.

    Attributes:
        spans: The parts, in order; None for all of it.
        loose: Reading more does no harm.
    """

    spans: tuple[Span, ...] | None = None
    loose: bool = False

    def meets(self, low: int, high: int) -> bool:
        """Tell whether a span of time has a moment in common with a part."""
        if self.spans is None:
            return True
        return any(high >= span.low and low <= span.high for span in self.spans)

    def within(self, low: int, high: int) -> int:
        """Return how much of a span of time lies in the parts."""
        if self.spans is None:
            return high - low + 1
        shared = (min(high, span.high) - max(low, span.low) + 1 for span in self.spans)
        return sum(each for each in shared if each > 0)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far around the source rows of a result one must read.

    Attributes:
        length: How far from any of them, in microseconds; None if the graph does not say.
        straight: The sources that the query reads on one path only. All rows that matter for a
            result are then near each other, so each is near the first and near the last of them.
        cell: Windows that must be complete all have this size and begin at its multiples. It takes
            the place of the length.
        loose: Reading more does no harm.
    """

    length: int | None
    straight: frozenset[str] = frozenset()
    cell: int | None = None
    loose: bool = False


def covers(tables: Sequence[pa.Table], reach: Reach) -> dict[str, Cover]:
    """Find which parts of each source are needed for the rows of some tables.

    Args:
        tables: The rows' hidden columns; a source of which they have no span is left out.
        reach: How far around each span rows are needed.
    """
    if reach.length is None:
        return {}
    lows: dict[str, list[_Ints]] = {}
    highs: dict[str, list[_Ints]] = {}
    for table in tables:
        for column in (name for name in table.column_names if name.startswith(LOW)):
            source = column.removeprefix(LOW)
            # A span of one moment has one end.
            end = HIGH + source if HIGH + source in table.column_names else column
            lows.setdefault(source, []).append(table[column].drop_null().to_numpy())
            highs.setdefault(source, []).append(table[end].drop_null().to_numpy())
    found = {}
    for source, parts in lows.items():
        low, high = np.concatenate(parts), np.concatenate(highs[source])
        if len(low):
            begins, ends = _widened(low, high, source, reach)
            found[source] = replace(cover(begins, ends), loose=reach.loose)
    return found


def _widened(low: _Ints, high: _Ints, source: str, reach: Reach) -> tuple[_Ints, _Ints]:
    """Widen spans by what must be read around them."""
    if reach.cell is not None:
        return low // reach.cell * reach.cell, high // reach.cell * reach.cell + reach.cell - 1
    assert reach.length is not None
    last, first = (high, low) if source in reach.straight else (low, high)
    return np.minimum(low, last - reach.length), np.maximum(high, first + reach.length)


def span_columns(path: Path) -> list[str]:
    """List the columns of a file that hold spans."""
    return [name for name in pq.read_schema(path).names if name.startswith((LOW, HIGH))]


def cover(lows: _Ints, highs: _Ints) -> Cover:
    """Cover spans by few parts.

    Args:
        lows: Where each span begins.
        highs: Where it ends.

    Examples:
        >>> cover(np.array([5, 0, 20]), np.array([9, 6, 30])).spans
        (Span(low=0, high=9), Span(low=20, high=30))
    """
    order = np.argsort(lows, kind="stable")
    begins, ends = lows[order], np.maximum.accumulate(highs[order])
    gaps = begins[1:] - ends[:-1]
    widest = np.argsort(gaps, kind="stable")[::-1][: MOST_PARTS - 1]
    cuts = np.sort(widest[gaps[widest] > 0])
    firsts = begins[np.concatenate(([0], cuts + 1))]
    lasts = ends[np.concatenate((cuts, [len(ends) - 1]))]
    return Cover(tuple(Span(int(a), int(b)) for a, b in zip(firsts, lasts, strict=True)))
