"""Intersection and difference, in batch.

Both work on distinct rows, compared column by column with nulls equal. A row of an intersection
comes from its representative on each side; a row of a difference from its representative on the
left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F

from clew.exceptions import GraphError
from clew.operators.dedup import Dedup
from clew.plan.algebra import left, right
from clew.plan.columns import is_hidden, named, sole, user_columns
from clew.plan.facts import Facts, Rows, WithoutEnd, stated
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column
    from pyspark.sql.types import DataType

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Keep the distinct rows that the other frame has, or has not."""

    verb: str
    exactness: ClassVar[Exactness] = "exact"
    label: ClassVar[str] = "all columns"

    def __post_init__(self) -> None:
        """Refuse any other method of a frame: a verb may come from a store.

        Raises:
            GraphError: The verb compares no rows.
        """
        if self.verb not in ("intersect", "subtract"):
            msg = f"`{self.verb}` does not compare the rows of two frames."
            raise GraphError(msg)

    @property
    def kind(self) -> str:
        return self.verb

    @property
    def facts(self) -> Facts:
        return stated(Rows.CHOSEN, WithoutEnd(), rests_on_others=True)

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        # Columns of earlier frames are not columns of the result; nor are their hidden copies.
        first, second = (
            Annotated(each.df.drop(*each.references), each.annotation) for each in inputs
        )
        if not first.annotation.columns:
            return Annotated(getattr(first.df, self.verb)(second.df), first.annotation)
        distinct = Dedup(None)
        first, second = _alike(self.verb, first, second)
        one = distinct.annotate([first], capture)
        other = distinct.annotate([second], capture)
        users = user_columns(one.df)
        renamed = {c: f"_clew_x_{i}" for i, c in enumerate(user_columns(other.df))}
        pairs = list(zip(users, renamed.values(), strict=True))
        same = _all_equal(pairs)
        others = other.df.withColumnsRenamed(renamed)
        if self.verb == "subtract":
            df = one.df.join(others.drop(*other.annotation.columns), same, "anti")
            return Annotated(df, one.annotation)
        move = capture.pair(one.annotation, other.annotation)
        ones = one.df.withColumnsRenamed({c: left(c) for c in one.annotation.columns})
        others = others.withColumnsRenamed({c: right(c) for c in other.annotation.columns})
        joined = ones.join(others, same, "inner")
        # A row that both sides have holds no null where one of them cannot: so says Spark's type.
        sure = {f.name for f in others.schema.fields if not f.nullable}
        joined = joined.withColumns(
            {c: F.coalesce(named(c), named(x)) for c, x in pairs if x in sure}
        ).drop(*renamed.values())
        old = [left(c) for c in one.annotation.columns]
        old += [right(c) for c in other.annotation.columns]
        return Annotated(move.apply(joined, old), move.annotation)


def _alike(verb: str, first: Annotated, second: Annotated) -> tuple[Annotated, Annotated]:
    """Give both frames the types that Spark compares rows in: equal rows are then found equal."""
    bare = [each.df.select(*[named(c) for c in user_columns(each.df)]) for each in (first, second)]
    kinds = [f.dataType for f in getattr(bare[0], verb)(bare[1]).schema.fields]
    return _cast(first, kinds), _cast(second, kinds)


def _cast(frame: Annotated, kinds: Sequence[DataType]) -> Annotated:
    fields = [f for f in frame.df.schema.fields if not is_hidden(f.name)]
    pairs = [(f, kind) for f, kind in zip(fields, kinds, strict=True) if f.dataType != kind]
    return frame.with_df(frame.df.withColumns({f.name: named(f.name).cast(k) for f, k in pairs}))


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
    sole(first.columns, verb, first.plain.df)
    sole(second.columns, verb, second.plain.df)
    node = Node(SetOperation(verb), (first, second))
    _ = node.plain.df.schema
    return node
