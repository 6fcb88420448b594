"""Each verb in batch: its rows trace to the rows that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import clew
from frames import answers, batch_traces

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SALES = [(1, "a", 10, [1, 2]), (2, "a", 20, [3]), (3, "b", 30, []), (4, None, None, [4, 4])]
PRICES = [(11, "a", 100), (12, "a", 200), (13, "c", 300)]


@pytest.fixture
def sales(spark: SparkSession) -> clew.TracedFrame:
    df = spark.createDataFrame(SALES, "rid long, k string, v int, tags array<int>")
    return clew.trace(df, "sales", id=["rid"])


@pytest.fixture
def prices(spark: SparkSession) -> clew.TracedFrame:
    df = spark.createDataFrame(PRICES, "rid long, k string, p int")
    return clew.trace(df, "prices", id=["rid"])


def test_filter_and_select_trace_to_the_row_itself(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.filter("v > 10").select("k", (F.col("v") * 2).alias("w"))

    assert answers(batch_traces(out, tmp_path), "w") == {40: {2}, 60: {3}}


def test_select_star_beside_an_expression_keeps_the_columns_in_order(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.select("*", F.lit(1).alias("one")).filter("rid = 3")

    traces = batch_traces(out, tmp_path)

    assert list(traces[0].values) == ["rid", "k", "v", "tags", "one"]
    assert answers(traces, "rid") == {3: {3}}


def test_columns_taken_from_the_frame_mean_that_frames_columns(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    joined = sales.join(prices, sales["k"] == prices.k).drop(prices["k"])
    out = joined.filter(sales.v >= 20).select(sales["k"], prices["p"], sales["v"] + prices["p"])

    traces = batch_traces(out, tmp_path)

    assert list(traces[0].values) == ["k", "p", "(v + p)"]
    assert answers(traces, "p") == {100: {2, 11}, 200: {2, 12}}


def test_explode_traces_each_element_to_its_row(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.select("k", F.explode("tags").alias("tag")).filter("tag < 4")

    assert answers(batch_traces(out, tmp_path), "tag") == {1: {1}, 2: {1}, 3: {2}}


def test_unpivot_traces_each_value_to_its_row(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.select("rid", "v", (F.col("v") + 1).alias("w")).unpivot("rid", None, "what", "x")

    got = answers(batch_traces(out.filter("rid < 3"), tmp_path), "rid", "what")

    assert got == {(1, "v"): {1}, (1, "w"): {1}, (2, "v"): {2}, (2, "w"): {2}}


def test_group_traces_to_all_its_rows_and_null_is_a_key(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.groupBy("k").agg(F.sum("v").alias("v"), F.max("v").alias("m"))

    assert answers(batch_traces(out, tmp_path), "k") == {"a": {1, 2}, "b": {3}, None: {4}}


@pytest.mark.parametrize("word", ["sum", "avg", "min", "max", "mean", "count"])
def test_group_words_give_the_columns_that_spark_gives(sales: clew.TracedFrame, word: str) -> None:
    traced = getattr(sales.groupBy("k"), word)()
    plain = getattr(sales.plain.groupBy("k"), word)()

    assert traced.columns == plain.columns
    assert sorted(map(str, traced.collect())) == sorted(map(str, plain.collect()))


def test_global_aggregate_traces_to_every_row(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.groupBy().agg(F.count("*").alias("n"))

    assert answers(batch_traces(out, tmp_path), "n") == {4: {1, 2, 3, 4}}


def test_aggregate_over_aggregate_does_not_repeat_rows(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    twice = sales.union(sales).groupBy("k").agg(F.count("*").alias("n"))
    out = twice.groupBy("n").agg(F.count("*").alias("groups"))

    assert answers(batch_traces(out, tmp_path), "n") == {4: {1, 2}, 2: {3, 4}}


def test_rollup_tells_totals_from_null_keys(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.rollup("k").agg(F.count("*").alias("n"))

    got = sorted(
        (t.values["k"] or "-", sorted(r for _, r in t.refs("rid")))
        for t in batch_traces(out, tmp_path)
    )

    assert got == [("-", [1, 2, 3, 4]), ("-", [4]), ("a", [1, 2]), ("b", [3])]


def test_cube_groups_by_each_subset(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.filter("v is not null").cube("k", "v").agg(F.count("*").alias("n"))

    got = answers(batch_traces(out, tmp_path), "k", "v")

    assert got[None, None] == {1, 2, 3}
    assert got["a", None] == {1, 2}
    assert got[None, 30] == {3}
    assert got["a", 20] == {2}


def test_pivot_traces_to_the_whole_group(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.groupBy("k").pivot("v", [10, 20]).agg(F.count("rid"))

    traces = batch_traces(out, tmp_path)

    assert list(traces[0].values) == ["k", "10", "20"]
    assert answers(traces, "k") == {"a": {1, 2}, "b": {3}, None: {4}}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", {("a", 10, 100): {1, 11}, ("a", 10, 200): {1, 12}}),
        (
            "left",
            {
                ("a", 10, 100): {1, 11},
                ("a", 10, 200): {1, 12},
                ("b", 30, None): {3},
                (None, None, None): {4},
            },
        ),
        ("right", {("a", 10, 100): {1, 11}, ("a", 10, 200): {1, 12}, ("c", None, 300): {13}}),
    ],
)
def test_join_traces_to_the_pair_or_the_one_side(
    sales: clew.TracedFrame,
    prices: clew.TracedFrame,
    how: str,
    expected: dict[object, set[int]],
    tmp_path: Path,
) -> None:
    out = sales.filter("rid <> 2").drop("rid").join(prices.drop("rid"), "k", how)

    assert answers(batch_traces(out, tmp_path), "k", "v", "p") == expected


def test_full_join_keeps_both_unmatched_sides(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.drop("rid").join(prices.drop("rid"), ["k"], "full").filter("v is null or p is null")

    got = answers(batch_traces(out, tmp_path), "k", "v", "p")

    assert got == {("b", 30, None): {3}, (None, None, None): {4}, ("c", None, 300): {13}}


def test_semi_join_by_name_traces_to_the_row_and_all_its_matches(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.join(prices.drop("rid"), on="k", how="left_semi")

    traces = batch_traces(out, tmp_path)

    assert list(traces[0].values) == ["k", "rid", "v", "tags"]
    assert answers(traces, "rid") == {1: {1, 11, 12}, 2: {2, 11, 12}}


def test_semi_join_by_condition_traces_to_the_row_and_all_its_matches(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    on = (sales["k"] == prices["k"]) & (prices["p"] > sales["v"] * 8)
    out = sales.join(prices, on, "semi")

    assert answers(batch_traces(out, tmp_path), "rid") == {1: {1, 11, 12}, 2: {2, 12}}


def test_anti_join_traces_to_the_left_row(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.join(prices.drop("rid"), "k", "anti")

    assert answers(batch_traces(out, tmp_path), "rid") == {3: {3}, 4: {4}}


def test_self_join_through_alias_traces_to_both_rows(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    a, b = sales.alias("a"), sales.alias("b")
    on = (F.col("a.k") == F.col("b.k")) & (F.col("a.rid") <= F.col("b.rid"))
    out = a.join(b, on).select(F.col("a.rid").alias("x"), F.col("b.rid").alias("y"))

    got = answers(batch_traces(out, tmp_path), "x", "y")

    assert got == {(1, 1): {1}, (1, 2): {1, 2}, (2, 2): {2}, (3, 3): {3}}


def test_cross_join_traces_to_each_pair(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.filter("rid = 1").select("v").crossJoin(prices.select("p"))

    assert answers(batch_traces(out, tmp_path), "p") == {100: {1, 11}, 200: {1, 12}, 300: {1, 13}}


def test_union_of_two_sources_keeps_them_apart(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.select("k", "v").union(prices.select("k", "p"))

    got = answers(batch_traces(out, tmp_path), "k", "v")

    assert got["a", 20] == {2}
    assert got["c", 300] == {13}
    assert len(got) == 7


def test_union_by_name_fills_missing_columns(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.select("v", "k").unionByName(prices.select("k", "p"), allowMissingColumns=True)

    traces = batch_traces(out, tmp_path)

    assert list(traces[0].values) == ["v", "k", "p"]
    assert answers(traces, "k", "v", "p")["c", None, 300] == {13}


def test_distinct_traces_to_the_row_with_the_smallest_id(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    doubled = sales.select("k").union(sales.select("k"))

    got = answers(batch_traces(doubled.distinct(), tmp_path), "k")

    assert {k: len(refs) for k, refs in got.items()} == {"a": 1, "b": 1, None: 1}
    assert got["a"] < {1, 2}


def test_distinct_can_trace_to_all_rows_it_stands_for(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.select("k").dropDuplicates(contributes="all")

    assert answers(batch_traces(out, tmp_path), "k") == {"a": {1, 2}, "b": {3}, None: {4}}


def test_intersect_traces_to_one_row_on_each_side(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.filter("rid <> 2").select("k").intersect(prices.filter("p <> 200").select("k"))

    assert answers(batch_traces(out, tmp_path), "k") == {"a": {1, 11}}


def test_subtract_traces_to_the_left_row(
    sales: clew.TracedFrame, prices: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.select("k").subtract(prices.select("k"))

    assert answers(batch_traces(out, tmp_path), "k") == {"b": {3}, None: {4}}


def test_order_and_limit_trace_to_the_rows_themselves(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.orderBy(F.desc("rid")).limit(2)

    assert answers(batch_traces(out, tmp_path), "rid") == {4: {4}, 3: {3}}


def test_missing_values_are_filled_and_dropped_in_the_users_columns_only(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    out = sales.fillna(0).na.fill("none").na.replace("none", "nobody").dropna()

    assert answers(batch_traces(out, tmp_path), "k", "v")["nobody", 0] == {4}


def test_renaming_all_columns_keeps_the_trace(sales: clew.TracedFrame, tmp_path: Path) -> None:
    out = sales.toDF("w", "x", "y", "z").withColumnRenamed("w", "row no. 1").drop("z")

    traces = batch_traces(out.filter("y = 30"), tmp_path)

    assert traces[0].values == {"row no. 1": 3, "x": "b", "y": 30}
    assert {ref for _, ref in traces[0].refs("rid")} == {3}


def test_window_function_needs_its_partition_and_is_then_a_superset(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    rank = F.row_number().over(Window.partitionBy("k").orderBy("v"))
    out = sales.withColumn("rank", rank, partition=["k"]).filter("rank = 1")

    assert answers(batch_traces(out, tmp_path), "k") == {"a": {1, 2}, "b": {3}, None: {4}}
    described = clew.open(str(tmp_path / "prov")).streams()
    assert {s.name: s.exactness for s in described} == {"sales": "exact", "out": "superset"}


def test_map_in_pandas_follows_the_id_that_the_function_keeps(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    def double(batches):  # type: ignore[no-untyped-def]
        for pdf in batches:
            yield pdf[pdf.v > 10][["v", "clew_id"]]

    out = sales.filter("v is not null").mapInPandas(double, "v int, clew_id string", carries="id")

    assert answers(batch_traces(out, tmp_path), "v") == {20: {2}, 30: {3}}


def test_map_in_arrow_follows_the_id_that_the_function_keeps(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    def same(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            yield batch.select(["v", "clew_id"])

    out = sales.select("v").mapInArrow(same, "v int, clew_id string", carries="id")

    assert answers(batch_traces(out, tmp_path), "v") == {10: {1}, 20: {2}, 30: {3}, None: {4}}


def test_apply_in_pandas_traces_to_the_whole_group(sales: clew.TracedFrame, tmp_path: Path) -> None:
    def top(pdf):  # type: ignore[no-untyped-def]
        return pdf.sort_values("v").tail(1)[["k", "v"]]

    grouped = sales.filter("k is not null").groupBy("k")
    out = grouped.applyInPandas(top, "k string, v int", carries="group")

    assert answers(batch_traces(out, tmp_path), "k", "v") == {("a", 20): {1, 2}, ("b", 30): {3}}
    described = clew.open(str(tmp_path / "prov")).streams()
    assert {s.name: s.exactness for s in described}["out"] == "coarse"


def test_named_frame_can_be_asked_about(sales: clew.TracedFrame, tmp_path: Path) -> None:
    from clew.testing import all_traces

    per_key = sales.groupBy("k").agg(F.count("*").alias("n")).named("per_key")
    out = per_key.groupBy("n").agg(F.count("*").alias("keys"))

    assert answers(batch_traces(out, tmp_path), "n") == {2: {1, 2}, 1: {3, 4}}
    named = all_traces(tmp_path / "prov", "per_key", sink="out")
    assert answers(named, "k") == {"a": {1, 2}, "b": {3}, None: {4}}


def kept_by(spark: SparkSession) -> int:
    """Say how many frames Spark keeps computed."""
    return int(spark._jsparkSession.sharedState().cacheManager().numCachedEntries())


def test_unpersist_frees_the_rows_that_were_kept_with_their_provenance(
    spark: SparkSession, sales: clew.TracedFrame, tmp_path: Path
) -> None:
    before = kept_by(spark)
    kept = sales.filter("v > 10").cache()
    twice = kept.select("rid", F.col("v") * 2)

    assert answers(batch_traces(twice, tmp_path), "rid") == {2: {2}, 3: {3}}
    batch_traces(kept, tmp_path, name="same")
    assert kept_by(spark) == before + 2  # the plain rows, and those with ids
    assert kept.unpersist() is kept
    assert kept_by(spark) == before
    assert answers(batch_traces(kept, tmp_path, name="after"), "rid") == {2: {2}, 3: {3}}
    assert kept_by(spark) == before
    kept.cache().unpersist()
    assert kept_by(spark) == before


def test_unpersist_frees_rows_that_have_copies_of_columns(
    spark: SparkSession, sales: clew.TracedFrame, tmp_path: Path
) -> None:
    before = kept_by(spark)
    held = sales.where(sales["v"] > 10).persist()
    out = held.where(sales["k"] == "b")

    assert answers(batch_traces(out, tmp_path), "rid") == {3: {3}}
    held.unpersist()
    assert kept_by(spark) == before


def test_passing_verbs_change_neither_rows_nor_traces(
    sales: clew.TracedFrame, tmp_path: Path
) -> None:
    out = (
        sales.repartition(3, "k")
        .coalesce(1)
        .hint("broadcast")
        .persist()
        .sortWithinPartitions("rid")
        .sample(1.0)
        .transform(lambda f: f.where("rid < 3"))
    )

    assert answers(batch_traces(out, tmp_path), "rid") == {1: {1}, 2: {2}}
