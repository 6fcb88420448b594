"""Each verb on a stream: windows, late rows, joins with time bounds, deduplication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import clew
from clew.testing import all_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, Rows, answers, at, stream_traces

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def reading(rid: int, clock: str, meter: str | None = "m1", kwh: int = 1) -> dict[str, Any]:
    return {"rid": rid, "ts": at(clock), "meter": meter, "kwh": kwh}


CLOSING = [reading(99, "23:00:00", "closing")]


def test_window_count_traces_to_its_rows_in_both_batches(
    spark: SparkSession, tmp_path: Path
) -> None:
    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        windows = readings.withWatermark("ts", "0 seconds").groupBy(
            F.window("ts", "10 seconds"), "meter"
        )
        return windows.count()

    traces = stream_traces(
        spark,
        tmp_path,
        pipeline,
        [reading(1, "12:00:01"), reading(2, "12:00:04")],
        [reading(3, "12:00:08"), reading(4, "12:00:09", "m2"), reading(5, "12:00:10")],
        [reading(6, "12:00:20", "m3")],
        [reading(7, "12:00:09")],  # late: its window was closed two batches ago
        CLOSING,
    )

    assert {(t.values["meter"], t.values["count"]) for t in traces} == {
        ("m1", 3),
        ("m2", 1),
        ("m1", 1),
        ("m3", 1),
    }
    assert answers(traces, "meter", "count") == {
        ("m1", 3): {1, 2, 3},
        ("m2", 1): {4},
        ("m1", 1): {5},
        ("m3", 1): {6},
    }


def test_sliding_windows_share_rows(spark: SparkSession, tmp_path: Path) -> None:
    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        window = F.window("ts", "20 seconds", "10 seconds")
        counted = readings.withWatermark("ts", "5 seconds").groupBy(window).count()
        return counted.select(F.date_format("window.start", "HH:mm:ss").alias("start"), "count")

    traces = stream_traces(
        spark, tmp_path, pipeline, [reading(1, "12:00:01")], [reading(2, "12:00:11")], CLOSING
    )

    assert answers(traces, "start") == {"11:59:50": {1}, "12:00:00": {1, 2}, "12:00:10": {2}}


def test_session_windows_trace_to_the_rows_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        marked = readings.withWatermark("ts", "0 seconds")
        return marked.groupBy(F.session_window("ts", "10 seconds"), "meter").count()

    traces = stream_traces(
        spark,
        tmp_path,
        pipeline,
        [reading(1, "12:00:00"), reading(2, "12:00:09")],
        [reading(3, "12:00:15")],
        [reading(4, "12:01:00")],
        CLOSING,
    )

    assert answers(traces, "count") == {3: {1, 2, 3}, 1: {4}}


def test_aggregate_over_window_time_of_an_aggregate(spark: SparkSession, tmp_path: Path) -> None:
    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        marked = readings.withWatermark("ts", "0 seconds")
        small = marked.groupBy(F.window("ts", "10 seconds"), "meter").agg(F.sum("kwh").alias("kwh"))
        minutes = small.named("tens").groupBy(F.window(F.window_time("window"), "1 minute"))
        return minutes.agg(F.max("kwh").alias("peak"))

    traces = stream_traces(
        spark,
        tmp_path,
        pipeline,
        [reading(1, "12:00:01", kwh=3), reading(2, "12:00:02", kwh=4)],
        [reading(3, "12:00:31", kwh=5)],
        CLOSING,
    )

    assert answers(traces, "peak") == {7: {1, 2, 3}}
    inner = all_traces(tmp_path / "prov", "tens", sink="out")
    assert answers(inner, "kwh") == {7: {1, 2}, 5: {3}}


def test_dedup_traces_to_the_first_that_arrived(spark: SparkSession, tmp_path: Path) -> None:
    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        marked = readings.withWatermark("ts", "1 minute")
        return marked.dropDuplicatesWithinWatermark(["meter"])

    traces = stream_traces(
        spark,
        tmp_path,
        pipeline,
        [reading(1, "12:00:00"), reading(2, "12:00:01", "m2")],
        [reading(3, "12:00:30")],
        CLOSING,
        [reading(98, "23:00:01", "moves on")],
        [reading(4, "23:00:02")],  # by now the first one is forgotten
    )

    assert answers(traces, "rid") == {1: {1}, 2: {2}, 99: {99}, 98: {98}, 4: {4}}


def test_distinct_on_a_stream_keeps_the_first(spark: SparkSession, tmp_path: Path) -> None:
    traces = stream_traces(
        spark,
        tmp_path,
        lambda readings: readings.select("meter").distinct(),
        [reading(1, "12:00:00")],
        [reading(2, "12:00:30"), reading(3, "12:00:30", None)],
    )

    assert answers(traces, "meter") == {"m1": {1}, None: {3}}


def test_explode_and_union_of_branches(spark: SparkSession, tmp_path: Path) -> None:
    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        high = readings.filter("kwh > 5").select("rid", F.lit("high").alias("what"))
        parts = readings.select("rid", F.explode(F.split("meter", "-")).alias("what"))
        return high.union(parts)

    traces = stream_traces(
        spark, tmp_path, pipeline, [reading(1, "12:00:00", "a-b", 9)], [reading(2, "12:00:00", "c")]
    )

    assert answers(traces, "rid", "what") == {
        (1, "high"): {1},
        (1, "a"): {1},
        (1, "b"): {1},
        (2, "c"): {2},
    }


def test_stream_static_join_traces_to_both(spark: SparkSession, tmp_path: Path) -> None:
    owners = spark.createDataFrame(
        [(71, "m1", "ann"), (72, "m1", "bob")], "rid long, m string, o string"
    )

    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        table = clew.trace(owners, "owners", id=["rid"]).withColumnRenamed("m", "meter")
        return readings.drop("rid").join(table.drop("rid"), "meter", "left")

    traces = stream_traces(
        spark, tmp_path, pipeline, [reading(1, "12:00:00")], [reading(2, "12:00:00", "m9")]
    )

    assert answers(traces, "meter", "o") == {
        ("m1", "ann"): {1, 71},
        ("m1", "bob"): {1, 72},
        ("m9", None): {2},
    }


def test_stream_static_semi_and_anti_joins(spark: SparkSession, tmp_path: Path) -> None:
    listed = spark.createDataFrame([(71, "m1"), (72, "m1")], "rid long, meter string")

    def pipeline(readings: clew.TracedFrame) -> clew.TracedFrame:
        table = clew.trace(listed, "listed", id=["rid"]).select("meter")
        inside = readings.join(table, "meter", "semi").select("rid", F.lit("in").alias("w"))
        outside = readings.join(table, "meter", "anti").select("rid", F.lit("out").alias("w"))
        return inside.union(outside)

    traces = stream_traces(
        spark, tmp_path, pipeline, [reading(1, "12:00:00")], [reading(2, "12:00:00", "m9")]
    )

    assert answers(traces, "rid", "w") == {(1, "in"): {1, 71, 72}, (2, "out"): {2}}


def two_streams(spark: SparkSession, folder: Path, left: list[Rows], right: list[Rows]) -> Any:
    write_batches(folder / "l", READINGS, left)
    write_batches(folder / "r", READINGS, right)
    frames = []
    for name in ("l", "r"):
        source = read_batches(spark, folder / name, READINGS_DDL)
        traced = clew.trace(source, name, event_time="ts").withWatermark("ts", "10 seconds")
        frames.append(traced.select(*[F.col(c).alias(f"{name}_{c}") for c in traced.columns]))
    return frames


LEFT = [
    [reading(1, "12:00:00"), reading(2, "12:00:00", "m2")],
    [reading(3, "12:00:20", "m3")],
    [reading(98, "23:00:00", "closing")],
    [reading(97, "23:30:00", "closing 2")],
]
RIGHT = [
    [reading(11, "12:00:02")],
    [reading(12, "12:00:04"), reading(13, "12:00:21", "m9")],
    [reading(99, "23:00:00", "other closing")],
    [reading(96, "23:30:00", "other closing 2")],
]
ON = "l_meter = r_meter and r_ts between l_ts and l_ts + interval 10 seconds"


def test_stream_stream_inner_and_outer_join(spark: SparkSession, tmp_path: Path) -> None:
    left, right = two_streams(spark, tmp_path, LEFT, RIGHT)
    out = left.join(right, F.expr(ON), "full").select("l_rid", "r_rid")

    run_stream(out, tmp_path / "prov", "pairs", checkpoint=tmp_path / "chk")

    traces = all_traces(tmp_path / "prov", "pairs")
    got = {(t.values["l_rid"], t.values["r_rid"]): t.sources for t in traces}
    refs = {
        key: {(s, row["rid"]) for s, rows in sources.items() for row in rows}
        for key, sources in got.items()
    }
    expected = {
        (1, 11): {("l", 1), ("r", 11)},
        (1, 12): {("l", 1), ("r", 12)},
        (2, None): {("l", 2)},
        (3, None): {("l", 3)},
        (None, 13): {("r", 13)},
    }
    assert {k: v for k, v in refs.items() if not {98, 97, 99, 96} & set(k)} == expected


def test_stream_stream_semi_join_traces_to_the_first_match(
    spark: SparkSession, tmp_path: Path
) -> None:
    left, right = two_streams(spark, tmp_path, LEFT, RIGHT)
    out = left.join(right, F.expr(ON), "semi")

    run_stream(out, tmp_path / "prov", "matched", checkpoint=tmp_path / "chk")

    [trace] = all_traces(tmp_path / "prov", "matched")
    assert trace.values["l_rid"] == 1
    assert list(trace.values) == ["l_rid", "l_ts", "l_meter", "l_kwh"]
    assert trace.refs("rid") == {("l", 1), ("r", 11)}


def test_one_source_feeds_two_queries_of_one_store(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", READINGS, [[reading(1, "12:00:00"), reading(2, "12:00:01")]])
    readings = clew.trace(read_batches(spark, tmp_path / "in", READINGS_DDL), "readings")

    run_stream(readings.filter("rid = 1"), tmp_path / "prov", "one", checkpoint=tmp_path / "c1")
    run_stream(readings.filter("rid > 0"), tmp_path / "prov", "all", checkpoint=tmp_path / "c2")

    assert answers(all_traces(tmp_path / "prov", "one"), "rid") == {1: {1}}
    assert answers(all_traces(tmp_path / "prov", "all"), "rid") == {1: {1}, 2: {2}}
    prov = clew.open(str(tmp_path / "prov"))
    [source] = prov.rows("readings", where="rid = 1")
    assert {row.id.stream for row in prov.forward("readings", source).rows} == {"one", "all"}
