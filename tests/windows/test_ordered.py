"""Windows over rows in order, on tables and on streams, under every capture, against the model."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.again.reach import reach
from clew.exceptions import ColumnError, GraphError
from clew.expiry.bound import bounds
from clew.testing import all_traces
from frames import READINGS_DDL, at, batch_traces
from windows.cases import CASES, Case, end, expected_of, found_in, readings, run_case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

SEED = 31
SECOND = 1_000_000


def table(spark: SparkSession, rows: list[dict[str, Any]]) -> Frame:
    values = [(r["rid"], r["ts"], r["meter"], r["kwh"]) for r in rows]
    return clew.trace(
        spark.createDataFrame(values, READINGS_DDL), "readings", id=["rid"], event_time="ts"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_over_a_table(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    rows = [r for batch in readings(SEED, 4) for r in batch]
    expected = expected_of(case, [[rows]], stream=False)
    assert len(expected) > 5
    frame = case.build(table(spark, rows))

    # All captures take all windows in the proof; here each takes some.
    other = ("pointers", "intervals", "keys")[CASES.index(case) % 3]
    for capture in ("sets", other):
        batch_traces(frame, tmp_path / capture, capture=capture)
        store = tmp_path / capture / "prov"
        clew.open(store, pipelines={"out": frame}).unfold("out")
        assert found_in(case, all_traces(store, "out")) == expected, capture


@pytest.mark.parametrize(
    ("number", "capture"),
    [(0, "pointers"), (2, "intervals"), (3, "sets"), (6, "keys")],
    ids=lambda v: CASES[v].name if isinstance(v, int) else v,
)
def test_over_a_stream_that_is_stopped_and_goes_on(
    spark: SparkSession, tmp_path: Path, number: int, capture: str
) -> None:
    first = readings(SEED + number, 4, rows=12)
    runs = [first[:2], [*first[2:], [end()]]]
    expected = expected_of(CASES[number], runs)
    assert expected != expected_of(CASES[number], runs, stream=False), "no row is late"

    assert run_case(spark, tmp_path, CASES[number], runs, capture) == expected


def test_the_rows_of_a_window_come_back_as_they_were(spark: SparkSession) -> None:
    odd = {
        "when": "timestamp '1600-01-01 00:00:00.000001'",
        "big": "9007199254740993",
        "money": "cast('12345678901234567890.123456789' as decimal(30, 9))",
        "bytes": "X'00FF'",
        "nothing": "cast(null as int)",
        "nan": "double('NaN')",
        "inside": "named_struct('list', array(1, null), 'map', map('k', 1.5))",
        "`a dot. and ``ticks```": "'\"\\u2028'",
    }
    columns = ", ".join(f"{value} AS {name}" for name, value in odd.items())
    df = spark.sql(f"SELECT timestamp '2026-01-01 12:00:00' AS ts, {columns}")
    frame = clew.trace(df, "odd", id=["big"], event_time="ts")

    [made] = frame.inOrder().countWindow(1).select(F.explode("rows").alias("r")).collect()
    [given] = df.collect()
    assert str(made.r) == str(given)


def test_moments_are_the_same_in_every_time_zone(spark: SparkSession) -> None:
    rows = [{**end(), "rid": i, "ts": at(f"12:00:0{i}")} for i in range(4)]
    frame = table(spark, rows).inOrder("meter").countWindow(2)
    zone = "spark.sql.session.timeZone"
    before = str(spark.conf.get(zone))
    try:
        spark.conf.set(zone, "America/New_York")
        found = frame.selectExpr("ts = rows[1].ts AS same", "unix_seconds(ts) AS at").collect()
    finally:
        spark.conf.set(zone, before)
    assert sorted(row.at - int(at("12:00:00").timestamp()) for row in found) == [1, 2, 3]
    assert all(row.same for row in found)


def test_order_is_by_time_then_content(spark: SparkSession) -> None:
    rows = [(3, 1, "b"), (1, 2, "c"), (2, 1, "a")]
    df = spark.createDataFrame(
        [(rid, at("12:00:00") + dt.timedelta(seconds=s), m, 0) for rid, s, m in rows], READINGS_DDL
    )
    window = table(spark, [r.asDict() for r in df.collect()]).inOrder().countWindow(3)

    [found] = window.select("rows.rid").collect()
    assert found.rid == [2, 3, 1]


def test_between_spark_s_own_windows(spark: SparkSession, tmp_path: Path) -> None:
    """An aggregate, the last two of its windows, and an aggregate of those."""
    rows = [
        {"rid": i, "ts": at("12:00:00") + dt.timedelta(seconds=7 * i), "meter": "a", "kwh": i}
        for i in range(12)
    ]

    def nested(frame: Frame) -> Frame:
        sums = frame.groupBy("meter", F.window("ts", "10 seconds")).agg(F.sum("kwh").alias("kwh"))
        ends = sums.select("meter", "kwh", F.window_time("window").alias("ts"))
        twos = ends.inOrder("meter", time="ts").countWindow(2)
        totals = twos.select("ts", F.expr("aggregate(rows.kwh, 0L, (a, b) -> a + b)").alias("both"))
        return totals.groupBy(F.window("ts", "30 seconds")).agg(F.max("both").alias("most"))

    # Tens hold 0 1 | 2 | 3 4 | 5 | 6 7 | 8 | 9 9.8; twos end with the later of two tens.
    tens: dict[int, list[int]] = {}
    for i in range(12):
        tens.setdefault(7 * i // 10, []).append(i)
    ends = sorted(tens)
    expected: dict[int, tuple[int, set[int]]] = {}
    for one, other in pairwise(ends):
        ids = {*tens[one], *tens[other]}
        most, known = expected.get(10 * other // 30, (0, set()))
        expected[10 * other // 30] = (max(most, sum(ids)), known | ids)
    frame = nested(table(spark, rows))
    for capture in ("sets", "pointers"):
        traces = batch_traces(frame, tmp_path / capture, capture=capture)
        found = {
            int((t.values["window"]["start"].replace(tzinfo=None) - NOON).total_seconds()) // 30: (
                t.values["most"],
                {rid for _, rid in t.refs("rid")},
            )
            for t in traces
        }
        assert found == expected, capture


NOON = at("12:00:00").replace(tzinfo=None)


def test_a_property_is_merged_over_a_window(spark: SparkSession) -> None:
    rows = [{"rid": i, "ts": at(f"12:00:0{i}"), "meter": m, "kwh": i} for i, m in enumerate("abca")]
    frame = table(spark, rows).property("meters", F.col("meter"), merge="set")

    found = frame.inOrder().countWindow(2).properties().orderBy("ts").collect()
    assert [row.meters for row in found] == [["a", "b"], ["b", "c"], ["a", "c"]]


@pytest.mark.parametrize(
    ("build", "length", "micros", "auto"),
    [
        (lambda o: o.timeWindow("30 seconds"), 0, 30 * SECOND, "pointers"),
        (lambda o: o.timeWindow("30 seconds", every="1 second"), 0, 30 * SECOND, "pointers"),
        (lambda o: o.join(o, ("5 seconds", "9 seconds")), 0, 9 * SECOND, "pointers"),
        (lambda o: o.countWindow(2), None, None, "sets"),
        (lambda o: o.valueWindow("kwh", 2), None, None, "sets"),
        (lambda o: o.boundedSort("kwh", 2), None, None, "sets"),
        (lambda o: o.join(o, rows=2), None, None, "sets"),
    ],
)
def test_how_far_a_window_reaches(
    spark: SparkSession,
    tmp_path: Path,
    rocksdb: None,
    build: Callable[[Any], Frame],
    length: int | None,
    micros: int | None,
    auto: str,
) -> None:
    node = build(stream(spark, tmp_path).withWatermark("ts", "1 minute").inOrder("meter")).node
    assert reach(node, whole=False).length == length
    assert bounds(node)["readings"].micros == micros
    assert choose(node, "auto").capture == auto


@pytest.fixture
def rocksdb(spark: SparkSession) -> Any:
    from windows.cases import ROCKSDB

    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    yield
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


def stream(spark: SparkSession, folder: Path) -> Frame:
    (folder / "none").mkdir()
    source = spark.readStream.schema(READINGS_DDL).parquet(str(folder / "none"))
    return clew.trace(source, "readings", event_time="ts")


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda f: f.inOrder("metre").countWindow(2), ColumnError, "the column `metre`"),
        (lambda f: f.inOrder("meter", time="kwh").countWindow(2), ColumnError, "no timestamp"),
        (lambda f: f.inOrder().countWindow(0), GraphError, "`size` is a number of rows"),
        (lambda f: f.inOrder().timeWindow("soon"), GraphError, "a length of time"),
        (lambda f: f.inOrder().valueWindow("meter", 2), ColumnError, "a number or a time"),
        (lambda f: f.inOrder().valueWindow("kwh", -1), GraphError, "greater than 0"),
        (lambda f: f.inOrder().join(f.inOrder()), GraphError, 'within="10 seconds"'),
        (lambda f: f.inOrder("meter").join(f.inOrder(), rows=1), GraphError, "1 and 0 keys"),
        (lambda f: f.inOrder().countWindow(2, into="ts"), ColumnError, 'into="..."'),
        (lambda f: f.drop("ts").inOrder().countWindow(2), ColumnError, 'time="ts"'),
        (
            lambda f: f.withColumn("i", F.expr("interval 1 day")).inOrder().countWindow(2),
            ColumnError,
            '.drop("i")',
        ),
    ],
)
def test_what_cannot_work_is_refused(
    spark: SparkSession, build: Callable[[Frame], Frame], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as raised:
        build(table(spark, [end()]))
    assert says in str(raised.value)


def test_a_stream_needs_a_watermark_and_rocksdb(spark: SparkSession, tmp_path: Path) -> None:
    frame = stream(spark, tmp_path)
    with pytest.raises(GraphError, match=r"\.withWatermark\("):
        frame.inOrder("meter").countWindow(2)
    with pytest.raises(GraphError, match="RocksDBStateStoreProvider"):
        frame.withWatermark("ts", "1 minute").inOrder("meter").countWindow(2)


def test_rows_of_a_window_and_their_keys_are_as_spark_has_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = spark.sql(
        "SELECT rid, timestamp '2026-01-01 12:00:00Z' + make_dt_interval(0, 0, 0, rid) AS ts, "
        "timestamp_ntz '2026-01-01 00:00:00.000001' + make_dt_interval(0, 0, 0, rid % 2 / 1e6) "
        "AS wall, collate(if(rid % 2 = 0, 'a', 'A'), 'UTF8_LCASE') AS name, "
        "if(rid % 2 = 0, 0.0D, -0.0D) AS zero FROM VALUES (0), (1), (2), (3) AS t(rid)"
    )
    walls = {row["rid"]: row["wall"] for row in made.collect()}
    together, apart = [[0, 1], [1, 2], [2, 3]], [[0, 2], [1, 3]]

    for key, expected in {"name": together, "zero": together, "wall": apart}.items():
        frame = clew.trace(made, "readings", id=["rid"], event_time="ts")
        windows = frame.inOrder(key).countWindow(2)
        traces = batch_traces(windows, tmp_path / key, capture="sets")

        assert sorted([r["rid"] for r in t.values["rows"]] for t in traces) == expected, key
        assert {r["rid"]: r["wall"] for t in traces for r in t.values["rows"]} == walls
