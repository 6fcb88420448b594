"""`TracedGroup`: what `groupBy`, `rollup` and `cube` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.exceptions import GraphError, RefusedVerbError
from clew.frame.refused import REFUSED_ON_GROUPS
from clew.graph.columns import named
from clew.operators import aggregate as _aggregate
from clew.operators import opaque as _opaque

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from clew.frame.frame import TracedFrame
    from clew.graph.node import Node
    from clew.operators.aggregate import Grouping


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
            return self._made([_by_word(word, name) for name, word in exprs[0].items()])
        if not exprs:
            msg = '`agg` needs at least one aggregate, e.g. `.agg(F.count("*"))`.'
            raise GraphError(msg)
        return self._made([e for e in exprs if not isinstance(e, dict)])

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
        names = list(cols) or [c for c in self._node.columns if _is_number(plain.schema[c])]
        return self._made([_by_word(word, name) for name in names])

    def _made(self, aggregates: list[Column]) -> TracedFrame:
        if self._pivot is not None:
            column, values = self._pivot
            return self._frame(_aggregate.pivot(self._node, self._keys, column, values, aggregates))
        return self._frame(_aggregate.aggregate(self._node, self._grouping, self._keys, aggregates))

    def _frame(self, node: Node) -> TracedFrame:
        from clew.frame.frame import TracedFrame

        return TracedFrame(node)


def _is_number(field: Any) -> bool:
    from pyspark.sql.types import NumericType

    return isinstance(field.dataType, NumericType)


def _by_word(word: str, name: str) -> Column:
    if name == "*":
        return F.count(F.lit(1)).alias("count(1)")
    call = F.avg if word == "mean" else getattr(F, word)
    return call(named(name)).alias(f"{'avg' if word == 'mean' else word}({name})")
