"""What a worked example is: sources, a pipeline, and the sink rows it must give.

The one fact that shapes this file: a case says nothing about how it is run. Its pipeline is a
function over frames with Spark's verbs (`Frame`), so plain DataFrames and traced ones take the
same path, in batch and as a stream. Every source row has a `label`, a column like the others, so
that a source row found again anywhere can be told by name. Pipelines never let it reach a sink.
Start at `SeedCase`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

Values: TypeAlias = Mapping[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FIRST_DAY = datetime(2020, 1, 1, tzinfo=timezone.utc)
OLDEST_FILE = 1_600_000_000

ARROW_TYPES: Mapping[str, pa.DataType] = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}


class Frame(Protocol):
    """The verbs of a DataFrame that the pipelines use."""

    def filter(self, condition: Any, /) -> Frame:
        """Keep the rows that meet a condition."""

    def select(self, *cols: Any) -> Frame:
        """Compute columns row by row."""

    def withColumn(self, name: str, col: Any, /) -> Frame:
        """Add or replace a column."""

    def withWatermark(self, column: str, delay: str, /) -> Frame:
        """Say how late rows may be."""

    def groupBy(self, *cols: Any) -> GroupedFrame:
        """Group rows by columns."""

    def join(self, other: Any, on: Any, how: str, /) -> Frame:
        """Pair rows with the rows of another frame."""

    def unionByName(self, other: Any, /) -> Frame:
        """Put the rows of two frames together."""


class GroupedFrame(Protocol):
    """What `groupBy` gives."""

    def agg(self, *exprs: Any) -> Frame:
        """Make one row of each group."""


Pipeline: TypeAlias = Callable[[Mapping[str, Frame]], Mapping[str, Frame]]


class SeedSource(NamedTuple):
    """One source: its rows in micro-batches, and the row that ends it as a stream.

    Attributes:
        schema: The columns as a Spark DDL string, `label STRING` among them.
        event_time: The column that carries event time.
        batches: The rows, one inner tuple per micro-batch.
        closing: A row so late that the watermark passes every window behind it. It belongs to
            the stream only, and makes no sink row. It passes the filters in front of the first
            window, since Spark may apply those before it looks at event times. `None` where no
            operator waits.
    """

    schema: str
    event_time: str
    batches: tuple[tuple[Values, ...], ...]
    closing: Values | None = None

    def rows(self) -> tuple[Values, ...]:
        """Return all rows of all micro-batches, without the closing one."""
        return tuple(row for batch in self.batches for row in batch)


class SeedRow(NamedTuple):
    """A sink row, and the labels of the source rows that contributed to it."""

    values: Values
    labels: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class SeedCase:
    """A worked example that can be run.

    Attributes:
        name: Unique among all cases; it names the test.
        seed: File name of the document.
        where: Section and figure in it.
        note: What the document says, what was made up to fit it, which reading was taken.
        sources: The sources by name.
        pipeline: Builds the sinks from frames, one per source; columns by name only.
        delay: How late rows may be, the same for every source.
        expected: For each sink all rows it gets, in no order. Dropping any labelled row loses or
            changes the sink row, so a set of labels can be neither too small nor too large.
    """

    name: str
    seed: str
    where: str
    note: str
    sources: Mapping[str, SeedSource]
    pipeline: Pipeline
    expected: Mapping[str, tuple[SeedRow, ...]]
    delay: str = "0 seconds"

    def build(self, frames: Mapping[str, Frame]) -> Mapping[str, Frame]:
        """Set the watermarks and build the sinks.

        Args:
            frames: One frame per source, batch or streaming, plain or traced.

        Returns:
            One frame per sink, of the kind that came in.
        """
        marked = {
            name: frame.withWatermark(self.sources[name].event_time, self.delay)
            for name, frame in frames.items()
        }
        return self.pipeline(marked)

    def labels(self) -> frozenset[str]:
        """Return the labels of all source rows, closing rows left out."""
        return frozenset(
            str(row["label"]) for source in self.sources.values() for row in source.rows()
        )


def row(values: Values, *labels: str) -> SeedRow:
    """Say that a sink row was made from the source rows with these labels.

    Examples:
        >>> row({"n": 2}, "a", "b").labels == {"a", "b"}
        True
    """
    return SeedRow(values, frozenset(labels))


def at(clock: str, *, day: int = 1) -> datetime:
    """Return a time of day, in UTC.

    Examples:
        >>> at("08:00:01", day=2).isoformat()
        '2020-01-02T08:00:01+00:00'
    """
    hours, minutes, seconds = (*map(int, clock.split(":")), 0)[:3]
    return FIRST_DAY + timedelta(days=day - 1, hours=hours, minutes=minutes, seconds=seconds)


def since_epoch(seconds: float) -> datetime:
    """Return the time that many seconds after the epoch.

    Examples:
        >>> since_epoch(32).isoformat()
        '1970-01-01T00:00:32+00:00'
    """
    return EPOCH + timedelta(seconds=seconds)


def columns(schema: str) -> dict[str, str]:
    """Read a DDL string of plain columns into names and types.

    Examples:
        >>> columns("label STRING, ts TIMESTAMP")
        {'label': 'STRING', 'ts': 'TIMESTAMP'}
    """
    pairs = (column.split() for column in schema.split(","))
    return {name: kind.upper() for name, kind in pairs}


def write_batches(source: SeedSource, folder: Path, *, closed: bool) -> list[Path]:
    """Write a source as Parquet, one file per micro-batch.

    Modification times rise from file to file, so a stream that takes one file per trigger sees
    the micro-batches in order. Row `i` of micro-batch `b` is row `i` of file `b`.

    Args:
        source: The source to write.
        folder: Where the files go; it is created.
        closed: Whether the closing row follows as a last file.

    Returns:
        The files in order.
    """
    closing = ((source.closing,),) if closed and source.closing is not None else ()
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in columns(source.schema).items()])
    folder.mkdir(parents=True)
    files = []
    for number, batch in enumerate((*source.batches, *closing)):
        path = folder / f"batch-{number:03}.parquet"
        pq.write_table(pa.Table.from_pylist([dict(row) for row in batch], schema=schema), path)
        os.utime(path, (OLDEST_FILE + number, OLDEST_FILE + number))
        files.append(path)
    return files
