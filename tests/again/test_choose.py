"""Which capture is chosen, and what is said where one cannot serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.exceptions import CaptureRefusedError, WriterError
from clew.testing import read_batches, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Step = Callable[[clew.TracedFrame], clew.TracedFrame]


@pytest.fixture(scope="module")
def readings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> clew.TracedFrame:
    folder = tmp_path_factory.mktemp("choose") / "in"
    row = {"rid": 1, "ts": at("12:00:00"), "meter": "m", "kwh": 1}
    write_batches(folder, READINGS, [[row]])
    return clew.trace(read_batches(spark, folder, READINGS_DDL), "readings", event_time="ts")


def moody() -> Any:
    return F.udf(lambda x: x, "int").asNondeterministic()


def summed(frame: clew.TracedFrame) -> clew.TracedFrame:
    grouped = frame.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "10 seconds"), "meter")
    return grouped.agg(F.sum("kwh").alias("kwh"))


def test_auto_takes_pointers_for_a_window_over_files(readings: clew.TracedFrame) -> None:
    choice = choose(summed(readings).node, "auto")

    assert choice.capture == "pointers"
    assert choice.why == "the sources can be read again and the query gives the same twice"


def test_auto_takes_sets_where_a_row_has_few_sources(readings: clew.TracedFrame) -> None:
    choice = choose(readings.filter("kwh > 3").node, "auto")

    assert choice.capture == "sets"
    assert choice.why == "each result is made from a few rows that the query itself decides"


def test_auto_takes_pointers_where_rows_wait_to_be_joined(readings: clew.TracedFrame) -> None:
    left = readings.withWatermark("ts", "5 seconds")
    right = left.select(F.col("meter").alias("other"), F.col("ts").alias("then"))
    near = "meter = other and then >= ts and then <= ts + interval 10 seconds"
    choice = choose(left.join(right, F.expr(near), "inner").node, "auto")

    assert choice.capture == "pointers"
    assert choice.why == "the sources can be read again and the query gives the same twice"


UNSETTLED: list[tuple[str, Step, str]] = [
    ("rand", lambda f: summed(f.withColumn("kwh", F.rand())), "`rand()` gives another value"),
    ("uuid", lambda f: summed(f.withColumn("meter", F.expr("uuid()"))), "`uuid()` gives another"),
    (
        "now",
        lambda f: summed(f.filter(F.col("ts") < F.current_timestamp())),
        "`current_timestamp()` gives another value",
    ),
    (
        "function",
        lambda f: summed(f.withColumn("kwh", moody()("kwh"))),
        "`withColumns` calls a function that is declared non-deterministic",
    ),
    (
        "upper case",
        lambda f: summed(f.withColumn("kwh", F.expr("SPARK_PARTITION_ID()"))),
        "`SPARK_PARTITION_ID()` gives another value",
    ),
    (
        "java_method",
        lambda f: summed(f.withColumn("meter", F.expr("java_method('java.lang.Math', 'random')"))),
        "`java_method()` gives another value",
    ),
    (
        "reflect",
        lambda f: summed(f.withColumn("meter", F.expr("REFLECT('java.lang.Math', 'random')"))),
        "`reflect()` gives another value",
    ),
    (
        "try_reflect",
        lambda f: summed(f.withColumn("meter", F.expr("try_reflect('java.lang.Math', 'random')"))),
        "`try_reflect()` gives another value",
    ),
    (
        "encryption with a random start",
        lambda f: summed(
            f.withColumn("meter", F.expr("hex(aes_encrypt(meter, '0123456789abcdef'))"))
        ),
        "`aes_encrypt()` gives another value",
    ),
    (
        "behind many columns",
        lambda f: summed(
            f.withColumns({**{f"c{i}": F.col("kwh") + i for i in range(40)}, "r": F.rand()})
        ),
        "`rand()` gives another value",
    ),
    ("dedup", lambda f: summed(f.dropDuplicates(["rid"])), "`dropDuplicates` on a stream keeps"),
    (
        "nested session",
        lambda f: (
            f.withWatermark("ts", "5 seconds")
            .groupBy(F.session_window("ts", "5 seconds"), "meter")
            .agg(F.count("*").alias("n"))
            .groupBy(F.window(F.window_time("session_window"), "1 minute"))
            .agg(F.count("*").alias("n"))
        ),
        "a session window grows with the rows as they come",
    ),
    (
        "named",
        lambda f: summed(f.withColumn("kwh", F.rand()).named("all").withColumn("kwh", F.lit(1))),
        "`rand()` gives another value",
    ),
]


@pytest.mark.parametrize(("step", "why"), [u[1:] for u in UNSETTLED], ids=[u[0] for u in UNSETTLED])
def test_what_cannot_be_computed_again_is_carried(
    readings: clew.TracedFrame, step: Step, why: str
) -> None:
    choice = choose(step(readings).node, "auto")
    with pytest.raises(CaptureRefusedError) as refused:
        choose(step(readings).node, "pointers")

    assert choice.capture == "sets"
    assert choice.why.startswith(why)
    assert refused.value.why == choice.why
    assert 'Write `capture="sets"`' in str(refused.value)


def test_ordinary_functions_and_names_are_computed_again(readings: clew.TracedFrame) -> None:
    frame = readings.select(
        "ts",
        F.col("meter").alias("meter(no)"),
        F.regexp_replace(F.lower("meter"), "a", "b").alias("meter"),
        F.expr("cast(kwh as decimal(10, 2)) + size(transform(array(kwh), x -> x + 1))").alias(
            "kwh"
        ),
        F.to_timestamp(F.lit("2026-01-01")).alias("t"),
        F.expr("CASE WHEN kwh IN (1, 2) THEN date_trunc('hour', ts) ELSE ts END").alias("u"),
        F.expr("ts + interval 1 day").alias("v"),
        F.struct("kwh").withField("x", F.lit(1)).alias("w"),
    ).filter(F.col("kwh").between(0, 9) & F.col("`meter(no)`").isNotNull())

    assert choose(summed(frame).node, "auto").why.startswith("the sources can be read again")


def test_a_deterministic_function_is_computed_again(readings: clew.TracedFrame) -> None:
    plus_one = F.udf(lambda x: x + 1, "int")

    choice = choose(summed(readings.withColumn("kwh", plus_one("kwh"))).node, "auto")

    assert choice.capture == "pointers"


def test_what_comes_after_the_aggregation_need_not_be_settled(readings: clew.TracedFrame) -> None:
    frame = summed(readings).withColumn("lot", F.rand())

    assert choose(frame.node, "pointers").capture == "pointers"
    with pytest.raises(CaptureRefusedError, match="rand"):
        choose(frame.node, "intervals")


def test_a_stream_without_files_is_carried(spark: SparkSession) -> None:
    ticks = clew.trace(spark.readStream.format("rate").load(), "ticks", event_time="timestamp")
    marked = ticks.withWatermark("timestamp", "1 second")
    grouped = marked.groupBy(F.window("timestamp", "1 minute"))

    choice = choose(grouped.agg(F.count("*").alias("n")).node, "auto")

    assert choice.capture == "sets"
    assert choice.why.startswith("source `ticks` cannot be read again: it does not say which file")


def test_an_unknown_capture_is_refused(readings: clew.TracedFrame) -> None:
    wrong: Any = "all"
    with pytest.raises(WriterError, match='"auto", "off", "sets", "pointers", "intervals", "keys"'):
        choose(readings.node, wrong)
