"""A traced frame gives what Spark's own does, however its columns are named.

Each case is one function, run over plain frames and over traced ones; schema and rows must agree,
in the frame itself and in what a capture writes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.capture.sets import SetsCapture
from clew.plan.columns import user_columns
from clew.plan.node import interpret
from clew.testing import keyed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

ROWS = [(1, "a", 10), (2, "a", 20), (3, "b", 30), (4, None, None)]
TEXTS = [(11, "1", "a"), (12, "01", "a"), (13, "2", "b"), (14, "7", "c")]

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "select": lambda t, o: t.select(t["k"], t.v + 1, F.col("id"), "v"),
    "filter": lambda t, o: t.filter(t["v"] > 10),
    "group by an item": lambda t, o: t.groupBy(t["k"]).count(),
    "group by an attribute": lambda t, o: t.groupBy(t.k).count(),
    "group by an attribute after a filter": lambda t, o: t.filter("id < 4").groupBy(t.k).count(),
    "group by an expression": lambda t, o: t.groupBy(t["id"] % 2).agg(F.max(t["id"])),
    "group by a position": lambda t, o: t.groupBy(2).count(),
    "group by a column of an alias": lambda t, o: t.alias("x").groupBy(F.col("x.k")).count(),
    "aggregate an item": lambda t, o: t.groupBy("k").agg(F.max(t["id"]), F.sum(t.v).alias("s")),
    "aggregate all": lambda t, o: t.groupBy().agg(F.max(t["id"])),
    "rollup": lambda t, o: t.rollup(t["k"], t["id"]).agg(F.sum(t["v"])),
    "cube": lambda t, o: t.cube(t.k).agg(F.count(t.id)),
    "pivot": lambda t, o: t.groupBy(t["k"]).pivot("id", [1, 2]).agg(F.sum(t["v"])),
    "order": lambda t, o: t.orderBy(t["v"].desc()),
    "add a column": lambda t, o: t.withColumn("w", t["v"] * 2),
    "drop": lambda t, o: t.drop(t["v"]),
    "join on items": lambda t, o: t.join(o, t["k"] == o["m"]).groupBy(t["k"]).agg(F.max(o["m"])),
    "duplicates by another case": lambda t, o: t.select("k").dropDuplicates(["K"]),
    "semi join of other types": lambda t, o: t.join(o, ["id"], "semi"),
    "intersection of other types": lambda t, o: t.select("id").intersect(o.select("id")),
    "intersection of int and bigint": lambda t, o: t.select("v").intersect(t.select("id")),
    "difference of int and bigint": lambda t, o: t.select("v").subtract(t.select("id")),
    "taken before and of an intersection": lambda t, o: _taken_around("intersect", t),
    "taken before and of a difference": lambda t, o: _taken_around("subtract", t),
}


def _taken_around(verb: str, frame: Any) -> Any:
    """Take columns from the frames that a set operation is made from, and from its result."""
    early = frame.select(frame["k"], frame["id"])
    found = getattr(early.select(early["k"]), verb)(frame.select(frame["k"]).filter("k = 'a'"))
    more = found.withColumn("upper", F.upper(found["k"]))
    return more.filter(found["k"].isNull() | (more["k"] == "a"))


@pytest.fixture
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return (
        spark.createDataFrame(ROWS, "id long, k string, v int"),
        spark.createDataFrame(TEXTS, "n long, id string, m string"),
    )


@pytest.mark.parametrize("case", CASES)
def test_a_verb_gives_the_names_types_and_rows_of_plain_spark(
    case: str, frames: tuple[DataFrame, DataFrame]
) -> None:
    first, second = frames
    plain = CASES[case](first, second)
    traced = CASES[case](
        clew.trace(first, "first", id=["id"]), clew.trace(second, "second", id=["n"])
    )

    written = interpret(keyed(traced), SetsCapture()).df
    written = written.select(*[f"`{c}`" for c in user_columns(written)])

    assert _fields(traced.plain) == _fields(plain)
    assert _fields(written) == _fields(plain)
    assert _rows(traced.plain) == _rows(plain)
    assert _rows(written) == _rows(plain)


def _fields(df: DataFrame) -> list[tuple[str, str]]:
    return [(f.name, f.dataType.simpleString()) for f in df.schema.fields]


def _rows(df: DataFrame) -> Counter[str]:
    return Counter(str(tuple(row)) for row in df.collect())
