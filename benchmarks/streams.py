"""The data of the overhead benchmark: finite streams, made once and shared by queries.

Reports and readings come from the workloads. Ticks are the stream of the small questions: every
second one row of each key, in order of time, so that a window of so many seconds holds so many
rows of a key, and with one key they follow each other in the file.
"""

from __future__ import annotations

import datetime as dt
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from clew.workloads import linear_road, write_files
from domains import smart_grid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEED = 7
_START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
_TICKS = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.int64()),
        pa.field("value", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Data:
    """A stream's files.

    Attributes:
        name: What the source is called; equal data has an equal name.
        schema: Its columns, for `spark.readStream.schema`.
        make: Makes about so many rows, and the row that closes all windows.
    """

    name: str
    schema: str
    make: Callable[[int], tuple[pa.Table, pa.Table]]


@dataclass(frozen=True)
class Stream:
    """Data that was written.

    Attributes:
        data: What it is.
        folder: Where its files are.
        rows: How many rows they have.
        per_trigger: How many files make a batch.
    """

    data: Data
    folder: Path
    rows: int
    per_trigger: int


@functools.cache
def write(data: Data, folder: Path, rows: int, *, batches: int) -> Stream:
    """Write data as files that a stream takes in so many batches; keep what is there."""
    files = batches * max(2, -(-6 // batches))
    place = folder / f"{data.name}-{rows}-{files}"
    table, closing = data.make(rows)
    if not place.exists():
        write_files(table, place, files=files, closing=closing)
    return Stream(data, place, table.num_rows + closing.num_rows, files // batches)


def _reports(rows: int) -> tuple[pa.Table, pa.Table]:
    minutes = 100
    cars = max(2_000, rows // (2 * minutes))
    minutes = max(10, min(minutes, rows // (2 * cars)))
    special = {"stopped": cars * 3 // 20, "accidents": cars // 40}
    table = linear_road.reports(cars=cars, minutes=minutes, seed=SEED, **special)
    return table, linear_road.closing_report(table)


def _readings(rows: int) -> tuple[pa.Table, pa.Table]:
    days = 28
    meters = rows // (24 * days)
    special = {"blackouts": 2, "compensations": meters // 100}
    table = smart_grid.readings(meters=meters, days=days, seed=SEED, **special)
    return table, smart_grid.closing_reading(table)


def ticks(keys: int) -> Data:
    """Describe a stream with one row per second and key."""

    def make(rows: int) -> tuple[pa.Table, pa.Table]:
        seconds = rows // keys
        start = int(_START.timestamp())
        rng = np.random.default_rng(SEED)
        columns = {
            "ts": (start + np.repeat(np.arange(seconds), keys)) * 1_000_000,
            "key": np.tile(np.arange(keys), seconds),
            "value": rng.integers(0, 1_000, size=seconds * keys),
        }
        made = {name: pa.array(values) for name, values in columns.items()}
        closing = {"ts": _START + dt.timedelta(seconds=seconds, days=30), "key": -1, "value": 0}
        return pa.table(made).cast(_TICKS), pa.Table.from_pylist([closing], schema=_TICKS)

    return Data(f"ticks_{keys}", "ts timestamp, key long, value long", make)


REPORTS = Data("reports", linear_road.SCHEMA, _reports)
READINGS = Data("readings", smart_grid.SCHEMA, _readings)
