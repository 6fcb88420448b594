"""Running a query again: from a trace, over a period, over changed rows, against a model."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import QueryError, ReplayError, SourceChangedError
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at, scattered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Frame = clew.TracedFrame
    Values = dict[str, Any]

SEED = 23
NOON = at("12:00:00")


def sums(frame: Frame) -> Frame:
    windows = frame.withWatermark("ts", "2 minutes").groupBy(F.window("ts", "20 seconds"), "meter")
    return windows.agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n")).filter("kwh > 1")


def nested(frame: Frame) -> Frame:
    """Overlapping windows before others: their rows alone would make windows that never were."""
    kept = frame.withWatermark("ts", "2 minutes")
    inner = kept.groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
    few = inner.agg(F.count("*").alias("n")).filter("n < 3")
    outer = few.groupBy(F.window(F.window_time("window"), "20 seconds"), "meter")
    return outer.agg(F.count("*").alias("windows"))


def stream(spark: SparkSession, folder: Path) -> Frame:
    return clew.trace(read_batches(spark, folder / "in", READINGS_DDL), "readings", event_time="ts")


def ran(spark: SparkSession, folder: Path, query: Callable[[Frame], Frame], capture: str) -> Any:
    write_batches(folder / "in", READINGS, scattered(SEED, 6, rows=8, late=150))
    frame = query(stream(spark, folder))
    run_stream(frame, folder / "prov", "out", checkpoint=folder / "chk", capture=capture)
    return clew.open(folder / "prov", pipelines={"out": frame})


@pytest.mark.parametrize(("query", "capture"), [(sums, "keys"), (nested, "pointers")])
def test_a_trace_gives_its_results_again(
    spark: SparkSession, tmp_path: Path, query: Callable[[Frame], Frame], capture: str
) -> None:
    prov = ran(spark, tmp_path, query, capture)
    results = prov.rows("out", limit=None)
    assert len(results) > 3

    one = prov.replay(prov.backward("out", results[0]))
    assert (one.same, one.unchanged, one.differences) == (True, 1, ())
    every = prov.replay(prov.backward("out", list(results)))
    assert (every.same, every.unchanged) == (True, len(results))
    whole = prov.replay("out")
    assert (whole.same, whole.unchanged) == (True, len(results))
    assert str(whole) == f"out: {len(results)} results as before, none differs"


def model(rows: list[Values]) -> dict[tuple[int, str], tuple[int, int]]:
    """Sum up rows by 20 seconds and meter, and keep sums greater than 1."""
    groups: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        second = int((row["ts"].replace(tzinfo=None) - NOON.replace(tzinfo=None)).total_seconds())
        groups.setdefault((second // 20, row["meter"]), []).append(row["kwh"])
    return {k: (sum(v), len(v)) for k, v in groups.items() if sum(v) > 1}


def shown(values: Values | None) -> tuple[tuple[int, str], tuple[int, int]] | None:
    if values is None:
        return None
    start = dt.datetime.fromisoformat(values["window"]["start"])
    slot = int((start - NOON).total_seconds()) // 20
    return (slot, values["meter"]), (values["kwh"], values["n"])


def test_changed_rows_change_exactly_what_the_model_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every kind of change at once, planted at random: rows taken away, changed, and added."""
    print(f"seed {SEED}")
    chosen = random.Random(SEED)
    batches = scattered(SEED, 5, rows=8, late=20)
    write_batches(tmp_path / "in", READINGS, batches)
    frame = sums(stream(spark, tmp_path))
    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", capture="keys")
    prov = clew.open(tmp_path / "prov", pipelines={"out": frame})
    rows = [row for batch in batches[:-1] for row in batch]
    gone, changed = chosen.sample([row["rid"] for row in rows], 2)
    added = [{**row, "rid": row["rid"] + 5000, "kwh": 3} for row in chosen.sample(rows, 2)]

    def change(df: DataFrame) -> DataFrame:
        kwh = F.when(F.col("rid") == changed, F.col("kwh") + 7).otherwise(F.col("kwh"))
        more = spark.createDataFrame([tuple(r.values()) for r in added], READINGS_DDL)
        left = df.filter(F.col("rid") != gone).withColumn("kwh", kwh)
        return left.unionByName(more, allowMissingColumns=True)

    after_rows = [
        {**row, "kwh": row["kwh"] + 7 * (row["rid"] == changed)}
        for row in rows
        if row["rid"] != gone
    ]
    before, after = model(rows), model(after_rows + added)
    expected = {
        (key, before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }
    assert len(expected) > 2

    found = prov.replay("out", what_if={"readings": change})
    got = set()
    for each in found.differences:
        one, other = shown(each.before), shown(each.after)
        key = (one or other or ((0, ""), (0, 0)))[0]
        got.add((key, one and one[1], other and other[1]))
    assert got == expected
    assert found.unchanged == len(before.keys() & after.keys()) - sum(
        1 for _, one, other in expected if one and other
    )
    assert found.changed_input
    assert prov.replay("out").same, "the store is as it was"


def test_only_a_period_is_run_again(spark: SparkSession, tmp_path: Path) -> None:
    prov = ran(spark, tmp_path, sums, "keys")
    minute = [r for r in prov.rows("out", limit=None) if within_a_minute(r["window"]["end"])]

    found = prov.replay("out", period=("2026-01-01 12:00:00", "2026-01-01 12:01:00"))
    assert (found.same, found.unchanged) == (True, len(minute))
    assert 0 < len(minute) < len(prov.rows("out", limit=None))
    nothing = prov.replay(
        "out",
        period=(at("12:00:00"), at("12:01:00")),
        what_if={"readings": lambda df: df.filter("false")},
    )
    assert {each.after for each in nothing.differences} == {None}
    assert len(nothing.differences) == len(minute)


def within_a_minute(end: dt.datetime) -> bool:
    return (
        NOON.replace(tzinfo=None) <= end.replace(tzinfo=None) <= at("12:01:00").replace(tzinfo=None)
    )


def test_a_source_that_changed_meanwhile_is_not_replayed(
    spark: SparkSession, tmp_path: Path
) -> None:
    prov = ran(spark, tmp_path, sums, "keys")
    results = prov.rows("out", limit=None)
    trace = prov.backward("out", results[0])
    place = trace.rows[0]
    path = str(place.segment).removeprefix("file:")
    table = pq.read_table(path)
    values = table["kwh"].to_pylist()
    values[place.position or 0] += 100
    column = table.schema.get_field_index("kwh")
    pq.write_table(table.set_column(column, "kwh", pa.array(values, pa.int64())), path)

    with pytest.raises(SourceChangedError, match="was rewritten or replaced"):
        prov.replay("out")
    assert prov.replay(trace).same, "the trace has the rows as they were"


def test_times_stay_what_they_were_in_every_zone(spark: SparkSession, tmp_path: Path) -> None:
    """Points in time and wall clocks, also inside of other values, through a store and back."""
    columns = (
        "1 AS id, timestamp '2026-01-01 12:00:00Z' AS ts, timestamp_ntz '2026-01-01 09:00:00' AS "
        "wall, named_struct('t', timestamp '2026-01-01 12:00:01Z', 'w', timestamp_ntz "
        "'2026-01-01 09:00:01') AS inside, array(timestamp '2026-01-01 12:00:02Z') AS list"
    )
    zone = "spark.sql.session.timeZone"
    before = str(spark.conf.get(zone))
    try:
        spark.conf.set(zone, "America/New_York")
        traced = clew.trace(spark.sql(f"SELECT {columns}"), "times", id=["id"], event_time="ts")
        frame = traced.withColumn("hours", F.expr("hour(wall) * 100 + hour(inside.w)"))
        writer = frame.write.provenance(str(tmp_path), name="out", capture="sets")
        writer.format("noop").mode("append").save()
        prov = clew.open(tmp_path, pipelines={"out": frame})
        found = prov.replay(prov.backward("out", prov.rows("out")[0]))
        assert (found.unchanged, found.differences) == (1, ())
        assert prov.replay("out").same
    finally:
        spark.conf.set(zone, before)


def test_what_cannot_be_run_again_is_said(spark: SparkSession, tmp_path: Path) -> None:
    prov = ran(spark, tmp_path, sums, "keys")
    trace = prov.backward("out", prov.rows("out", limit=1)[0])
    with pytest.raises(QueryError, match="results of a stream"):
        prov.replay(trace, what_if={})
    with pytest.raises(ReplayError, match="no source of the query"):
        prov.replay("out", what_if={"meters": lambda df: df})
    with pytest.raises(ReplayError, match="no column `kwh`"):
        prov.replay("out", what_if={"readings": lambda df: df.drop("kwh")})
    with pytest.raises(QueryError, match="a moment is written as"):
        prov.replay("out", period=("noon", "one"))
    other = sums(stream(spark, tmp_path)).filter("kwh > 2")
    changed = clew.open(tmp_path / "prov", pipelines={"out": other})
    with pytest.raises(ReplayError, match="not the one that filled"):
        changed.replay("out")


def test_versions_are_told_apart_by_what_they_do(spark: SparkSession, tmp_path: Path) -> None:
    from clew.again.describe import shape_of

    (tmp_path / "in").mkdir()
    frames = [stream(spark, tmp_path) for _ in range(3)]
    one, two, three = (
        f.filter(f["kwh"] > least) for f, least in zip(frames, (1, 1, 2), strict=True)
    )
    assert shape_of(one.node) == shape_of(two.node)
    assert shape_of(one.node) != shape_of(three.node)
