"""Capture `keys`: rows carry an id, and their ancestors are found by time and computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import clew
from clew.again.around import Around, around
from clew.capture.keys import KEYS
from clew.plan.columns import is_hidden
from clew.plan.node import interpret
from clew.testing import all_traces, keyed, keyed_traces, read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at, scattered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

SECOND = 1_000_000


def nested(frame: Frame) -> Frame:
    kept = frame.filter("kwh >= 0").withWatermark("ts", "5 seconds")
    inner = kept.groupBy(F.window("ts", "10 seconds"), "meter").agg(F.sum("kwh").alias("kwh"))
    named = inner.named("tens")
    outer = named.groupBy(F.window(F.window_time("window"), "30 seconds", "10 seconds"))
    return outer.agg(F.max("kwh").alias("most"))


def joined(frame: Frame) -> Frame:
    kept = frame.withWatermark("ts", "5 seconds")
    left = kept.filter("kwh > 1").selectExpr("meter", "ts AS t1", "rid AS r1")
    right = kept.filter("kwh < 2").selectExpr("meter AS m2", "ts AS t2", "rid AS r2")
    near = "meter = m2 AND t2 >= t1 - INTERVAL 10 SECONDS AND t2 <= t1 + INTERVAL 5 SECONDS"
    return left.join(right, F.expr(near)).select("t1", "r1", "r2")


def stream(spark: SparkSession, folder: Path) -> Frame:
    source = read_batches(spark, folder, READINGS_DDL)
    return clew.trace(source, "readings", event_time="ts")


@pytest.mark.parametrize("query", [nested, joined])
def test_the_answers_are_those_of_sets(
    spark: SparkSession, tmp_path: Path, query: Callable[[Frame], Frame]
) -> None:
    write_batches(tmp_path / "in", READINGS, scattered(17, 3, rows=14, late=30))
    frame = query(stream(spark, tmp_path / "in"))
    stores = {capture: tmp_path / capture for capture in ("sets", "keys")}
    for capture, store in stores.items():
        chk = tmp_path / f"chk-{capture}"
        run_stream(frame, store, "out", checkpoint=chk, capture=capture)
    prov = clew.open(stores["keys"], pipelines={"out": frame})
    assert prov.unfold("out") == len(prov.rows("out", limit=None))

    def comparable(store: Path) -> list[Any]:
        return sorted((str(t.values), sorted(t.refs("rid"))) for t in all_traces(store, "out"))

    expected = comparable(stores["sets"])
    assert len(expected) > 5
    assert comparable(stores["keys"]) == expected


def test_one_row_is_found_and_the_frames_on_its_way(spark: SparkSession, tmp_path: Path) -> None:
    seconds = (1, 2, 11, 12, 13, 25)
    rows = [{"rid": s, "ts": at(f"12:00:{s:02d}"), "meter": "a", "kwh": s} for s in seconds]
    write_batches(tmp_path / "in", READINGS, [rows, [{**rows[0], "ts": at("13:00:00")}]])
    frame = nested(stream(spark, tmp_path / "in"))
    run_stream(frame, tmp_path / "prov", "out", checkpoint=tmp_path / "chk", capture="keys")

    prov = clew.open(tmp_path / "prov", pipelines={"out": frame})
    [row] = prov.rows("out", "\"window\".start = '2026-01-01 12:00:10+00'")
    assert sorted(r["rid"] for r in prov.backward("out", row).rows) == [11, 12, 13, 25]
    tens = prov.backward("out", row, scope="tens").rows
    assert sorted(r["kwh"] for r in tens) == [25, 36]
    first = next(r for r in tens if r["kwh"] == 36)
    assert sorted(r["rid"] for r in prov.backward("tens", first).rows) == [11, 12, 13]


def test_rows_carry_an_id_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for query in (nested, joined):
        built = interpret(keyed(query(stream(spark, tmp_path / "in"))), KEYS).df
        hidden = [f for f in built.schema.fields if is_hidden(f.name)]
        assert [f.name for f in hidden] == ["_clew_a", "_clew_b"]
        assert {type(f.dataType) for f in hidden} == {T.LongType}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (nested, Around("window", True, 40 * SECOND, ("readings",))),
        (joined, Around("t1", False, 15 * SECOND, ("readings",))),
        (lambda f: f.filter("kwh > 1").select("ts", "rid"), Around("ts", False, 0, ("readings",))),
        (lambda f: f.select("rid"), None),
        (lambda f: f.groupBy("meter").count(), None),
        (lambda f: nested(f).select("most"), None),
    ],
)
def test_where_the_sources_of_a_result_lie(
    spark: SparkSession,
    tmp_path: Path,
    query: Callable[[Frame], Frame],
    expected: Around | None,
) -> None:
    (tmp_path / "in").mkdir()
    assert around(query(stream(spark, tmp_path / "in")).node) == expected


def test_without_a_time_all_of_the_source_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(i, at(f"12:00:{i:02d}"), "ab"[i % 2], i) for i in range(6)]
    df = spark.createDataFrame(rows, READINGS_DDL)
    frame = clew.trace(df, "readings", id=["rid"], event_time="ts").groupBy("meter").count()

    traces = keyed_traces(frame, interpret(keyed(frame), KEYS).df.toArrow())
    found = {t.values["meter"]: sorted(rid for _, rid in t.refs("rid")) for t in traces}
    assert found == {"a": [0, 2, 4], "b": [1, 3, 5]}
