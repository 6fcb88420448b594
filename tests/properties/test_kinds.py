"""What the model says of single operators: their results, and the source rows behind each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from properties.agreement import agree
from properties.batch_model import run_batch
from properties.expressions import Expr, col, lit
from properties.operator_tree import (
    Agg,
    Aggregate,
    Drop,
    Named,
    Node,
    Pivot,
    Read,
    Select,
    SetOperation,
    Spec,
    Union,
    Unpivot,
    Watermark,
    Window,
    WindowColumn,
    WithColumn,
)
from properties.test_reference_model import run_on_spark, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from properties.model_rows import Model

COUNT = (Agg("count_all", "*", "n"),)


def of_tables(root: Node, **tables: Any) -> Model:
    return run_batch(Spec(root, streaming=False), tables)


def behind(model: Model, *names: str) -> list[tuple[Any, ...]]:
    """List some columns of the results, each with the numbers of its source rows."""
    return [
        (*(row.values[name] for name in names), sorted(rid for _, rid in row.refs))
        for row in model.rows
    ]


def test_rollup_and_cube_leave_out_keys() -> None:
    [rows] = stream([(1, "a"), (2, None)])
    found = {}
    grouping: Literal["rollup", "cube"]
    for grouping in ("rollup", "cube"):
        node = Aggregate(Read("a"), None, ("k", "g"), COUNT, grouping)
        found[grouping] = behind(of_tables(node, a=rows), "k", "g", "n")

    # A null key is one thing, a key that is left out another.
    rolled = [("a", 0, 1, [0]), (None, 0, 1, [1]), ("a", None, 1, [0]), (None, None, 1, [1])]
    every = (None, None, 2, [0, 1])
    assert found["rollup"] == [*rolled, every]
    assert found["cube"] == [*rolled, (None, 0, 2, [0, 1]), every]
    assert of_tables(Aggregate(Read("a"), None, ("k",), COUNT, "cube"), a=[]).rows == ()


def test_a_pivoted_group_comes_from_all_its_rows() -> None:
    [rows] = stream([(1, "a", 3), (2, "a", 4), (3, "z", 5)])
    summed = Pivot(Read("a"), ("g",), "k", ("a", "b"), Agg("sum", "v", "total"))

    assert behind(of_tables(summed, a=rows), "g", "a", "b") == [(0, 7, None, [0, 1, 2])]


def test_set_operations_name_any_one_of_the_equal_rows() -> None:
    [left] = stream([(1, "a"), (2, "a"), (3, None), (4, "b")])
    [right] = stream([(1, "a"), (2, None), (3, None)])
    sides = [Select(Read(name), (("k", col("k")),)) for name in "ab"]
    both = of_tables(SetOperation(sides[0], sides[1], "intersect"), a=left, b=right)
    one = of_tables(SetOperation(sides[0], sides[1], "subtract"), a=left, b=right)

    for a in (0, 1):
        for b in (1, 2):
            nulls = ({"k": None}, {("a", 2), ("b", b)})
            assert agree(both, [({"k": "a"}, {("a", a), ("b", 0)}), nulls])
    assert not agree(both, [({"k": "a"}, {("a", 0)}), ({"k": None}, {("a", 2), ("b", 1)})])
    assert agree(one, [({"k": "b"}, {("a", 3)})])


def test_a_union_by_name_fills_what_a_side_lacks() -> None:
    [rows] = stream([(1, "a", 7)])
    node = Union(Read("a"), Drop(Read("b"), ("v",)), by_name=True, fills=True)

    assert behind(of_tables(node, a=rows, b=rows), "k", "v") == [("a", 7, [0]), ("a", None, [0])]


def test_an_unpivoted_row_is_behind_each_of_its_values() -> None:
    [rows] = stream([(1, "a", 7)])
    node = Named(Unpivot(Read("a"), ("k",), ("v", "g")), "long")

    assert behind(of_tables(node, a=rows), "k", "name", "value") == [
        ("a", "v", 7, [0]),
        ("a", "g", 0, [0]),
    ]


def test_a_window_in_a_column_closes_when_its_end_has_passed(
    spark: SparkSession, tmp_path: Path
) -> None:
    windows = WindowColumn(Watermark(Read("a"), 0), Window("ts", 10, 5), "w")
    aggs = (Agg("rids", "rid", "rids"),)
    batches = [(7, "a")], [(16, "a"), (None, "a")], [(17, "a")], [(6, "a")], [(100, "z")]
    data = {"a": stream(*batches)}

    found = run_on_spark(spark, tmp_path, Aggregate(windows, None, ("w", "k"), aggs), data)

    # The row at 6 s comes when the watermark has passed 15 s, so both its windows are closed.
    assert sorted(row["rids"] for row in found) == [[0], [0], [1, 3], [1, 3]]


def test_windows_over_windows_in_columns_have_the_size_of_both(
    spark: SparkSession, tmp_path: Path
) -> None:
    windows = WindowColumn(Watermark(Read("a"), 0), Window("ts", 10, 5), "w")
    wide = Aggregate(windows, Window("w", 20, 10), (), (Agg("rids", "rid", "rids"),))
    data = {"a": stream([(1, "a")], [(18, "a")], [(29, "a")], [(100, "z")])}

    found = run_on_spark(spark, tmp_path, wide, data)

    # A row in two windows that are in one wide window is there twice.
    expected = [[0, 0], [0, 0, 1], [1, 1, 2], [1, 2, 2], [2]]
    assert sorted(row["rids"] for row in found) == expected


def test_the_watermark_goes_by_the_time_that_it_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    later = WithColumn(Read("a"), "ts", Expr("later", (col("ts"), lit(3600))))
    root = Aggregate(Watermark(later, 0), Window("ts", 10), (), (Agg("rids", "rid", "rids"),))
    data = {"a": stream([(1, "a")], [(12, "a")], [(13, "a")], [(3, "a")], [(100, "z")])}

    found = run_on_spark(spark, tmp_path, root, data)

    assert sorted(row["rids"] for row in found) == [[0], [1, 2]]
