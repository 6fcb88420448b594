"""Streams that are joined on windows, without a time beside them, are computed a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

import clew
from clew.testing import (
    read_batches,
    replayed_traces,
    stream_pointed_rows,
    unfolded_traces,
    write_batches,
)
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def reading(rid: int, clock: str) -> dict[str, Any]:
    return {"rid": rid, "ts": at(clock), "meter": "m", "kwh": 1}


def by_window(spark: SparkSession, folder: Path, name: str) -> clew.TracedFrame:
    stream = read_batches(spark, folder / name, READINGS_DDL)
    marked = clew.trace(stream, name, event_time="ts").withWatermark("ts", "0 seconds")
    return marked.select(F.window("ts", "10 seconds").alias("w"), "meter", F.col("rid").alias(name))


def test_rows_joined_on_windows_have_the_same_sources_when_replayed(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        batches = [
            [reading(1, "12:00:01")],
            [reading(2, "12:00:31")],
            [reading(3, "12:00:52")],
            # The window of the first has closed, so nothing is joined with it.
            [reading(4, "12:00:02"), reading(5, "12:01:11")],
        ]
        write_batches(tmp_path / name, READINGS, batches)
    frame = by_window(spark, tmp_path, "one").join(
        by_window(spark, tmp_path, "other"), ["w", "meter"]
    )
    rows: list[pa.Table] = []
    stream_pointed_rows(frame, tmp_path / "chk", rows).awaitTermination()
    table = pa.concat_tables(rows)

    expected = [(n, frozenset({("one", n), ("other", n)})) for n in (1, 2, 3, 5)]
    for traces in (unfolded_traces, replayed_traces):
        found = traces(frame, table, tmp_path / "chk")
        assert sorted((row.values["one"], row.refs("rid")) for row in found) == expected
