"""For how long rows are kept where the window was computed before the grouping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import clew
from clew.expiry.bound import bounds
from clew.plan.duration import micros
from frames import READINGS_DDL

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Frame = clew.TracedFrame

MINUTE = 60_000_000
HOUR = 60 * MINUTE


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("lead")
    return spark.readStream.schema(READINGS_DDL).parquet(str(folder))


def marked(stream: DataFrame, name: str = "readings") -> Frame:
    return clew.trace(stream, name, event_time="ts").withWatermark("ts", "5 seconds")


def with_window(frame: Frame, size: str = "1 hour", slide: str | None = None) -> Frame:
    return frame.withColumn("w", F.window("ts", size, slide))


def by_reference(frame: Frame) -> Frame:
    made = with_window(frame)
    return made.groupBy(made["w"]).count()


def window_of_windows(frame: Frame) -> Frame:
    ends = with_window(frame, "1 hour", "30 minutes").withColumn("e", F.window_time("w"))
    return ends.withColumn("v", F.window("e", "2 hours")).groupBy("v").count()


def behind_an_aggregate(frame: Frame) -> Frame:
    sums = with_window(frame).groupBy("w", "meter").agg(F.sum("kwh").alias("kwh"))
    again = sums.select(F.window("w", "2 hours").alias("long"), "kwh")
    return again.groupBy("long").agg(F.sum("kwh").alias("kwh"))


def beside_the_clock(frame: Frame) -> Frame:
    # The first aggregation goes by `ts`, so it does not account for the window it hands on.
    first = frame.select("ts", F.window("ts", "1 hour").alias("w")).groupBy("ts", "w").count()
    return first.groupBy("w").agg(F.sum("count").alias("n"))


READ: dict[str, tuple[Callable[[Frame], Frame], int]] = {
    "select": (
        lambda f: f.select(F.window("ts", "1 hour"), "meter").groupBy("window").count(),
        HOUR,
    ),
    "sliding": (lambda f: with_window(f, "1 hour", "5 minutes").groupBy("w").count(), HOUR),
    "text": (lambda f: f.selectExpr("window(ts, '1 hour') AS w").groupBy("w").count(), HOUR),
    "star": (
        lambda f: f.select("*", F.window("ts", "1 hour").alias("w")).groupBy("w").count(),
        HOUR,
    ),
    "renamed": (
        lambda f: with_window(f).withColumnRenamed("w", "my w").groupBy("my w").count(),
        HOUR,
    ),
    "another case": (lambda f: with_window(f).groupBy("W").count(), HOUR),
    "frame and column": (lambda f: with_window(f).alias("a").groupBy("a.w").count(), HOUR),
    "reference": (by_reference, HOUR),
    "its end": (lambda f: with_window(f).groupBy(F.window_time("w")).count(), HOUR),
    "window of windows": (window_of_windows, 3 * HOUR),
    "exploded": (
        lambda f: with_window(f).select("w", F.explode(F.array("kwh", "kwh"))).groupBy("w").count(),
        HOUR,
    ),
    "behind an aggregate": (behind_an_aggregate, 3 * HOUR),
    "beside the clock": (beside_the_clock, HOUR),
    "the larger of two": (
        lambda f: with_window(f).union(with_window(f, "3 hours")).groupBy("w").count(),
        3 * HOUR,
    ),
    "duplicates left out": (
        lambda f: with_window(f).dropDuplicatesWithinWatermark(["rid"]).groupBy("w").count(),
        HOUR,
    ),
    "parts of a second": (lambda f: f.groupBy(F.window("ts", "90.5 seconds")).count(), 90_500_000),
    "no window": (lambda f: f.groupBy("ts").count(), 0),
}


def test_a_window_that_was_computed_before_counts_with_its_size(stream: DataFrame) -> None:
    found = {name: bounds(query(marked(stream)).node) for name, (query, _) in READ.items()}

    assert {name: each["readings"].micros for name, each in found.items()} == {
        name: size for name, (_, size) in READ.items()
    }
    assert not any(each["readings"].by_arrival for each in found.values())


def hourly(frame: Frame, time: str = "ts") -> Frame:
    return frame.withWatermark(time, "5 seconds").groupBy(F.window(time, "1 hour")).count()


THE_EVENT_TIME: dict[str, Callable[[Frame], Frame]] = {
    "renamed": lambda f: hourly(f.withColumnRenamed("ts", "at"), "at"),
    "all renamed": lambda f: hourly(f.toDF("r", "at", "m", "k"), "at"),
    "selected by another name": lambda f: hourly(f.select("kwh", F.col("ts").alias("at")), "at"),
    "beside what is dropped": lambda f: hourly(f.drop("kwh")),
    "behind a star": lambda f: hourly(f.select("*", F.lit(1).alias("one"))),
    "beside what is filled": lambda f: hourly(f.fillna(0).replace(1, 2)),
    "exploded": lambda f: hourly(f.select("ts", F.explode(F.array("kwh")).alias("k"))),
    "taken as a column of the frame": lambda f: hourly(f.select(f["ts"], "meter")),
}


def test_the_event_time_is_followed_by_whatever_name(stream: DataFrame) -> None:
    traced = clew.trace(stream, "readings", event_time="ts")
    found = {name: bounds(query(traced).node) for name, query in THE_EVENT_TIME.items()}

    assert {
        name: (b["readings"].micros, b["readings"].clock) for name, b in found.items()
    } == dict.fromkeys(THE_EVENT_TIME, (HOUR, ""))


NOT_THE_EVENT_TIME: dict[str, Callable[[Frame], Frame]] = {
    "moved": lambda f: hourly(f.withColumn("ts", F.expr("ts + interval 1 day"))),
    "cut off": lambda f: hourly(f.withColumn("at", F.date_trunc("day", "ts")), "at"),
    "written and parsed": lambda f: hourly(
        f.select(F.to_timestamp(F.date_format("ts", "HH:mm"), "HH:mm").alias("ts"))
    ),
}


def test_what_may_be_another_time_is_not_the_event_time(stream: DataFrame) -> None:
    traced = clew.trace(stream, "readings", event_time="ts")

    for name, query in NOT_THE_EVENT_TIME.items():
        bound = bounds(query(traced).node)["readings"]
        assert bound.micros is None, name
        assert "is not the source's event time" in bound.why[-1], name


NOT_READ: dict[str, tuple[Callable[[Frame], Frame], str]] = {
    "inside a struct": (
        lambda f: (
            f.select(F.struct(F.window("ts", "1 hour").alias("w")).alias("s"))
            .groupBy("s.w")
            .count()
        ),
        "for how long `s.w` keeps rows cannot be read off the query",
    ),
    "its parts": (lambda f: with_window(f).groupBy("w.end").count(), "has no window"),
    "arithmetic": (
        lambda f: f.groupBy(F.floor(F.unix_timestamp("ts") / 60).alias("minute")).count(),
        "has no window",
    ),
    "another time": (
        lambda f: (
            f.withColumn("o", F.expr("ts + interval 1 day"))
            .groupBy(F.window("o", "1 hour"))
            .count()
        ),
        "has no window",
    ),
    "a session": (
        lambda f: f.withColumn("w", F.session_window("ts", "5 minutes")).groupBy("w").count(),
        "a session window may grow without end",
    ),
}


def test_what_cannot_be_followed_has_no_bound(stream: DataFrame) -> None:
    for name, (query, why) in NOT_READ.items():
        bound = bounds(query(marked(stream)).node)["readings"]
        assert bound.micros is None, name
        assert why in bound.why[-1], name


def test_windows_that_are_joined_before_they_are_grouped(stream: DataFrame) -> None:
    left = with_window(marked(stream)).drop("ts")
    right = marked(stream, "others").select(F.window("ts", "1 hour").alias("w"), "rid")

    found = bounds(left.join(right, "w").node)

    # A row waits for others of its window, until the window is over.
    assert {n: each.micros for n, each in found.items()} == {"readings": HOUR, "others": HOUR}


def test_lengths_of_time_are_read_whole_or_not_at_all() -> None:
    texts = ["30.25 seconds", "1 hour -30 minutes", "'1' hour", "1.5.5 seconds", "2 weeks 1 day"]

    assert [micros(text) for text in texts] == [30_250_000, None, None, None, 15 * 24 * HOUR]
