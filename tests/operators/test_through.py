"""A function of the user's with an ancestor function: answers, captures, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.exceptions import CaptureRefusedError, ColumnError, GraphError, PropertyError
from clew.testing import all_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, answers, at, batch_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Frame = clew.TracedFrame

ROWS = [
    {"rid": rid, "ts": at(f"12:00:{s:02d}"), "meter": meter, "kwh": kwh}
    for rid, s, meter, kwh in [
        (1, 1, "a", 5),
        (2, 2, "a", 7),
        (3, 3, "a", 7),
        (4, 4, "b", 1),
        (5, 11, "a", 2),
        (6, 12, "b", 9),
        (7, 13, "b", 8),
    ]
]
LATER = [{"rid": 99, "ts": at("13:00:00"), "meter": "z", "kwh": 0}]


def loudest(df: DataFrame) -> DataFrame:
    """Find the most that a meter read in ten seconds."""
    windows = df.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "10 seconds"), "meter")
    return windows.agg(F.max("kwh").alias("kwh"))


# A result comes from the readings that were the most, not from all of its window.
MOST = (
    "result.meter = input.meter AND input.kwh = result.kwh "
    "AND input.ts >= result.window.start AND input.ts < result.window.end"
)
EXPECTED = {("a", 7): {2, 3}, ("b", 1): {4}, ("a", 2): {5}, ("b", 9): {6}}


def most(frame: Frame) -> Frame:
    return frame.through(loudest, key=["window", "meter"], ancestors=MOST)


def table(spark: SparkSession) -> Frame:
    df = spark.createDataFrame([tuple(r.values()) for r in ROWS], READINGS_DDL)
    return clew.trace(df, "readings", id=["rid"], event_time="ts")


@pytest.mark.parametrize("capture", ["sets", "pointers", "intervals", "keys"])
def test_over_a_table(spark: SparkSession, tmp_path: Path, capture: str) -> None:
    frame = most(table(spark).filter("kwh >= 0"))
    batch_traces(frame, tmp_path, capture=capture)
    clew.open(tmp_path / "prov", pipelines={"out": frame}).unfold("out")
    assert answers(all_traces(tmp_path / "prov", "out"), "meter", "kwh") == EXPECTED


@pytest.mark.parametrize("capture", ["auto", "pointers"])
def test_over_a_stream(spark: SparkSession, tmp_path: Path, capture: str) -> None:
    write_batches(tmp_path / "in", READINGS, [ROWS[:3], ROWS[3:], LATER])
    source = read_batches(spark, tmp_path / "in", READINGS_DDL)
    frame = most(clew.trace(source, "readings", event_time="ts"))
    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", capture=capture)
    prov = clew.open(tmp_path / "prov", pipelines={"out": frame})
    assert [s.capture for s in prov.streams() if s.name == "out"] == [
        {"auto": "keys"}.get(capture, capture)
    ]
    prov.unfold("out")
    assert answers(all_traces(tmp_path / "prov", "out"), "meter", "kwh") == EXPECTED
    assert prov.replay("out").same


@pytest.mark.parametrize("capture", ["sets", "pointers", "keys"])
def test_before_and_behind_other_steps(spark: SparkSession, tmp_path: Path, capture: str) -> None:
    """Sums of five seconds, the largest of each meter, and how many meters there are."""
    sums = (
        table(spark)
        .groupBy("meter", F.window("ts", "5 seconds").alias("five"))
        .agg(F.sum("kwh").alias("kwh"))
    )

    def largest(df: DataFrame) -> DataFrame:
        return df.groupBy("meter").agg(F.max("kwh").alias("kwh"))

    top = sums.through(
        largest, key="meter", ancestors="result.meter = input.meter AND result.kwh = input.kwh"
    )
    frame = top.groupBy().agg(F.count("*").alias("meters"))
    traces = batch_traces(frame, tmp_path, capture=capture)
    if capture == "keys":
        clew.open(tmp_path / "prov", pipelines={"out": frame}).unfold("out")
        traces = all_traces(tmp_path / "prov", "out")
    # 5 + 7 + 7 of a, and 9 + 8 of b.
    assert answers(traces, "meters") == {2: {1, 2, 3, 6, 7}}


@pytest.mark.parametrize("capture", ["sets", "pointers", "keys"])
def test_of_two_frames(spark: SparkSession, tmp_path: Path, capture: str) -> None:
    names = spark.createDataFrame([("a", "attic"), ("b", "barn")], "meter string, place string")
    places = clew.trace(names, "places", id=["meter"])

    def placed(readings: DataFrame, where: DataFrame) -> DataFrame:
        return readings.join(where, "meter").groupBy("place").agg(F.min("kwh").alias("kwh"))

    frame = table(spark).through(
        placed,
        places,
        key="place",
        ancestors=[
            "input.kwh = result.kwh AND substr(result.place, 1, 1) = input.meter",
            "input.place = result.place",
        ],
    )
    traces = batch_traces(frame, tmp_path, capture=capture)
    if capture == "keys":
        clew.open(tmp_path / "prov", pipelines={"out": frame}).unfold("out")
        traces = all_traces(tmp_path / "prov", "out")
    found = {
        t.values["place"]: (
            [r["rid"] for r in t.sources["readings"]],
            [r["meter"] for r in t.sources["places"]],
        )
        for t in traces
    }
    assert found == {"attic": ([5], ["a"]), "barn": ([4], ["b"])}


def test_properties_are_merged_over_the_rows_it_names(spark: SparkSession) -> None:
    frame = most(table(spark).property("ids", F.col("rid"), merge="set"))
    found = {(r.meter, r.kwh): set(r.ids) for r in frame.properties().collect()}
    assert found == EXPECTED


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda f: f.through(loudest, key="metre", ancestors=MOST), ColumnError, "`metre`"),
        (lambda f: f.through(loudest, key=[], ancestors=MOST), ColumnError, "no column at all"),
        (lambda f: f.through(loudest, key="meter", ancestors=[]), GraphError, "0 conditions"),
        (lambda f: f.through(len, key="meter", ancestors=MOST), Exception, "len"),
        (
            lambda f: f.through(lambda df: df.count(), key="meter", ancestors=MOST),
            GraphError,
            "returned int",
        ),
        (
            lambda f: f.through(loudest, key="meter", ancestors="result.metre = input.meter"),
            Exception,
            "metre",
        ),
    ],
)
def test_what_cannot_work_is_refused(
    spark: SparkSession, build: Callable[[Frame], Frame], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as raised:
        build(table(spark))
    assert says in str(raised.value)


def test_a_stream_cannot_carry_what_is_looked_up(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = read_batches(spark, tmp_path / "in", READINGS_DDL)
    traced = clew.trace(source, "readings", event_time="ts")
    with pytest.raises(CaptureRefusedError, match="looked up afterwards"):
        choose(most(traced).node, "sets")
    with pytest.raises(PropertyError, match="Begin it behind `through`"):
        most(traced.property("ids", F.col("rid"), merge="set")).properties()


def test_a_late_row_is_not_guessed_about(spark: SparkSession, tmp_path: Path) -> None:
    late = [{"rid": 50, "ts": at("12:00:01"), "meter": "a", "kwh": 7}]
    last = [{**LATER[0], "rid": 100, "ts": at("14:00:00")}]
    write_batches(tmp_path / "in", READINGS, [ROWS, LATER, LATER, late, last])
    source = read_batches(spark, tmp_path / "in", READINGS_DDL)
    traced = clew.trace(source, "readings", event_time="ts")
    run_stream(most(traced), tmp_path / "prov", "out", checkpoint=tmp_path / "chk")

    prov = clew.open(tmp_path / "prov", pipelines={"out": most(traced)})
    with pytest.raises(Exception, match="came after the watermark"):
        prov.unfold("out")
    # A function that keeps no state takes late rows like others.
    loud = traced.through(
        lambda df: df.filter("kwh > 6").select("rid", "kwh"),
        key="rid",
        ancestors="input.rid = result.rid",
        late="kept",
    )
    run_stream(loud, tmp_path / "kept", "out", checkpoint=tmp_path / "chk2")
    clew.open(tmp_path / "kept", pipelines={"out": loud}).unfold("out")
    found = answers(all_traces(tmp_path / "kept", "out"), "rid")
    assert found == {rid: {rid} for rid in (2, 3, 6, 7, 50)}


def test_it_is_named_in_the_store(spark: SparkSession) -> None:
    operator: Any = most(table(spark)).node.operator
    assert operator.label.startswith("loudest by window, meter, from rows where ")
