"""How much of a source is read again: enough to have windows whole, and not much more."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import clew
from clew.again.cover import Cover, Reach, Span, covers
from clew.again.reach import reach
from frames import READINGS_DDL, answers, at, stream_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

SECONDS = 1_000_000


def dark(frame: Frame, slide: str = "10 seconds", outer: str = "1 minute") -> Frame:
    """Count the windows of 10 seconds without consumption."""
    inner = frame.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "10 seconds", slide))
    still = inner.agg(F.sum("kwh").alias("kwh")).filter("kwh = 0")
    return still.groupBy(F.window(F.window_time("window"), outer)).agg(F.count("*").alias("n"))


def empty(spark: SparkSession, folder: Path) -> Frame:
    """Trace a stream of readings without any."""
    stream = spark.readStream.schema(READINGS_DDL).parquet(str(folder))
    return clew.trace(stream, "readings", event_time="ts")


def spans(*pairs: tuple[int, int]) -> pa.Table:
    lows, highs = zip(*pairs, strict=True)
    return pa.table({"_clew_lo_readings": lows, "_clew_hi_readings": highs})


@pytest.mark.parametrize(
    ("how_far", "expected"),
    [
        (Reach(0), [(12, 17), (41, 41)]),
        (Reach(5), [(7, 22), (36, 46)]),
        (Reach(5, frozenset({"readings"})), [(12, 17), (36, 46)]),
        (Reach(5, cell=10), [(10, 19), (40, 49)]),
    ],
)
def test_what_is_read_around_a_span(how_far: Reach, expected: list[tuple[int, int]]) -> None:
    found = covers([spans((12, 17), (41, 41))], how_far)
    assert found == {"readings": Cover(tuple(Span(*each) for each in expected))}


def test_how_much_of_a_file_is_needed() -> None:
    cover = Cover((Span(10, 19), Span(40, 49)))
    assert [cover.within(0, 99), cover.within(15, 44), cover.within(20, 39)] == [20, 10, 0]
    assert Cover().within(3, 5) == 3


@pytest.mark.parametrize(
    ("query", "cell"),
    [
        (dark, 10 * SECONDS),
        (lambda f: dark(f.filter("kwh < 2")), 10 * SECONDS),
        (lambda f: dark(f, slide="5 seconds"), None),
        (lambda f: dark(f.withColumn("ts", F.expr("ts + INTERVAL 3 SECONDS"))), None),
        (lambda f: dark(f).filter("n > 2").select("window"), 10 * SECONDS),
        (lambda f: dark(dark(f).selectExpr("window_time(window) AS ts", "n AS kwh")), None),
        (lambda f: f.groupBy(F.window("ts", "10 seconds")).count(), None),
    ],
)
def test_windows_side_by_side_are_read_whole(
    spark: SparkSession, tmp_path: Path, query: Callable[[Frame], Frame], cell: int | None
) -> None:
    node = query(empty(spark, tmp_path)).node
    assert reach(node, whole=False).cell == cell
    assert reach(node, whole=True).cell is None


@pytest.mark.parametrize(
    ("slide", "outer"), [("10 seconds", "1 minute"), ("5 seconds", "1 minute")]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_window_that_is_cut_off_passes_for_another(
    spark: SparkSession, tmp_path: Path, slide: str, outer: str, seed: int
) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    rows: list[dict[str, Any]] = [
        {
            "rid": second,
            "ts": at("12:00:00") + dt.timedelta(seconds=second),
            "meter": "m",
            "kwh": int(chosen.random() < 0.06),
        }
        for second in range(240)
    ]
    cuts = sorted(chosen.sample(range(1, 240), 6))
    files = [rows[i:j] for i, j in zip([0, *cuts], [*cuts, 240], strict=True)]
    end = {**rows[0], "rid": 999, "ts": at("13:00:00"), "kwh": 1}

    step = int(slide.split(maxsplit=1)[0])
    expected: dict[dt.datetime, set[int]] = {}
    for begin in range(step - 10, 240, step):
        inside = [row for row in rows if begin <= row["rid"] < begin + 10]
        if not any(row["kwh"] for row in inside):
            minute = at("12:00:00") + dt.timedelta(minutes=(begin + 9) // 60)
            expected.setdefault(minute, set()).update(row["rid"] for row in inside)

    traces = stream_traces(
        spark,
        tmp_path,
        lambda frame: dark(frame, slide, outer).selectExpr("window.start AS start", "n"),
        *files,
        [end],
        capture="pointers",
    )
    found = answers(traces, "start")
    found = {start.replace(tzinfo=dt.timezone.utc): rids for start, rids in found.items()}
    assert found == expected


def still(frame: Frame, meter: str, number: int) -> Frame:
    """Keep the windows in which a meter shows no consumption."""
    mine = frame.filter(F.col("meter") == meter).withWatermark("ts", "0 seconds")
    sums = mine.groupBy(F.window("ts", "10 seconds", "5 seconds")).agg(F.sum("kwh").alias("kwh"))
    times = F.window_time("window").alias(f"t{number}")
    return sums.filter("kwh = 0").select(times, F.lit("any").alias(f"m{number}"))


def test_windows_that_are_joined_may_be_far_from_the_result(
    spark: SparkSession, tmp_path: Path
) -> None:
    def row(second: int, meter: str, kwh: int) -> dict[str, Any]:
        when = at("12:00:00") + dt.timedelta(seconds=second)
        return {"rid": second, "ts": when, "meter": meter, "kwh": kwh}

    # Both are still for ten seconds; else, of the windows of `b`, only one that is cut off is.
    quiet = range(360, 370)
    rows: list[dict[str, Any]] = []
    for second in range(0, 720, 2):
        rows.append(row(second, "a", int(second not in quiet)))
        rows.append(row(second + 1, "b", int(second not in quiet and second % 10 == 4)))
    files = [rows[i : i + 90] for i in range(0, len(rows), 90)]
    end = [row(3600, "a", 1), row(3601, "b", 1)]

    def pairs(frame: Frame) -> Frame:
        near = "t2 BETWEEN t1 - INTERVAL 4 MINUTES AND t1 + INTERVAL 4 MINUTES"
        joined = still(frame, "a", 1).join(still(frame, "b", 2), F.expr(f"m1 = m2 AND {near}"))
        return joined.groupBy(F.window("t1", "10 seconds")).agg(F.count("*").alias("n"))

    traces = stream_traces(spark, tmp_path, pairs, *files, end, capture="pointers")
    assert [trace.values["n"] for trace in traces] == [2]  # 12:06:00 with itself and 12:06:05
    expected = {*range(360, 370), 371, 373}
    assert [{rid for _, rid in trace.refs("rid")} for trace in traces] == [expected]


def test_windows_over_another_time_than_the_source_is_read_by(
    spark: SparkSession, tmp_path: Path
) -> None:
    def row(second: int, seen: int, kwh: int) -> dict[str, Any]:
        when = at("12:00:00") + dt.timedelta(seconds=second)
        return {"rid": second + seen, "ts": when, "meter": str(seen), "kwh": kwh}

    # What was seen at 3 is in the middle; what was seen at 13 is zero around it, but not far away.
    rows = [
        row(second, seen, int(abs(second - 300) > 200))
        for second in range(0, 600, 5)
        for seen in ([3, 13] if 250 <= second < 350 else [13])
    ]

    def by_sight(frame: Frame) -> Frame:
        seen = frame.withColumn("seen", F.expr("timestamp_seconds(CAST(meter AS BIGINT))"))
        windows = seen.withWatermark("seen", "1 minute").groupBy(F.window("seen", "10 seconds"))
        quiet = windows.agg(F.sum("kwh").alias("kwh")).filter("kwh = 0")
        by_minute = quiet.groupBy(F.window(F.window_time("window"), "1 minute"))
        return by_minute.agg(F.count("*").alias("n"))

    [trace] = stream_traces(
        spark, tmp_path, by_sight, rows, [row(999, 1000, 1)], capture="pointers"
    )
    assert trace.values["n"] == 1
    assert {rid for _, rid in trace.refs("rid")} == set(range(253, 353, 5))


JOINED = "m1 = m2 AND t2 >= t1 AND t2 <= t1 + INTERVAL 30 SECONDS"


@pytest.mark.parametrize(
    ("query", "length"),
    [
        (lambda f: f.groupBy(F.window("ts", "10 seconds")).count(), 0),
        (dark, 0),
        (lambda f: dark(f, slide="5 seconds"), 70),
        (
            lambda f: dark(f.withColumn("ts", F.expr("ts + INTERVAL 3 SECONDS")), "5 seconds"),
            None,
        ),
        (
            lambda f: dark(
                f.withColumnRenamed("ts", "t").toDF("rid", "ts", "m", "kwh").drop("m"), "5 seconds"
            ),
            70,
        ),
        (
            lambda f: dark(
                f.select(F.col("ts").alias("t"), "kwh").selectExpr("t AS ts", "kwh"), "5 seconds"
            ),
            70,
        ),
        (
            lambda f: dark(
                f.withColumn("seen", F.expr("ts + INTERVAL 3 SECONDS")).withColumnsRenamed(
                    {"ts": "t", "seen": "ts"}
                ),
                "5 seconds",
            ),
            None,
        ),
        (lambda f: dark(f.select("*", F.col("ts").alias("again")), slide="5 seconds"), 70),
        (lambda f: dark(f.property("meters", F.col("meter"), merge="set"), "5 seconds"), 70),
        (
            lambda f: (
                still(f, "a", 1)
                .join(still(f, "b", 2), F.expr(JOINED))
                .groupBy(F.window("t1", "1 minute"))
                .count()
            ),
            60 + 10 + 10 + 2 * 30,
        ),
    ],
)
def test_how_far_one_must_read(
    spark: SparkSession, tmp_path: Path, query: Callable[[Frame], Frame], length: int | None
) -> None:
    node = query(empty(spark, tmp_path)).node
    found = reach(node, whole=False)
    expected = None if length is None else length * SECONDS
    assert found.length == expected
