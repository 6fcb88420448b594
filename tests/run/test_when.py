"""Results with a window have a time: its end."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import clew
from clew.again.recorded_streams import Time
from clew.plan.mask import NOTHING, read_mask
from clew.run.when import time_of_results
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

CAPTURES = ["sets", "pointers", "intervals", "keys"]
BATCHES = [
    [
        {"rid": 1, "ts": at("12:00:01"), "meter": "a", "kwh": 3},
        {"rid": 2, "ts": at("12:00:14"), "meter": "a", "kwh": 4},
        {"rid": 3, "ts": at("12:00:25"), "meter": "a", "kwh": 5},
    ],
    [{"rid": 9, "ts": at("13:00:00"), "meter": "a", "kwh": 1}],
]
ENDS = [at("12:00:10"), at("12:00:20"), at("12:00:30")]


def totals(readings: Frame) -> Frame:
    kept = readings.withWatermark("ts", "0 seconds")
    return kept.groupBy(F.window("ts", "10 seconds"), "meter").agg(F.sum("kwh").alias("total"))


def renamed(readings: Frame) -> Frame:
    return totals(readings).withColumnRenamed("window", "during").filter("total > 0")


def sessions(readings: Frame) -> Frame:
    kept = readings.withWatermark("ts", "0 seconds")
    by_session = F.session_window("ts", "5 seconds")
    return kept.groupBy(by_session, "meter").agg(F.sum("kwh").alias("total"))


def run(
    spark: SparkSession, folder: Path, build: Callable[[Frame], Frame], **provenance: Any
) -> clew.Provenance:
    write_batches(folder / "in", READINGS, BATCHES)
    source = read_batches(spark, folder / "in", READINGS_DDL)
    frame = build(clew.trace(source, "readings", event_time="ts"))
    run_stream(frame, folder / "prov", "out", checkpoint=folder / "chk", **provenance)
    return clew.open(folder / "prov")


@pytest.mark.parametrize("build", [totals, renamed])
@pytest.mark.parametrize("capture", CAPTURES)
def test_the_time_of_a_windowed_result_is_the_end_of_its_window(
    spark: SparkSession, tmp_path: Path, capture: str, build: Callable[[Frame], Frame]
) -> None:
    with run(spark, tmp_path, build, capture=capture) as prov:
        assert [each.time for each in prov.rows("out")] == ENDS
        newest = prov.rows("out", descending=True)
        assert [each["total"] for each in newest] == [5, 4, 3]
        late = prov.rows("out", since="2026-01-01T12:00:20Z")
        assert [each["total"] for each in late] == [4, 5]
        trace = prov.backward("out", {"total": 4})
        assert [each["rid"] for each in trace.rows] == [2]


def test_the_time_of_a_session_is_its_end(spark: SparkSession, tmp_path: Path) -> None:
    with run(spark, tmp_path, sessions) as prov:
        ends = [at("12:00:06"), at("12:00:19"), at("12:00:30")]
        assert [each.time for each in prov.rows("out")] == ends


def test_a_time_that_is_named_goes_before_the_window(spark: SparkSession, tmp_path: Path) -> None:
    def build(readings: Frame) -> Frame:
        return totals(readings).withColumn("begin", F.col("window.start"))

    with run(spark, tmp_path, build, event_time="begin") as prov:
        begins = [end - dt.timedelta(seconds=10) for end in ENDS]
        assert [each.time for each in prov.rows("out")] == begins


@pytest.mark.parametrize("capture", ["sets", "pointers"])
def test_a_window_that_is_masked_gives_no_time(
    spark: SparkSession, tmp_path: Path, capture: str
) -> None:
    with run(spark, tmp_path, totals, capture=capture, mask=["window"]) as prov:
        found = prov.rows("out")
        assert [each.time for each in found] == [None, None, None]
        assert list(found[0]) == ["meter", "total"]


def test_of_two_windows_none_is_the_time(spark: SparkSession, tmp_path: Path) -> None:
    def build(readings: Frame) -> Frame:
        return totals(readings).withColumn("other", F.col("window"))

    with run(spark, tmp_path, build) as prov:
        assert {each.time for each in prov.rows("out")} == {None}


def test_a_batch_puts_its_windows_in_time(spark: SparkSession, tmp_path: Path) -> None:
    readings = spark.createDataFrame([tuple(r.values()) for r in BATCHES[0]], READINGS_DDL)
    frame = totals(clew.trace(readings, "readings", id=["rid"], event_time="ts"))
    frame.write.provenance(str(tmp_path / "prov"), name="out").format("noop").mode("append").save()

    with clew.open(tmp_path / "prov") as prov:
        assert [each.time for each in prov.rows("out")] == ENDS


SPAN = T.StructType().add("start", "timestamp").add("end", "timestamp")
MARK = {"spark.timeWindow": True}


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ([T.StructField("w", SPAN, metadata=MARK)], "w"),
        ([T.StructField("w", SPAN, metadata=MARK), T.StructField("window", SPAN)], "w"),
        # Without a mark only the usual name says that it is a window.
        ([T.StructField("window", SPAN)], "window"),
        ([T.StructField("w", SPAN)], None),
        ([T.StructField("window", SPAN), T.StructField("w", SPAN)], None),
        ([T.StructField("v", SPAN, metadata=MARK), T.StructField("w", SPAN, metadata=MARK)], None),
        ([T.StructField("window", T.StringType())], None),
        ([T.StructField("window", T.StructType().add("start", "date").add("end", "date"))], None),
        ([T.StructField("w", SPAN, metadata=MARK), T.StructField("W", T.LongType())], None),
    ],
)
def test_a_window_is_known_by_spark_s_mark_or_its_usual_name(
    fields: list[T.StructField], column: str | None
) -> None:
    expected = None if column is None else Time(column, is_window=True)

    assert time_of_results(T.StructType(fields), None, NOTHING) == expected
    assert (
        time_of_results(T.StructType(fields), None, read_mask(["w", "window"], literals=False))
        is None
    )
