"""What depends on the order of rows is not computed again where something is decided by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.exceptions import CaptureRefusedError
from clew.plan.order import Decisions
from clew.testing import read_batches
from frames import batch_traces

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Step = Callable[[clew.TracedFrame], clew.TracedFrame]

ROWS = 240
DDL = "id long, k int, s string, v double, i int, ci string COLLATE UTF8_LCASE, ts timestamp"


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("order") / "in"
    spark.range(0, ROWS, 1, 6).selectExpr(
        "id",
        "cast(id * 7 % 40 as int) AS k",
        "chr(65 + id % 3) AS s",
        "1 / (id + 1) AS v",
        "cast(id * 13 % 5 as int) AS i",
        "collate(chr(65 + id % 2 * 32), 'UTF8_LCASE') AS ci",
        "timestamp_seconds(id) AS ts",
    ).write.parquet(str(path))
    return path


@pytest.fixture(scope="module")
def rows(spark: SparkSession, folder: Path) -> clew.TracedFrame:
    return clew.trace(spark.read.parquet(str(folder)), "rows")


def counted(frame: clew.TracedFrame, *keys: str) -> clew.TracedFrame:
    return frame.groupBy(*keys).agg(F.count("*").alias("n"))


def inner(value: str) -> Step:
    return lambda f: f.groupBy("k").agg(F.expr(value).alias("f"))


def over(value: str, by: str = "f") -> Step:
    return lambda f: counted(inner(value)(f), by)


def placed(function: str) -> Step:
    by = f"{function} OVER (PARTITION BY k ORDER BY s)"
    return lambda f: f.withColumn("r", F.expr(by), partition=["k"])


REFUSED: dict[str, tuple[Step, str]] = {
    "first": (over("first(i)"), "`first()`"),
    "last": (over("last(i)"), "`last()`"),
    "any": (over("any_value(i)"), "`any_value()`"),
    "max_by": (over("max_by(s, i)"), "`max_by()`"),
    "min_by": (over("MIN_BY(s, i)"), "`min_by()`"),
    "mode": (over("mode(i)"), "`mode()`"),
    "element": (over("collect_list(i)[0]"), "`collect_list()`"),
    "set": (over("collect_set(i)"), "`collect_set()`"),
    "list": (over("array_agg(i)"), "`collect_list()`"),
    "text": (over("listagg(s)"), "`listagg()`"),
    "sketch": (over("percentile_approx(v, 0.5)"), "`percentile_approx()`"),
    "float sum": (over("sum(v)"), "`sum()` of floating-point numbers, in its last digits,"),
    "float average": (over("avg(v)"), "`avg()` of floating-point numbers"),
    "deviation": (over("stddev(i)"), "`stddev()`"),
    "filter": (
        lambda f: counted(inner("first(i)")(f).filter("f > 2"), "k"),
        "`first()`",
    ),
    "behind a column": (
        lambda f: counted(inner("first(i)")(f).withColumn("g", F.col("f") % 2), "g"),
        "`first()`",
    ),
    "join": (
        lambda f: counted(f.join(inner("first(i)")(f), on=F.expr("id = f")).select("s"), "s"),
        "`first()`",
    ),
    "union": (
        lambda f: counted(f.select("i").union(inner("first(i)")(f).select("f")), "i"),
        "`first()`",
    ),
    "distinct": (lambda f: counted(inner("first(i)")(f).distinct(), "k"), "`first()`"),
    "rollup": (
        lambda f: counted(f.rollup("k", "s").agg(F.first("i").alias("f")), "f"),
        "`first()`",
    ),
    "pivot": (
        lambda f: counted(f.groupBy("k").pivot("s", ["A", "B"]).agg(F.first("i")), "A"),
        "`first()`",
    ),
    "time": (
        lambda f: (
            f.groupBy("k")
            .agg(F.first("ts").alias("ts"))
            .groupBy(F.window("ts", "1 minute"))
            .agg(F.count("*").alias("n"))
        ),
        "`first()`",
    ),
    "named": (lambda f: counted(inner("first(i)")(f).named("firsts"), "k"), "`first()`"),
    "key behind a collation": (
        lambda f: counted(counted(f, "ci").withColumn("b", F.expr("hex(ci)")), "b"),
        "which of several equal values a group keeps",
    ),
    "sign of zero": (
        lambda f: counted(inner("max(v)")(f).withColumn("b", F.col("f").cast("string")), "b"),
        "which of several equal values a group keeps",
    ),
    "literals that look like a plan": (
        lambda f: counted(
            inner("first(i)")(f).withColumn("g", F.expr("concat(f, ', ) AS g#1')")), "g"
        ),
        "`first()`",
    ),
}


@pytest.mark.parametrize(("step", "why"), REFUSED.values(), ids=list(REFUSED))
def test_what_decides_by_the_order_of_rows_is_not_computed_again(
    rows: clew.TracedFrame, step: Step, why: str
) -> None:
    frame = step(rows)
    choice = choose(frame.node, "auto")

    assert choice.capture == "sets"
    assert choice.why.startswith(why)
    assert "when rows are read in another order" in choice.why
    for capture in ("pointers", "intervals", "keys"):
        with pytest.raises(CaptureRefusedError) as refused:
            choose(frame.node, capture)
        assert refused.value.why == choice.why


TAKEN: dict[str, Step] = {
    "shown by the last": inner("first(i)"),
    "not used": over("first(i)", by="k"),
    "sorted": over("sort_array(collect_list(i))"),
    "counted": over("size(collect_set(i))"),
    "whole numbers": over("sum(i) + 1"),
    "average of whole numbers": over("avg(i)"),
    "decimals": over("sum(cast(v as decimal(20, 10)))"),
    "largest": over("max(v)"),
    "middle": over("median(i)"),
    "same for equal": lambda f: counted(inner("max(v)")(f).filter("f > 0.5D"), "k"),
    "key under a collation": lambda f: counted(counted(f, "ci", "k"), "ci"),
    "other column of a union": lambda f: counted(
        f.select("k", "i").union(inner("first(i)")(f).select("k", "f")), "k"
    ),
    "with itself": lambda f: counted(
        inner("sum(i)")(f).alias("x").join(inner("sum(i)")(f).alias("y"), F.expr("x.f = y.f")),
        "x.k",
    ),
    "pivot": lambda f: f.groupBy("k").pivot("s", ["A", "B"]).agg(F.sum("i")),
    "rank": lambda f: placed("rank()")(f).filter("r = 1"),
}


@pytest.mark.parametrize("step", TAKEN.values(), ids=list(TAKEN))
def test_what_gives_the_same_in_any_order_is_computed_again(
    rows: clew.TracedFrame, step: Step
) -> None:
    frame = step(rows)

    assert choose(frame.node, "auto").capture == "pointers"
    assert choose(frame.node, "intervals").capture == "intervals"


def test_all_of_a_query_is_computed_again_for_intervals(rows: clew.TracedFrame) -> None:
    frames = [
        inner("first(i)")(rows).filter("f > 2"),
        inner("collect_list(i)")(rows).select("k", F.explode("f")),
        placed("row_number()")(rows).filter("r = 1"),
    ]

    for frame in frames:
        assert choose(frame.node, "pointers").capture == "pointers"
        with pytest.raises(CaptureRefusedError, match="another order"):
            choose(frame.node, "intervals")


def test_a_stream_is_judged_as_a_table_is(spark: SparkSession, folder: Path) -> None:
    stream = clew.trace(read_batches(spark, folder, DDL), "rows", event_time="ts")
    marked = stream.withWatermark("ts", "5 seconds")
    inner_windows = marked.groupBy(F.window("ts", "10 seconds"), "k").agg(F.first("i").alias("f"))
    by = F.window(F.window_time("window"), "1 minute")

    decided = inner_windows.groupBy(by, "f").agg(F.count("*").alias("n"))
    shown = inner_windows.groupBy(by, "k").agg(F.max("f").alias("f"))

    assert choose(decided.node, "auto").why.startswith("`first()`")
    assert choose(shown.node, "auto").capture == "pointers"


@pytest.mark.parametrize("value", ["first(i)", "max_by(i, s)", "collect_list(i)[0]"])
def test_each_result_traces_to_the_groups_it_counted(
    rows: clew.TracedFrame, tmp_path: Path, value: str
) -> None:
    found = batch_traces(over(value)(rows), tmp_path)

    groups = [{row["k"] for row in each.sources["rows"]} for each in found]
    assert [len(each) for each in groups] == [each.values["n"] for each in found]
    assert sorted(k for each in groups for k in each) == list(range(40))
    assert sum(len(each.sources["rows"]) for each in found) == ROWS


CHOSEN: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "sample": (lambda df: df.sample(0.5, 3), "a step of `rows` (Sample)"),
    "limit": (lambda df: df.limit(50), "a step of `rows` (GlobalLimit)"),
    "offset": (lambda df: df.offset(50), "a step of `rows` (Offset)"),
    "one of several": (lambda df: df.dropDuplicates(["k"]), "a step of `rows` (Deduplicate)"),
    "shown": (lambda df: df.groupBy("k").agg(F.first("i").alias("i")), "`first()`"),
    "function": (lambda df: df.withColumn("i", _moody()("k")), "the source `rows` calls a"),
}


def _moody() -> Any:
    return F.udf(lambda k: k, "int").asNondeterministic()


@pytest.mark.parametrize(("make", "why"), CHOSEN.values(), ids=list(CHOSEN))
def test_a_source_that_may_hold_other_rows_is_not_read_again(
    spark: SparkSession, folder: Path, make: Callable[[DataFrame], DataFrame], why: str
) -> None:
    frame = counted(clew.trace(make(spark.read.parquet(str(folder))), "rows", id=["k"]), "k")

    choice = choose(frame.node, "auto")

    assert choice.capture == "sets"
    assert choice.why.startswith(why)
    for capture in ("pointers", "intervals", "keys"):
        with pytest.raises(CaptureRefusedError):
            choose(frame.node, capture)


def test_a_source_that_holds_the_same_rows_is_read_again(spark: SparkSession, folder: Path) -> None:
    table = spark.read.parquet(str(folder))
    plus_one = F.udf(lambda i: i + 1, "int")
    frames = [
        table.select("k", "i").distinct(),
        table.groupBy("k").agg(F.sum("i").alias("i")),
        table.withColumn("i", plus_one("i")),
        table.filter("i > 0").orderBy("k"),
    ]

    for df in frames:
        traced = counted(clew.trace(df, "rows", id=["k"]), "k")
        assert choose(traced.node, "auto").capture == "pointers"


def test_a_line_that_can_not_be_taken_apart_is_taken_as_a_whole() -> None:
    plan = [
        "Aggregate [b#5], [b#5, count(1) AS n#6L]",
        "+- Project [f(g(f#4, ), h), x) AS a#7, k#1 AS b#5]",
        "   +- Aggregate [k#1], [k#1, first(v#3, false) AS f#4]",
        "      +- LogicalRDD [k#1, v#3], false",
    ]

    assert Decisions(plan, {}).why == "`first()`"
    assert Decisions([plan[0].replace("b#5", "k#1"), *plan[2:]], {}).why is None
