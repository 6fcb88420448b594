"""Aggregation: a row comes from every row of its group and window.

The user's grouping and aggregate expressions are handed to Spark as they are, so any that Spark
accepts works: tumbling, sliding and session windows, `window_time`, user-defined aggregates. The
annotation is gathered by further aggregates beside them. A group's id is a hash of its keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import BeyondRowError, GraphError
from clew.graph.columns import is_hidden, named, sole
from clew.graph.node import Annotated, Node
from clew.graph.plan import change, describe
from clew.operators.keep import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from clew.capture.algebra import Capture, Typed
    from clew.model import Exactness

Grouping = Literal["groupBy", "rollup", "cube"]
_LEVEL = "_clew_level"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Group rows and aggregate each group."""

    grouping: Grouping
    keys: tuple[Column | str, ...]
    aggregates: tuple[Column, ...]
    key_names: tuple[str, ...]
    exactness: ClassVar[Exactness] = "exact"

    @property
    def kind(self) -> str:
        return "aggregate" if self.grouping == "groupBy" else self.grouping

    @property
    def label(self) -> str:
        by = ", ".join(shown(key) for key in self.keys)
        what = ", ".join(shown(each) for each in self.aggregates)
        return f"{what} by {by}" if by else what

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        grouped = getattr(source.df, self.grouping)(*self.keys)
        if not source.annotation.columns:
            move = capture.gather(source.annotation, [])
            return Annotated(grouped.agg(*self.aggregates), move.after.annotation)
        types = _key_types(source.df, self)
        keys: list[Typed] = [(named(n), t) for n, t in zip(self.key_names, types, strict=True)]
        extra: dict[str, Column] = {}
        if self.grouping != "groupBy":
            # A null key and a rolled-up one look alike; the level tells them apart.
            extra[_LEVEL] = F.grouping_id()
            keys.append((named(_LEVEL), T.LongType()))
        gathering = capture.gather(source.annotation, keys)
        hidden = {**gathering.aggregates, **extra}
        df = grouped.agg(*self.aggregates, *[c.alias(name) for name, c in hidden.items()])
        return Annotated(gathering.finish(df).drop(*extra), gathering.after.annotation)


def _key_types(df: DataFrame, aggregate: Aggregate) -> list[T.DataType]:
    counted = getattr(df, aggregate.grouping)(*aggregate.keys).agg(F.count(F.lit(1)))
    return [field.dataType for field in counted.schema.fields[: len(aggregate.key_names)]]


def aggregate(
    node: Node,
    grouping: Grouping,
    keys: Sequence[Column | str],
    aggregates: Sequence[Column],
) -> Node:
    """Add an aggregation.

    Raises:
        BeyondRowError: A grouping or aggregate expression holds a subquery or a window function.
    """
    df = node.plain.df
    names = getattr(df, grouping)(*keys).agg(F.count(F.lit(1))).columns[:-1]
    if len(names) < len(keys):
        msg = (
            "the grouping columns are not part of the result, so groups cannot be told apart.\n\n"
            'Write `spark.conf.set("spark.sql.retainGroupColumns", "true")`, which is Spark\'s '
            "default, before the pipeline is built."
        )
        raise GraphError(msg)
    out = Node(Aggregate(grouping, tuple(keys), tuple(aggregates), tuple(names)), (node,))
    sole([c for c in out.columns if not is_hidden(c)], "agg")
    beyond = change(out.plain.df, df).beyond(["Aggregate", "Expand", "Filter"])
    if beyond:
        raise BeyondRowError(
            "agg",
            describe(beyond),
            "Compute it in a `select` or a join before the `groupBy`.",
        )
    return out


@dataclass(frozen=True, slots=True)
class Pivot:
    """Pivot a grouped frame: a row comes from every row of its group, in batch."""

    keys: tuple[Column | str, ...]
    column: str
    values: tuple[bool | float | int | str, ...] | None
    aggregates: tuple[Column, ...]
    key_names: tuple[str, ...]
    kind: ClassVar[str] = "pivot"
    exactness: ClassVar[Exactness] = "exact"

    @property
    def label(self) -> str:
        what = ", ".join(shown(each) for each in self.aggregates)
        return f"{what} by {', '.join(self.key_names)} for each {self.column}"

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        values = None if self.values is None else list(self.values)
        df = source.df.groupBy(*self.keys).pivot(self.column, values).agg(*self.aggregates)
        if not source.annotation.columns:
            return Annotated(df, capture.gather(source.annotation, []).after.annotation)
        # The rows of a group are gathered beside the pivot: a pivot hides those whose value is not
        # among its columns, and they too make the group.
        count = (F.count(F.lit(1)).alias("_clew_count"),)
        gathered = Aggregate("groupBy", self.keys, count, self.key_names).annotate(inputs, capture)
        renamed = {name: f"_clew_key_{i}" for i, name in enumerate(self.key_names)}
        right = gathered.df.withColumnsRenamed(renamed).drop("_clew_count")
        same = [named(n).eqNullSafe(named(k)) for n, k in renamed.items()]
        condition = same[0] if same else F.lit(True)
        for each in same[1:]:
            condition = condition & each
        joined = df.join(right, condition).drop(*renamed.values())
        return Annotated(joined, gathered.annotation)


def pivot(
    node: Node,
    keys: Sequence[Column | str],
    column: str,
    values: Sequence[bool | float | int | str] | None,
    aggregates: Sequence[Column],
) -> Node:
    """Add a pivot."""
    names = node.plain.df.groupBy(*keys).agg(F.count(F.lit(1))).columns[:-1]
    kept = None if values is None else tuple(values)
    out = Node(Pivot(tuple(keys), column, kept, tuple(aggregates), tuple(names)), (node,))
    sole(out.columns, "pivot")
    return out
