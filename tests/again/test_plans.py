"""What a capture adds to Spark's plan: nothing, or a few primitive columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

import clew
from clew.again.levels import Unfolding, join_groups
from clew.again.tables import Tables
from clew.capture.intervals import INTERVALS
from clew.capture.kinds import kind_of
from clew.capture.pointers import GROUP_A, PointersCapture
from clew.operators.aggregate import Aggregate
from clew.plan.analysis import explain
from clew.plan.columns import is_hidden
from clew.plan.equal import Part, fast_hash, strong_hash
from clew.plan.node import interpret, with_secret
from clew.plan.secret import Secret
from clew.testing import keyed, read_batches, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from clew.capture.kinds import CaptureName
    from clew.plan.algebra import Capture


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    write_batches(
        tmp_path / "in", READINGS, [[{"rid": 1, "ts": at("12:00:00"), "meter": "m", "kwh": 1}]]
    )
    return read_batches(spark, tmp_path / "in", READINGS_DDL)


def nested(frame: Any) -> Any:
    first = (
        frame.withWatermark("ts", "5 seconds")
        .groupBy(F.window("ts", "20 seconds", "10 seconds"), "meter")
        .agg(F.sum("kwh").alias("kwh"))
        .filter("kwh > 0")
    )
    return first.groupBy(F.window(F.window_time("window"), "1 minute")).agg(F.count("*").alias("n"))


def physical(df: DataFrame) -> str:
    _, _, plan = explain(df).partition("== Physical Plan ==")
    return re.sub(r"#\d+L?|plan_id=\d+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "", plan)


def test_off_is_the_plan_of_the_query_itself(stream: DataFrame) -> None:
    traced = nested(clew.trace(stream, "readings", event_time="ts"))
    writer = traced.writeStream.provenance("anywhere", capture="off")

    plain = nested(stream)

    assert isinstance(traced, clew.TracedFrame)
    assert physical(traced.node.plain.df) == physical(plain)
    assert writer._place is None


@pytest.mark.parametrize("capture", [PointersCapture(), INTERVALS], ids=["pointers", "intervals"])
def test_aggregates_stay_generated_hash_aggregates(stream: DataFrame, capture: Capture) -> None:
    traced = nested(clew.trace(stream, "readings", event_time="ts"))

    plan = physical(interpret(keyed(traced), capture).df)

    assert plan.count("HashAggregate") == physical(nested(stream)).count("HashAggregate") > 0
    assert "ObjectHashAggregate" not in plan
    assert "SortAggregate" not in plan


def test_pointers_are_a_fixed_number_of_numbers(stream: DataFrame) -> None:
    readings = clew.trace(stream, "readings", event_time="ts").withWatermark("ts", "5 seconds")
    grouped = readings.groupBy(F.window("ts", "20 seconds"), "meter").agg(F.count("*").alias("n"))
    times = grouped.select(F.window_time("window").alias("end"), "meter", "n")
    condition = F.expr("l.meter = r.meter and r.ts <= l.end and r.ts > l.end - interval 20 seconds")
    joined = times.alias("l").join(readings.alias("r"), condition).select("end", "n", "rid")

    # A row's id is its first pointer as well; a row that stands for one source row has one time.
    cases = ((readings.filter("kwh > 0"), 0, 1), (grouped, 0, 2), (joined, 2, 2))
    for frame, pointers, ends in cases:
        built = interpret(keyed(frame), PointersCapture())
        hidden = [f for f in built.df.schema.fields if is_hidden(f.name)]

        assert {type(f.dataType) for f in hidden} == {T.LongType}
        assert len(hidden) == 2 + ends + 2 * pointers


@pytest.mark.parametrize("capture", [PointersCapture(), INTERVALS], ids=["pointers", "intervals"])
def test_a_window_over_the_event_time_takes_nothing_more_into_its_state(
    stream: DataFrame, capture: Capture
) -> None:
    def windows(frame: Any) -> Any:
        kept = frame.filter("kwh > 0").withWatermark("ts", "5 seconds")
        return kept.groupBy(F.window("ts", "20 seconds", "5 seconds"), "meter").agg(F.max("kwh"))

    def computed(df: DataFrame) -> list[str]:
        return re.findall(r"HashAggregate\(.*functions=\[(.*?)\]", physical(df))

    traced = windows(clew.trace(stream, "readings", event_time="ts"))

    found = computed(interpret(keyed(traced), capture).df)
    assert found == computed(windows(stream))
    assert set(found) == {"partial_max(kwh)", "merge_max(kwh)", "max(kwh)"}


def test_a_window_over_a_time_that_was_changed_carries_the_span(stream: DataFrame) -> None:
    readings = clew.trace(stream, "readings", event_time="ts").withWatermark("ts", "5 seconds")
    over = F.window("ts", "20 seconds")
    changed = readings.withColumn("ts", F.expr("ts + interval 1 hour"))
    steps = {
        "as it is": (readings, True),
        "with another column": (readings.withColumn("wh", F.col("kwh") * 1000), True),
        "chosen": (readings.select("meter", "ts"), True),
        "changed": (changed, False),
        "computed": (readings.select("meter", F.expr("ts - interval 1 hour AS ts")), False),
        "named": (readings.named("all"), True),
    }
    for what, (frame, is_within) in steps.items():
        operator = frame.groupBy(over, "meter").count().node.operator
        assert isinstance(operator, Aggregate)
        assert operator.within == (0 if is_within else None), what


@pytest.mark.parametrize("capture", [PointersCapture(), INTERVALS], ids=["pointers", "intervals"])
def test_a_row_that_a_filter_drops_gets_no_id(stream: DataFrame, capture: Capture) -> None:
    readings = clew.trace(stream, "readings", event_time="ts")
    kept = readings.withWatermark("ts", "5 seconds").filter("unix_seconds(ts) % 3600 < 60")

    plan = physical(interpret(keyed(kept), capture).df)

    # What stands above in a plan is computed later.
    assert 0 <= plan.index("sha2(") < plan.index("Filter") < plan.index("EventTimeWatermark")


def test_texts_are_digested_for_the_groups_that_are_wanted_only(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(n, f"meter {n % 7}") for n in range(50)], "n int, meter string")
    counted = clew.trace(rows, "readings", id=["n"]).groupBy("meter").count()
    capture = PointersCapture(contents=True)
    interpret(keyed(counted), capture, check=False)
    [level] = capture.levels.values()
    assert isinstance(level.second, Column)

    a, b = level.rows.select(GROUP_A, level.second.alias("b")).head() or (0, 0)
    wanted = spark.createDataFrame([(a, b), (a, b + 1)], "_clew_w_a long, _clew_w_b long")
    found = join_groups(level, wanted, is_small=True)

    join = next(line for line in physical(found).splitlines() if "BroadcastHashJoin" in line)
    keys, _, condition = join.partition("BuildRight")
    assert "sha2(" not in keys
    assert "sha2(" in condition
    assert found.count() == join_groups(level, wanted, is_small=False).count() in (7, 8)


def test_paths_are_digested_for_the_rows_that_are_wanted_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{"rid": n, "ts": at("12:00:00"), "meter": f"m{n % 3}", "kwh": n} for n in range(9)]
    write_batches(tmp_path / "in", READINGS, [rows])
    readings = clew.trace(spark.read.parquet(str(tmp_path / "in")), "readings")
    counted = readings.groupBy("meter").count()
    capture = PointersCapture(contents=True)
    node = keyed(counted)
    interpret(node, capture, check=False)
    [level] = capture.levels.values()

    a, b = level.rows.select(GROUP_A, level.second.alias("b")).head() or (0, 0)
    wanted = spark.createDataFrame([(a, b)], "_clew_w_a long, _clew_w_b long")
    found = join_groups(level, wanted, is_small=True).select("_clew_a", "_clew_b")

    above, _, join = physical(found).partition("BroadcastHashJoin")
    assert "sha2(" in above
    assert "sha2(" not in join.partition("\n")[2]
    ids = {(each["_clew_a"], each["_clew_b"]) for each in found.collect()}
    sources = interpret(node.inputs[0], PointersCapture(), check=False).df
    known = {(each["_clew_a"], each["_clew_b"]) for each in sources.collect()}
    assert len(ids) == 3
    assert ids <= known


def generated(df: DataFrame, said: pytest.CaptureFixture[str]) -> str:
    said.readouterr()
    df.explain(mode="codegen")
    whole = said.readouterr().out
    # Without the plans, in which the secret stands, and the names of functions' variables.
    code = "\n".join(re.findall(r"^/\* \d+ \*/.*$", whole, re.MULTILINE))
    return re.sub(r"/\* \w+_\d+ \*/", "", code)


@pytest.mark.parametrize("kind", ["sets", "pointers", "intervals"])
def test_code_that_spark_generates_serves_every_store(
    spark: SparkSession, tmp_path: Path, kind: CaptureName, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [[{"rid": 1, "ts": at("12:00:00"), "meter": "m", "kwh": 1}]]
    write_batches(tmp_path / "in", READINGS, rows)
    readings = clew.trace(spark.read.parquet(str(tmp_path / "in")), "readings", event_time="ts")
    frame = nested(readings)

    secrets = [Secret.from_hex(f"{n:02x}" * 32) for n in (17, 254)]
    nodes = [with_secret(frame.node, each) for each in secrets]
    frames = [interpret(node, kind_of(kind).moves()).df for node in nodes]
    one, other = [generated(each, capsys) for each in frames]

    assert "xxhash64" in frames[0]._jdf.queryExecution().toString()
    assert len(one.splitlines()) > 100
    assert one == other


@pytest.mark.parametrize("word", [0, 1, -1, 2**63 - 1, -(2**63) + 1, 0x0123456789ABCDEF])
def test_a_secret_hashes_as_the_numbers_that_it_is_made_of(spark: SparkSession, word: int) -> None:
    parts = [Part("id"), Part("isnull(id)")]
    found = spark.range(3).selectExpr(
        str(fast_hash(parts, word, ~word)),
        f"xxhash64({word}L, id, isnull(id), {~word}L)",
        str(strong_hash(parts, word, ~word)),
        f"xxhash64({word}L, isnull(id), id, {~word}L)",
    )

    assert [(r[0], r[2]) for r in found.collect()] == [(r[1], r[3]) for r in found.collect()]


def test_rows_are_chosen_by_their_numbers_before_paths_are_digested(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [[{"rid": n, "ts": at("12:00:00"), "meter": "m", "kwh": n}] * 3 for n in range(3)]
    write_batches(tmp_path / "in", READINGS, rows)
    readings = clew.trace(spark.read.parquet(str(tmp_path / "in")), "readings")
    unfolding = Unfolding(Tables(spark, keyed(readings)))
    every = unfolding.rows_of("readings").select("a", "b").toArrow()
    wanted = every.filter(pc.equal(every["b"], 1)).slice(0, 2)

    found = unfolding.rows_with("readings", wanted)

    above, semi, below = physical(found).partition("LeftSemi")
    assert "sha2(" in above
    assert semi
    assert "sha2(" not in below
    got = found.select("a", "b", "content.row.kwh").toArrow()
    assert sorted(got.select(["a", "b"]).to_pylist(), key=str) == sorted(
        wanted.to_pylist(), key=str
    )
