"""`TracedGroup`: what `groupBy`, `rollup` and `cube` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from clew.exceptions import GraphError, RefusedVerbError
from clew.frame.refused import REFUSED_ON_GROUPS
from clew.operators import aggregate as _aggregate
from clew.operators import opaque as _opaque
from clew.plan.columns import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, GroupedData
    from pyspark.sql.types import StructType

    from clew.frame.frame import TracedFrame
    from clew.operators.aggregate import Grouping
    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class TracedGroup:
    """Grouped rows, waiting for an aggregate."""

    _node: Node
    _grouping: Grouping
    _keys: tuple[Any, ...]
    _pivot: tuple[str, list[Any] | None] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in REFUSED_ON_GROUPS:
            raise RefusedVerbError(f"groupBy(...).{name}", REFUSED_ON_GROUPS[name])
        msg = f"a traced group has no verb `{name}`"
        raise AttributeError(msg)

    def agg(self, *exprs: Column | dict[str, str]) -> TracedFrame:
        """Aggregate each group with any of Spark's aggregate expressions."""
        if len(exprs) == 1 and isinstance(exprs[0], dict):
            return self._made(self._by_words(exprs[0]))
        if not exprs:
            msg = '`agg` needs at least one aggregate, e.g. `.agg(F.count("*"))`.'
            raise GraphError(msg)
        columns = [e for e in exprs if not isinstance(e, dict)]
        if len(columns) < len(exprs):
            msg = (
                "`agg` takes one dictionary or several columns, not both.\n\n"
                'Write columns: `.agg(F.max("v"), F.count("*"))`.'
            )
            raise GraphError(msg)
        return self._made(columns)

    def count(self) -> TracedFrame:
        """Count the rows of each group."""
        return self._made([F.count(F.lit(1)).alias("count")])

    def sum(self, *cols: str) -> TracedFrame:
        """Add up numeric columns."""
        return self._numeric("sum", cols)

    def avg(self, *cols: str) -> TracedFrame:
        """Average numeric columns."""
        return self._numeric("avg", cols)

    mean = avg

    def min(self, *cols: str) -> TracedFrame:
        """Take the least value of numeric columns."""
        return self._numeric("min", cols)

    def max(self, *cols: str) -> TracedFrame:
        """Take the greatest value of numeric columns."""
        return self._numeric("max", cols)

    def pivot(self, pivot_col: str, values: list[Any] | None = None) -> TracedGroup:
        """Turn the values of a column into columns, in batch."""
        if self._grouping != "groupBy" or self._pivot is not None:
            msg = "`pivot` goes with one `groupBy`.\n\nUse `.groupBy(...).pivot(...)` once."
            raise GraphError(msg)
        return TracedGroup(self._node, self._grouping, self._keys, (pivot_col, values))

    def applyInPandas(
        self,
        func: Callable[..., Any],
        schema: StructType | str,
        *,
        carries: str | None = None,
    ) -> TracedFrame:
        """Hand each group to a function (`carries="group"`)."""
        return self._frame(_opaque.map_groups(self._node, self._keys, func, schema, carries))

    def _numeric(self, word: str, cols: tuple[str, ...]) -> TracedFrame:
        plain = self._node.plain.df
        names = list(cols) or [
            quote(f.name) for f in self._node.schema.fields if isinstance(f.dataType, NumericType)
        ]
        self._plain().sum(*names)  # Spark's own checks and messages
        return self._made([_by_word(word, name, _title(plain, word, name)) for name in names])

    def _by_words(self, words: Mapping[str, str]) -> list[Column]:
        """Make aggregates of a dictionary, in the order in which Spark takes it."""
        grouped = self._plain()
        keys = len(grouped.agg(F.count(F.lit(1))).columns) - 1
        order = grouped.agg(dict(words)).columns[keys:]
        made = {
            (title := grouped.agg({name: word}).columns[keys]): _by_word(word, name, title)
            for name, word in words.items()
        }
        return [made[title] for title in order]

    def _plain(self) -> GroupedData:
        keys = _aggregate.at_positions(self._node, self._keys)
        grouped: GroupedData = getattr(self._node.plain.df, self._grouping)(*keys)
        return grouped

    def _made(self, aggregates: list[Column]) -> TracedFrame:
        if self._pivot is not None:
            column, values = self._pivot
            return self._frame(_aggregate.pivot(self._node, self._keys, column, values, aggregates))
        return self._frame(_aggregate.aggregate(self._node, self._grouping, self._keys, aggregates))

    def _frame(self, node: Node) -> TracedFrame:
        from clew.frame.frame import TracedFrame

        return TracedFrame(node)


_WORDS = {"average": "avg", "mean": "avg", "std": "stddev", "size": "count"}


def _by_word(word: str, name: str, title: str) -> Column:
    called = _WORDS.get(word.lower(), word)
    if name == "*" and called == "count":
        return F.count(F.lit(1)).alias(title)
    return F.call_function(called, F.col(name)).alias(title)


def _title(plain: DataFrame, word: str, name: str) -> str:
    return str(plain.groupBy().agg({name: word}).columns[0])
