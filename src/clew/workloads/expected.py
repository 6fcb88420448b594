"""A result that a query must give, and the source rows it must trace to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Expected:
    """One result and the source rows that contribute to it.

    Attributes:
        values: The result's columns, spelled as `DataFrame.toArrow().to_pylist()` spells a row:
            a window is a dict with `start` and `end`, a timestamp knows its time zone.
        rows: For each source, the indices of the contributing rows in its table. A source
            that does not contribute is there with an empty set.

    Examples:
        >>> late = Expected({"flight": 15}, {"flights": frozenset({3}), "planes": frozenset()})
        >>> late.size
        1
    """

    values: Mapping[str, Any]
    rows: Mapping[str, frozenset[int]]

    @property
    def size(self) -> int:
        """How many source rows contribute, over all sources."""
        return sum(len(indices) for indices in self.rows.values())


def instant(micros: int) -> datetime:
    """Turn microseconds since 1970 into a UTC timestamp.

    Examples:
        >>> instant(1_000_000).isoformat()
        '1970-01-01T00:00:01+00:00'
    """
    return _EPOCH + timedelta(microseconds=micros)


def span(start: int, length: int) -> dict[str, datetime]:
    """Spell a window, given in microseconds, as a collected row spells it.

    Examples:
        >>> span(0, 60_000_000)["end"].isoformat()
        '1970-01-01T00:01:00+00:00'
    """
    return {"start": instant(start), "end": instant(start + length)}


def micros_of(table: pa.Table, column: str) -> list[int]:
    """List a timestamp column as microseconds since 1970."""
    micros: list[int] = table[column].cast("int64").to_pylist()
    return micros
