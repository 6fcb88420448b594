"""Which parts of a source are needed: spans of time that cover what contributed.

Results that are far apart need parts that are far apart, and what lies between them is not read.
The number of parts is small, since each makes the condition on the source longer: the narrowest
gaps are closed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from clew.capture.intervals import HIGH, LOW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

MOST_PARTS = 32


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time in microseconds, both ends in it; None where it is open."""

    low: int | None = None
    high: int | None = None

    def wider(self, by: int) -> Span:
        """Return the span made longer at both ends."""
        low = None if self.low is None else self.low - by
        return Span(low, None if self.high is None else self.high + by)

    def meets(self, low: int, high: int) -> bool:
        """Tell whether the two spans have a moment in common."""
        return (self.low is None or high >= self.low) and (self.high is None or low <= self.high)


@dataclass(frozen=True, slots=True)
class Cover:
    """The parts of a source that are needed, in order; all of it by default."""

    spans: tuple[Span, ...] = (Span(),)

    def wider(self, by: int | None) -> Cover:
        """Return the parts made longer at both ends; the whole if by an unknown length."""
        return Cover() if by is None else _joined([span.wider(by) for span in self.spans])

    def meets(self, low: int, high: int) -> bool:
        """Tell whether a span of time has a moment in common with a part."""
        return any(span.meets(low, high) for span in self.spans)


def covers(tables: Sequence[pa.Table]) -> dict[str, Cover]:
    """Find which parts of each source cover the rows of some tables.

    Args:
        tables: The rows' hidden columns; a source of which they have no span is left out.
    """
    lows: dict[str, list[np.ndarray]] = {}
    highs: dict[str, list[np.ndarray]] = {}
    for table in tables:
        for column in table.column_names:
            if column.startswith((LOW, HIGH)):
                into = lows if column.startswith(LOW) else highs
                source = column.removeprefix(LOW).removeprefix(HIGH)
                into.setdefault(source, []).append(table[column].drop_null().to_numpy())
    return {
        source: cover(np.concatenate(lows[source]), np.concatenate(highs[source]))
        for source in lows
        if any(len(each) for each in lows[source])
    }


def covers_of_files(files: Sequence[Path]) -> dict[str, Cover]:
    """Find which parts of each source cover the rows in some files."""
    tables = []
    for path in files:
        names = [n for n in pq.read_schema(path).names if n.startswith((LOW, HIGH))]
        tables.append(pq.read_table(path, columns=names, partitioning=None))
    return covers(tables)


def cover(lows: np.ndarray, highs: np.ndarray) -> Cover:
    """Cover spans by few parts.

    Args:
        lows: Where each span begins.
        highs: Where it ends.

    Examples:
        >>> import numpy as np
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


def widened(covers: Mapping[str, Cover], by: int | None) -> dict[str, Cover]:
    """Make all parts of all sources longer."""
    return {source: each.wider(by) for source, each in covers.items()}


def _joined(spans: Sequence[Span]) -> Cover:
    known = [span for span in spans if span.low is not None and span.high is not None]
    if len(known) < len(spans):
        return Cover()
    return cover(np.array([s.low for s in known]), np.array([s.high for s in known]))
