"""Every verb of Spark's is either followed or refused by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, GroupedData, Window
from pyspark.sql import functions as F

import clew
from clew.exceptions import (
    BeyondRowError,
    ColumnError,
    GraphError,
    OpaqueOperatorError,
    RefusedVerbError,
    ReservedNameError,
)
from clew.frame.group import TracedGroup
from clew.frame.refused import REFUSED, REFUSED_ON_GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> clew.TracedFrame:
    df = spark.createDataFrame([(1, "a", 10)], "rid long, k string, v int")
    return clew.trace(df, "rows", id=["rid"])


def _public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_")]


@pytest.mark.parametrize("verb", _public(DataFrame))
def test_each_verb_of_a_dataframe_is_followed_or_refused(verb: str) -> None:
    followed = hasattr(clew.TracedFrame, verb)

    assert followed != (verb in REFUSED)


@pytest.mark.parametrize("verb", _public(GroupedData))
def test_each_verb_of_a_group_is_followed_or_refused(verb: str) -> None:
    followed = hasattr(TracedGroup, verb)

    assert followed != (verb in REFUSED_ON_GROUPS)


def test_a_dictionary_of_aggregates_stands_alone(frame: clew.TracedFrame) -> None:
    mixed: list[Any] = [{"v": "max"}, F.count("*")]

    with pytest.raises(GraphError, match="one dictionary or several columns"):
        frame.groupBy("k").agg(*mixed)


def test_no_verb_is_refused_that_spark_does_not_have() -> None:
    assert set(REFUSED) <= set(_public(DataFrame))
    assert set(REFUSED_ON_GROUPS) <= set(_public(GroupedData))


@pytest.mark.parametrize("verb", sorted(REFUSED))
def test_a_refused_verb_says_what_to_write_instead(frame: clew.TracedFrame, verb: str) -> None:
    with pytest.raises(RefusedVerbError) as caught:
        getattr(frame, verb)

    assert caught.value.verb == verb
    assert f"`{verb}` is not available on a traced frame: {REFUSED[verb]}" in str(caught.value)


@pytest.mark.parametrize(
    "verb",
    [
        v
        for v in _public(DataFrame)
        if v not in REFUSED and inspect.isfunction(getattr(DataFrame, v))
        if not inspect.isdatadescriptor(getattr(clew.TracedFrame, v))
    ],
)
def test_a_followed_verb_has_the_parameters_that_spark_gives_it(verb: str) -> None:
    sparks = inspect.signature(getattr(DataFrame, verb)).parameters
    ours = inspect.signature(getattr(clew.TracedFrame, verb)).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in ours.values()) or any(
        p.kind is p.VAR_POSITIONAL for p in ours.values()
    )

    assert open_ended or set(sparks) <= set(ours)


BEYOND: dict[str, Callable[[clew.TracedFrame], object]] = {
    "window function": lambda f: f.withColumn("x", F.sum("v").over(Window.partitionBy("k"))),
    "window function in SQL": lambda f: f.selectExpr("rank() over (order by v) as r"),
    "window function deep inside": lambda f: f.select(
        F.struct(F.array(F.coalesce(F.lag("v").over(Window.orderBy("v")), F.lit(0)) + 1))
    ),
    "aggregate": lambda f: f.select(F.max("v")),
    "aggregate in SQL": lambda f: f.selectExpr("1 + sum(v)"),
    "scalar subquery": lambda f: f.selectExpr("(select max(id) from range(3)) as m"),
    "subquery from a frame": lambda f: f.select(
        "k", f.sparkSession.range(3).agg(F.max("id")).scalar().alias("m")
    ),
    "subquery in a filter": lambda f: f.filter("v in (select id from range(3))"),
    "exists in a filter": lambda f: f.filter("exists (select 1 from range(3) t where t.id = v)"),
    "subquery in an aggregate": lambda f: f.groupBy("k").agg(
        F.expr("max(v) + (select count(*) from range(3))").alias("x")
    ),
    "subquery in a join": lambda f: f.alias("a").join(
        f.alias("b"), F.expr("a.rid = b.rid and a.v in (select id from range(3))")
    ),
    "window function beside a generator": lambda f: f.selectExpr(
        "explode(array(1)) as e", "rank() over (order by v) as r"
    ),
}


@pytest.mark.parametrize("spelling", sorted(BEYOND))
def test_an_expression_that_looks_beyond_its_row_is_refused(
    frame: clew.TracedFrame, spelling: str
) -> None:
    with pytest.raises(BeyondRowError, match="looks beyond its own row"):
        BEYOND[spelling](frame)


@pytest.mark.parametrize(
    "expression",
    [
        "transform(array(v), x -> x + 1)",
        "aggregate(array(v), 0, (acc, x) -> acc + x)",
        "case when v > 1 then 'sum(v) over ()' else 'select max(x)' end",
        "greatest(v, 1)",
        "array_max(array(v, 1))",
    ],
)
def test_an_expression_that_only_looks_like_one_passes(
    frame: clew.TracedFrame, expression: str
) -> None:
    assert frame.selectExpr(f"{expression} as x").columns == ["x"]


def test_opaque_functions_need_a_declaration(frame: clew.TracedFrame) -> None:
    with pytest.raises(OpaqueOperatorError, match='carries="id"'):
        frame.mapInPandas(lambda batches: batches, "v int")
    with pytest.raises(OpaqueOperatorError, match='carries="group"'):
        frame.groupBy("k").applyInPandas(lambda pdf: pdf, "v int")
    with pytest.raises(ColumnError, match="clew_id string"):
        frame.mapInArrow(lambda batches: batches, "v int", carries="id")


def test_reserved_names_are_refused_at_the_source_and_later(
    spark: SparkSession, frame: clew.TracedFrame
) -> None:
    with pytest.raises(ReservedNameError, match="_CLEW_a"):
        clew.trace(spark.createDataFrame([(1,)], "_CLEW_a int"), "rows")
    with pytest.raises(ReservedNameError):
        frame.withColumn("_clew_from_rows", F.lit(1))
    with pytest.raises(ReservedNameError):
        frame.select(F.lit(1).alias("_clew_a"))
    with pytest.raises(ReservedNameError):
        frame.withColumnRenamed("k", "_clew_b")


def test_a_missing_column_is_an_error_when_the_pipeline_is_built(frame: clew.TracedFrame) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="nope"):
        frame.filter("nope = 1")
    with pytest.raises(AnalysisException, match="nope"):
        frame.select("nope")
    with pytest.raises(ColumnError, match="`rid`, `k`, `v`"):
        frame["nope"]
    with pytest.raises(ColumnError, match="nope"):
        frame.dropDuplicates(["nope"])


def test_an_untraced_frame_cannot_be_joined(frame: clew.TracedFrame) -> None:
    with pytest.raises(GraphError, match="clew.trace"):
        frame.join(frame.plain, "rid")  # type: ignore[arg-type]


def test_ambiguous_columns_are_refused_with_a_way_out(frame: clew.TracedFrame) -> None:
    joined = frame.join(frame.alias("b"), "rid")

    with pytest.raises(ColumnError, match="alias"):
        joined["k"]
    with pytest.raises(ColumnError, match="alias"):
        frame.join(frame.filter("v > 1"), frame["rid"] == frame["v"])
