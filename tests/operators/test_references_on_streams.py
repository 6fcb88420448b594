"""The event time of a stream may be taken as `frame["ts"]` before a step that keeps state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from frames import answers, at, stream_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = [
    {"rid": 1, "ts": at("12:00:01"), "meter": "a", "kwh": 1},
    {"rid": 2, "ts": at("12:00:02"), "meter": "b", "kwh": 2},
    {"rid": 3, "ts": at("12:00:03"), "meter": "a", "kwh": 3},
]
STEPS: dict[str, Callable[[Any], Any]] = {
    "distinct": lambda t: t.filter(t["ts"].isNotNull()).select("meter").distinct(),
    "duplicates": lambda t: t.filter(t.ts.isNotNull()).dropDuplicates(["meter"]),
    "within": lambda t: t.filter(t.ts.isNotNull()).dropDuplicatesWithinWatermark(["meter"]),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_stream_without_duplicates_may_refer_to_its_event_time(
    spark: SparkSession, tmp_path: Path, step: str
) -> None:
    traces = stream_traces(
        spark,
        tmp_path,
        lambda t: STEPS[step](t.withWatermark("ts", "10 seconds")),
        ROWS[:2],
        ROWS[2:],
    )

    assert answers(traces, "meter") == {"a": {1}, "b": {2}}


def test_two_frames_may_refer_to_it(spark: SparkSession, tmp_path: Path) -> None:
    def grouped(t: Any) -> Any:
        marked = t.withWatermark("ts", "0 seconds")
        later = marked.filter(marked["ts"].isNotNull())
        later = later.filter(later["ts"].isNotNull())
        return later.groupBy(F.window(later["ts"], "2 seconds")).agg(F.count("*").alias("n"))

    closing = {"rid": 9, "ts": at("12:01:00"), "meter": "z", "kwh": 0}
    traces = stream_traces(spark, tmp_path, grouped, ROWS, [closing])

    assert answers(traces, "n") == {1: {1}, 2: {2, 3}}
