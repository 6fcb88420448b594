"""A connection point over a long run: the same answers, and a size that does not grow.

Batches come in several runs of one query. After each run the point may hold what the open windows
still need, and no more than after the first, however many batches there have been.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import clew
from clew.testing import all_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL
from proof.case import Outcome, Setting, check, difference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
_PER_WINDOW = 4


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check the size after each of ten runs of twenty batches, and then all answers."""
    runs, each = (2, 3) if setting.quick else (10, 20)
    folder, spark = setting.folder, setting.spark
    (folder / "in").mkdir()
    stream = read_batches(spark, folder / "in", READINGS_DDL)
    pointed = _sums(clew.trace(stream, "readings", event_time="ts", point=["rid", "meter", "kwh"]))
    held: list[int] = []

    def is_flat(run: int) -> str:
        write_batches(folder / "in", READINGS, [_batch(run * each + n) for n in range(each)])
        run_stream(pointed, folder / "prov", "sums", checkpoint=folder / "c", capture="pointers")
        held.append(_rows(folder / "prov" / "points" / "sums" / "readings"))
        most = 2 * len(_batch(0))
        return "" if held[-1] <= most else f"the point holds {held[-1]} rows; after each run {held}"

    for run in range(runs):
        yield check(f"size of a connection point after {(run + 1) * each} batches", is_flat, run)

    def same() -> str:
        wanted = [
            (f"m{m}", frozenset(r["rid"] for r in _batch(n) if r["meter"] == f"m{m}"))
            for n in range(runs * each - 1)
            for m in range(2)
        ]
        traces = all_traces(folder / "prov", "sums")
        rids = (frozenset(rid for _, rid in t.refs("rid")) for t in traces)
        found = [(t.values["meter"], r) for t, r in zip(traces, rids, strict=True)]
        return difference(wanted, found)

    yield check("answers from a connection point", same)


def _batch(number: int) -> list[dict[str, Any]]:
    """Make the rows of one window of each of two meters."""
    times = [_START + dt.timedelta(minutes=number, seconds=10 * i) for i in range(_PER_WINDOW)]
    return [
        {"rid": 100 * number + 10 * m + i, "ts": at, "meter": f"m{m}", "kwh": i}
        for m in range(2)
        for i, at in enumerate(times)
    ]


def _sums(frame: clew.TracedFrame) -> clew.TracedFrame:
    grouped = frame.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "1 minute"), "meter")
    return grouped.agg(F.sum("kwh").alias("kwh"))


def _rows(place: Path) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in place.rglob("*.parquet"))
