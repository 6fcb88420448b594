"""Intersection and difference, in batch.

Both work on distinct rows, compared column by column with nulls equal. A row of an intersection
comes from its representative on each side; a row of a difference from its representative on the
left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from clew.capture.algebra import left, right
from clew.exceptions import GraphError
from clew.graph.columns import named, sole, user_columns
from clew.graph.node import Annotated, Node
from clew.operators.dedup import Dedup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column

    from clew.capture.algebra import Capture
    from clew.model import Exactness


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Keep the distinct rows that the other frame has, or has not."""

    verb: str
    exactness: ClassVar[Exactness] = "exact"
    label: ClassVar[str] = "all columns"

    @property
    def kind(self) -> str:
        return self.verb

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        first, second = inputs
        if not first.annotation.columns:
            bare = [each.df.drop(*each.references) for each in inputs]
            return Annotated(getattr(bare[0], self.verb)(bare[1]), first.annotation)
        distinct = Dedup(None)
        one = distinct.annotate([first], capture)
        other = distinct.annotate([second], capture)
        users = user_columns(one.df)
        renamed = {c: f"_clew_x_{i}" for i, c in enumerate(user_columns(other.df))}
        same = _all_equal([(c, x) for c, x in zip(users, renamed.values(), strict=True)])
        others = other.df.withColumnsRenamed(renamed)
        if self.verb == "subtract":
            df = one.df.join(others.drop(*other.annotation.columns), same, "anti")
            return Annotated(df, one.annotation)
        move = capture.pair(one.annotation, other.annotation)
        ones = one.df.withColumnsRenamed({c: left(c) for c in one.annotation.columns})
        others = others.withColumnsRenamed({c: right(c) for c in other.annotation.columns})
        joined = ones.join(others, same, "inner").drop(*renamed.values())
        old = [left(c) for c in one.annotation.columns]
        old += [right(c) for c in other.annotation.columns]
        return Annotated(move.apply(joined, old), move.annotation)


def _all_equal(pairs: Sequence[tuple[str, str]]) -> Column:
    return reduce(lambda x, y: x & y, [named(c).eqNullSafe(named(x)) for c, x in pairs])


def set_operation(first: Node, second: Node, verb: str) -> Node:
    """Add an intersection or a difference.

    Raises:
        GraphError: One of the frames is a stream.
    """
    if first.plain.df.isStreaming or second.plain.df.isStreaming:
        how = "semi" if verb == "intersect" else "anti"
        msg = (
            f"`{verb}` is for batch: Spark cannot compare whole streams.\n\n"
            f'Join with time bounds instead: `.join(other, on=[...], how="{how}")`.'
        )
        raise GraphError(msg)
    sole(first.columns, verb)
    sole(second.columns, verb)
    node = Node(SetOperation(verb), (first, second))
    _ = node.plain.df.schema
    return node
