"""The bound U: what it is for queries of every shape, and that no row outlives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.expiry.between import Between, between
from clew.expiry.bound import Bound, bounds, widest
from clew.store.layout import EDGES, batches_folder, read_json
from clew.testing import read_batches, read_edges, run_stream, write_batches
from clew.workloads import linear_road
from domains import smart_grid
from frames import READINGS, READINGS_DDL, at, scattered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Frame = clew.TracedFrame

SECOND = 1_000_000
HOUR = 3_600 * SECOND


@pytest.fixture(scope="module")
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("bound") / "in"
    row = {"rid": 1, "ts": at("12:00:00"), "meter": "m", "kwh": 1}
    write_batches(folder, READINGS, [[row]])
    return read_batches(spark, folder, READINGS_DDL)


@pytest.fixture(scope="module")
def readings(stream: DataFrame) -> Frame:
    return clew.trace(stream, "readings", event_time="ts")


def summed(frame: Frame, size: str = "20 seconds", slide: str | None = None) -> Frame:
    over = F.window("ts", size, slide)
    return frame.groupBy(over, "meter").agg(F.sum("kwh").alias("kwh"))


def test_the_bounds_of_the_workloads(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    def source(name: str, schema: str) -> Frame:
        stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
        return clew.trace(stream, name, event_time="ts")

    reports = source("reports", linear_road.SCHEMA)
    meters = source("readings", smart_grid.SCHEMA)
    found = {
        "stopped cars": bounds(linear_road.stopped_cars(reports).node)["reports"],
        "accidents": bounds(linear_road.accidents_from_reports(reports).node)["reports"],
        "blackouts": bounds(smart_grid.blackouts(meters).node)["readings"],
        "anomalies": bounds(smart_grid.anomalies(meters).node)["readings"],
    }

    assert {name: (b.micros, b.waits, b.by_arrival, b.why) for name, b in found.items()} == {
        "stopped cars": (120 * SECOND, True, False, ()),
        "accidents": (150 * SECOND, True, False, ()),
        "blackouts": (48 * HOUR, True, False, ()),
        # A midnight reading meets a day without passing a window, so it may be late.
        "anomalies": (25 * HOUR, True, True, ()),
    }
    assert widest(found.values()) == 48 * HOUR


def test_where_nothing_waits_the_watermark_is_no_matter(readings: Frame) -> None:
    exploded = readings.filter("kwh > 0").select("rid", F.explode(F.array("kwh", "kwh")))

    assert bounds(exploded.node) == {"readings": Bound(0, waits=False, by_arrival=True)}


UNBOUNDED: list[tuple[str, Callable[[Frame], Frame], str]] = [
    (
        "session",
        lambda f: (
            f.withWatermark("ts", "5 seconds")
            .groupBy(F.session_window("ts", "5 seconds"), "meter")
            .agg(F.count("*").alias("n"))
        ),
        "a session window may grow without end",
    ),
    (
        "duplicates",
        lambda f: f.dropDuplicates(["rid"]),
        "`dropDuplicates` without a watermark remembers rows for ever",
    ),
    (
        "no window",
        lambda f: f.groupBy("meter").agg(F.count("*").alias("n")),
        "`count(*) AS n by meter` has no window",
    ),
    (
        "another time",
        lambda f: summed(
            f.withColumn("ts", F.expr("ts + interval 1 hour")).withWatermark("ts", "0 seconds")
        ),
        "the watermark is on `ts`, which is not the source's event time",
    ),
    (
        "no bounds",
        lambda f: (
            f.withWatermark("ts", "5 seconds")
            .alias("l")
            .join(
                f.withWatermark("ts", "5 seconds").alias("r"),
                F.expr("l.meter = r.meter and l.ts <= r.ts"),
            )
        ),
        "the join on",
    ),
]


@pytest.mark.parametrize(
    ("query", "why"), [u[1:] for u in UNBOUNDED], ids=[u[0] for u in UNBOUNDED]
)
def test_steps_without_a_bound_are_named(
    readings: Frame, query: Callable[[Frame], Frame], why: str
) -> None:
    [bound] = bounds(query(readings).node).values()

    assert bound.micros is None
    assert bound.why[-1].startswith(why)


def test_duplicates_within_the_watermark_do_not_wait(readings: Frame) -> None:
    once = readings.withWatermark("ts", "5 seconds").dropDuplicatesWithinWatermark(["rid"])

    assert bounds(once.node)["readings"].micros == 0
    assert not bounds(once.node)["readings"].waits


def test_a_table_stays_alive_beside_a_stream(spark: SparkSession, readings: Frame) -> None:
    meters = clew.trace(spark.createDataFrame([("m", 1)], "meter string, area int"), "meters")
    joined = summed(readings.withWatermark("ts", "5 seconds")).join(meters, "meter")

    found = bounds(joined.node)

    assert found["readings"].micros == 20 * SECOND
    assert found["meters"].micros is None
    assert found["meters"].why == ("any later row of the stream may be joined with it",)


def test_the_longest_path_counts(stream: DataFrame, readings: Frame) -> None:
    other = clew.trace(stream.withColumnRenamed("ts", "seen"), "others", event_time="seen")
    both = readings.union(other.select("rid", "seen", "meter", "kwh")).withWatermark(
        "ts", "1 second"
    )
    hours = summed(readings.withWatermark("ts", "5 seconds"), "1 hour")
    minutes = hours.groupBy(F.window(F.window_time("window"), "90 minutes")).agg(F.sum("kwh"))

    assert {n: b.micros for n, b in bounds(summed(both, "40 seconds").node).items()} == {
        "readings": 40 * SECOND,
        "others": 40 * SECOND,
    }
    assert bounds(minutes.node)["readings"].micros == 2.5 * HOUR


CONDITIONS = [
    ("r.ts >= l.ts and r.ts <= l.ts + interval 20 seconds", (0, 20 * SECOND)),
    ("r.ts between l.ts - interval 90 minutes and l.ts", (-90 * 60 * SECOND, 0)),
    ("l.ts >= r.ts - interval 1 hour and l.ts < r.ts + interval '1 02:00:00' day to second",
     (-26 * HOUR, HOUR)),
    ("r.ts - interval 3 seconds > l.ts and l.ts + interval 10 seconds >= r.ts",
     (3 * SECOND, 10 * SECOND)),
    ("l.ts = r.ts", (0, 0)),
    ("r.ts >= l.ts", (0, None)),
    ("r.ts >= l.ts or r.ts <= l.ts + interval 20 seconds", (None, None)),
    ("not (r.ts < l.ts) and r.ts <= l.ts + interval 5 seconds and r.kwh > l.kwh", (0, 5 * SECOND)),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_the_bounds_of_a_join_are_read_off_its_condition(
    readings: Frame, condition: str, expected: tuple[int | None, int | None]
) -> None:
    left = readings.withWatermark("ts", "5 seconds").alias("l")
    right = readings.withWatermark("ts", "5 seconds").alias("r")

    found = between(left.join(right, F.expr(f"l.meter = r.meter and {condition}")).node)

    assert found == Between(*expected)


def nested(frame: Frame) -> Frame:
    sums = summed(frame.withWatermark("ts", "10 seconds"), "20 seconds", "10 seconds")
    return sums.groupBy(F.window(F.window_time("window"), "40 seconds")).agg(F.sum("kwh"))


def joined(frame: Frame) -> Frame:
    marked = frame.withWatermark("ts", "10 seconds")
    condition = "l.meter = r.meter and r.ts > l.ts and r.ts <= l.ts + interval 30 seconds"
    return (
        marked.alias("l")
        .join(marked.alias("r"), F.expr(condition))
        .select(F.col("l.rid").alias("first"), F.col("r.rid").alias("second"))
    )


def sums_joined(frame: Frame) -> Frame:
    marked = frame.withWatermark("ts", "10 seconds")
    sums = summed(marked).select(F.window_time("window").alias("end"), "meter", "kwh")
    later = marked.select(F.col("ts").alias("then"), F.col("meter").alias("m"), "rid")
    condition = "meter = m and then > end and then <= end + interval 15 seconds"
    return sums.join(later, F.expr(condition))


def computed(frame: Frame) -> Frame:
    """Group by windows that were computed before, and renamed since."""
    windows = frame.withWatermark("ts", "10 seconds").select(
        F.window("ts", "40 seconds", "20 seconds").alias("w"), "meter", "kwh"
    )
    return windows.withColumnRenamed("w", "span").groupBy("span", "meter").agg(F.sum("kwh"))


@pytest.mark.parametrize("query", [nested, joined, sums_joined, computed])
@pytest.mark.parametrize("seed", [2])
def test_no_row_takes_part_after_it_expired(
    spark: SparkSession, tmp_path: Path, query: Callable[[Frame], Frame], seed: int
) -> None:
    print(f"seed {seed}")
    write_batches(tmp_path / "in", READINGS, scattered(seed, 12, late=40))
    stream = read_batches(spark, tmp_path / "in", READINGS_DDL)
    frame = query(clew.trace(stream, "readings", event_time="ts", id=["rid"]))
    [bound] = bounds(frame.node).values()
    assert bound.micros is not None
    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", capture="sets")

    before = None
    oldest = 0
    for path in sorted(batches_folder(tmp_path / "prov", "out").glob("*.json")):
        said = read_json(path)
        for file in (f for f in said["files"] if f.startswith(EDGES)):
            for edge in read_edges(tmp_path / "prov" / file).to_pylist():
                time = _times(tmp_path / "prov", said)[edge["source_a"], edge["source_b"]]
                if before is not None:
                    assert time >= before - bound.micros, (edge, path.name)
                    oldest = max(oldest, before - time)
        before = said["watermark_ms"] * 1000
    assert oldest > 0, "no row took part after the watermark had passed it, so nothing was shown"


def _times(root: Path, batch: dict[str, Any]) -> dict[tuple[int, int], int]:
    import pyarrow.parquet as pq

    found = {}
    for file in batch["files"]:
        if file.startswith("rows") and "/readings/" in file:
            table = pq.read_table(root / file, partitioning=None, coerce_int96_timestamp_unit="us")
            for row in table.to_pylist():
                found[row["a"], row["b"]] = int(row["time"].timestamp() * SECOND)
    return found
