"""Applies a pipeline to frames: Spark's own, or any that have DataFrame's verbs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from properties.expressions import to_column, to_sql
from properties.operator_tree import (
    Aggregate,
    Distinct,
    Drop,
    DropDuplicates,
    Explode,
    Filter,
    Join,
    Named,
    Node,
    OrderLimit,
    Pivot,
    Read,
    Rename,
    Select,
    SetOperation,
    Spec,
    Union,
    Unpivot,
    Watermark,
    Window,
    WindowColumn,
    WithColumn,
    children,
    columns,
    join_columns,
    join_condition,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def build(spec: Spec, frames: Mapping[str, Any]) -> Any:
    """Apply a pipeline to frames that have DataFrame's verbs.

    Equal parts of the tree become one frame: a watermark that two branches share is one watermark
    for Spark, and its progress is the faster branch's.

    Args:
        spec: The pipeline.
        frames: A frame for each source, streaming where the source comes in micro-batches.

    Returns:
        What the last verb returned.
    """
    made: dict[Node, Any] = {}

    def make(node: Node) -> Any:
        if node not in made:
            inputs = [make(child) for child in children(node)]
            made[node] = frames[node.source] if isinstance(node, Read) else _apply(node, *inputs)
        return made[node]

    return make(spec.root)


def _apply(node: Node, frame: Any, other: Any = None) -> Any:
    match node:
        case Watermark(_, delay, column):
            return frame.withWatermark(column, f"{delay} seconds")
        case Filter(_, condition, as_text):
            return frame.filter(to_sql(condition) if as_text else to_column(condition))
        case WithColumn(_, name, value):
            return frame.withColumn(name, to_column(value))
        case Select(_, named):
            return frame.select(*(to_column(value).alias(name) for name, value in named))
        case Rename(_, old, new):
            return frame.withColumnRenamed(old, new)
        case Drop(_, names):
            return frame.drop(*names)
        case Explode(_, column, name, outer):
            explode = F.explode_outer if outer else F.explode
            return frame.withColumn(name, explode(F.col(column)))
        case WindowColumn(_, window, name):
            return frame.withColumn(name, _window_column(window))
        case Unpivot(_, ids, values, variable, value):
            return frame.unpivot(list(ids), list(values), variable, value)
        case Named(_, name):
            return frame.named(name) if hasattr(frame, "named") else frame
        case Union(_, _, by_name, fills):
            by = partial(frame.unionByName, allowMissingColumns=fills)
            return by(other) if by_name else frame.union(other)
        case SetOperation(_, _, verb):
            return getattr(frame, verb)(other)
        case Pivot(_, keys, column, values, agg):
            grouped = frame.groupBy(*keys).pivot(column, list(values))
            return grouped.agg(_AGGS[agg.fn](agg.column).alias(agg.name))
        case Distinct():
            return frame.distinct()
        case DropDuplicates(_, subset, within):
            verb = frame.dropDuplicatesWithinWatermark if within else frame.dropDuplicates
            return verb(list(subset))
        case Aggregate():
            return _apply_aggregate(node, frame)
        case Join():
            return _apply_join(node, frame, other)
        case OrderLimit(_, by, n):
            order = (F.col(name).asc() if up else F.col(name).desc() for name, up in by)
            return frame.orderBy(*order).limit(n)
        case _:
            msg = f"no such operator: {type(node).__name__}"
            raise TypeError(msg)


_AGGS: dict[str, Callable[[str], Column]] = {
    "count_all": lambda _: F.count("*"),
    "count": F.count,
    "sum": F.sum,
    "min": F.min,
    "max": F.max,
    "avg": F.avg,
    "rids": lambda name: F.sort_array(F.collect_list(name)),
}


def _apply_aggregate(node: Aggregate, frame: Any) -> Any:
    by: list[Any] = list(node.keys)
    if node.window is not None:
        by.insert(0, _window_column(node.window))
    return getattr(frame, node.grouping)(*by).agg(
        *(_AGGS[a.fn](a.column).alias(a.name) for a in node.aggs)
    )


def _window_column(window: Window) -> Column:
    size, slide = f"{window.size_seconds} seconds", window.slide_seconds
    if window.session:
        return F.session_window(window.column, size)
    return F.window(window.column, size, None if slide is None else f"{slide} seconds")


def _apply_join(node: Join, left: Any, right: Any) -> Any:
    if node.using:
        names = columns(node.right)
        prefixed = [F.col(n).alias(n if n in node.keys else node.prefix + n) for n in names]
        if node.how in ("leftsemi", "leftanti"):
            prefixed = [F.col(key) for key in node.keys]
        return left.join(right.select(*prefixed), list(node.keys), node.how)
    joined = left.alias("l").join(right.alias("r"), F.expr(join_condition(node)), node.how)
    picked = (F.col(f"{side}.{name}").alias(new) for new, side, name, _ in join_columns(node))
    return joined.select(*picked)
