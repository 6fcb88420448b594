"""Event keys that were recorded, as an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.exceptions import UnknownStreamError
from clew.model import RowId
from clew.query import show
from clew.query.row import to_python
from clew.store.asserted import assertions_of, recorded_streams

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from clew.store.engine import Session

_COLUMNS = ("seq", "a", "b", "time", "delay")


@dataclass(frozen=True, slots=True)
class Assertion:
    """One row of a stream, as it was recorded.

    Attributes:
        id: The row.
        time: When it was, in event time.
        seq: Its place in the stream, from 1: in the order it was recorded, by time and id.
        delay: Microseconds from the latest row that it was made of to itself.
        row: The row's content; None if it was not recorded or was erased.
    """

    id: RowId
    time: dt.datetime | None
    seq: int
    delay: int | None
    row: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the assertion as plain data that JSON can hold."""
        return {
            "stream": self.id.stream,
            "id": self.id.text,
            "time": show.plain(self.time),
            "seq": self.seq,
            "delay_us": self.delay,
            "row": show.plain(self.row),
        }


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded of one stream.

    Attributes:
        stream: The stream.
        writer: The query that it is a part of.
        same_as: The stream whose rows these are, if they need no record of their own.
        rows: How many rows it has.
        has_content: The rows themselves were recorded.
    """

    stream: str
    writer: str
    same_as: str | None
    rows: int
    has_content: bool


@dataclass(frozen=True, slots=True)
class Assertions:
    """Recorded rows of a stream, in the order of their sequence numbers."""

    stream: str
    total: int
    table: pa.Table = field(repr=False)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Assertion]:
        columns = [to_python(self.table[name]) for name in (*_COLUMNS, "row")]
        for seq, a, b, time, delay, row in zip(*columns, strict=True):
            yield Assertion(RowId(self.stream, a, b), time, seq, delay, row)

    def lines(self, hint: str = "") -> list[show.Line]:
        """Return the answer as lines of text."""
        head = f"{show.escape(self.stream)}: {show.count(self.total, 'row')} recorded"
        found = list(self)
        cells = [
            [
                str(each.seq),
                each.id.text,
                show.cell(each.time),
                "" if each.delay is None else f"{each.delay / 1000:g} ms",
                "" if each.row is None else show.cell(each.row),
            ]
            for each in found
        ]
        lines: list[show.Line] = [show.Line("headline", head)]
        lines += show.table(["seq", "id", "time", "delay", "row"], cells)
        if self.total > len(found):
            lines.append(show.Line("note", f"{self.total - len(found):,} more{hint}"))
        return lines

    def __repr__(self) -> str:
        return show.join(self.lines())


def recordings(root: Path) -> list[Recording]:
    """List what is recorded in a store."""
    streams = recorded_streams(root)
    return [
        Recording(
            name,
            each.writer,
            each.same_as,
            assertions_of(root, streams, name).rows,
            each.has_content,
        )
        for name, each in streams.items()
    ]


def assertions(root: Path, session: Session, stream: str, limit: int | None) -> Assertions:
    """Read the recorded rows of a stream.

    Raises:
        UnknownStreamError: None are recorded.
    """
    streams = recorded_streams(root)
    if stream not in streams:
        raise UnknownStreamError(stream, tuple(streams))
    found = assertions_of(root, streams, stream)
    sql = f"SELECT * FROM {found.sql} ORDER BY seq"
    sql += "" if limit is None else f" LIMIT {int(limit)}"
    return Assertions(stream, found.rows, session.table(sql, found.params))
