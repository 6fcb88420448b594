"""Event keys that were recorded, as an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew import show
from clew.exceptions import UnknownStreamError
from clew.model import RowId
from clew.show.arrow import to_python
from clew.store.asserted import assertions_of, recorded_streams

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from clew.again.cost import Form
    from clew.again.estimate import Estimate
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

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold."""
        return {
            "stream": self.stream,
            "writer": self.writer,
            "same_as": self.same_as,
            "rows": self.rows,
            "content": self.has_content,
        }


def recording_lines(found: Sequence[Recording]) -> list[show.Line]:
    """Return what was recorded as lines of text."""
    cells = [
        [
            each.stream,
            each.writer,
            f"{each.rows:,}",
            "keys and content" if each.has_content else "keys",
            "" if each.same_as is None else f"those of {each.same_as}",
        ]
        for each in found
    ]
    head = f"{show.count(len(found), 'stream')} recorded"
    if not cells:
        return [show.Line("headline", head)]
    table = show.table(["stream", "query", "rows", "kept", "rows are"], cells)
    return [show.Line("headline", head), *table]


def estimate_lines(found: Estimate) -> list[show.Line]:
    """Return a prediction as lines of text."""
    forms: tuple[Form, ...] = ("optimised", "unoptimised")
    kept = {"optimised": "content of sources only", "unoptimised": "content of every stream"}
    lines = [show.Line("headline", f"for {found.rows:,} source rows")]
    cells = [
        [kept[form], _size(found.storage(form)), _size(found.marginal_storage(form))]
        for form in forms
    ]
    lines += show.table(["kept", "in all", "for each step"], cells)
    streams = [
        [
            each.name,
            each.kind,
            f"{each.rows * found.rows:,.0f}",
            f"{each.key_bytes:.2f}",
            f"{each.content_bytes:.1f}",
        ]
        for each in found.streams
    ]
    lines += show.table(["stream", "step", "rows", "key B", "content B"], streams)
    if found.memory_bytes is not None:
        size = _size(found.memory_bytes)
        text = f"properties take about {size} of Spark's state, and more while a batch is worked on"
        lines.append(show.Line("note", text))
    return lines


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    raise AssertionError


@dataclass(frozen=True, slots=True)
class Assertions:
    """Recorded rows of a stream, in the order of their sequence numbers.

    Attributes:
        stream: The stream.
        total: How many rows are recorded.
        table: The rows that were asked for.
        pruned: How many rows were recorded before, and pruned.
    """

    stream: str
    total: int
    table: pa.Table = field(repr=False)
    pruned: int = 0

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Assertion]:
        columns = [to_python(self.table[name]) for name in (*_COLUMNS, "row")]
        for seq, a, b, time, delay, row in zip(*columns, strict=True):
            yield Assertion(RowId(self.stream, a, b), time, seq, delay, row)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data that JSON can hold."""
        rows = [each.to_dict() for each in self]
        return {
            "stream": self.stream,
            "total": self.total,
            "pruned": self.pruned,
            "assertions": rows,
        }

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
        if self.pruned:
            lines.append(show.Line("warning", f"missing: {self.pruned:,} more were pruned"))
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
    return Assertions(stream, found.rows, session.table(sql, found.params), found.pruned)
