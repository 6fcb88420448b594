"""Deduplication: a row stands for all rows that are equal to it.

The answer is the row that was kept; in batch the user may ask for all that it stands for. On a
stream Spark keeps the first to arrive. In batch Spark's choice depends on how rows are spread
over tasks, which would make answers change from run to run, so the row with the smallest id is
kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pyspark.sql import Window
from pyspark.sql import functions as F

from clew.exceptions import ColumnError
from clew.operators.groups import grouped
from clew.plan.columns import ID_A, ID_B, WATERMARK, named, sole, spelling, user_columns
from clew.plan.facts import AtOnce, Facts, Rows, WithoutEnd, stated
from clew.plan.made import same
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made

Contributes = Literal["kept", "all"]
_RANK = "_clew_rank"


@dataclass(frozen=True, slots=True)
class Dedup:
    """Keep one row of each set of equal rows."""

    keys: tuple[str, ...] | None
    within_watermark: bool = False
    contributes: Contributes = "kept"
    exactness: ClassVar[Exactness] = "exact"

    @property
    def kind(self) -> str:
        return "deduplicate within watermark" if self.within_watermark else "deduplicate"

    @property
    def label(self) -> str:
        return ", ".join(self.keys) if self.keys else "all columns"

    @property
    def facts(self) -> Facts:
        rows = Rows.GATHERED if self.contributes == "all" else Rows.CHOSEN
        for_ever = WithoutEnd("`dropDuplicates` without a watermark remembers rows for ever")
        return stated(
            rows,
            AtOnce() if self.within_watermark else for_ever,
            closes=True,
            first_come=(
                "`dropDuplicates` on a stream keeps the row that came first, which cannot be told "
                "afterwards"
            ),
            rests_on_others=True,
            keeps_apart=not self.within_watermark,
        )

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return same(node, column)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        if source.df.isStreaming:
            source = without_times(source)
        keys = list(self.keys) if self.keys is not None else user_columns(source.df)
        if self.within_watermark:
            return source.with_df(source.df.dropDuplicatesWithinWatermark(keys))
        if source.df.isStreaming or ID_A not in source.annotation.columns:
            return source.with_df(source.df.dropDuplicates(keys))
        return self._smallest(source, keys, capture)

    def _smallest(self, source: Annotated, keys: list[str], capture: Capture) -> Annotated:
        partition = [named(key) for key in keys]
        order = Window.partitionBy(*partition).orderBy(named(ID_A), named(ID_B))
        df, annotation = source.df, source.annotation
        if self.contributes == "all":
            move = capture.spread(annotation, grouped(source, partition))
            df, annotation = move.apply(df, annotation.columns), move.annotation
        ranked = df.withColumn(_RANK, F.row_number().over(order))
        return Annotated(
            ranked.filter(named(_RANK) == 1).drop(_RANK), annotation, source.references
        )


def without_times(frame: Annotated) -> Annotated:
    """Leave out hidden copies of the event time: Spark keeps state for one such column only."""
    marked = {f.name for f in frame.df.schema.fields if WATERMARK in f.metadata}
    gone = [name for name in frame.references if name in marked]
    kept = tuple(name for name in frame.references if name not in marked)
    return replace(frame, df=frame.df.drop(*gone), references=kept) if gone else frame


def dedup(
    node: Node,
    keys: Sequence[str] | None,
    *,
    within_watermark: bool = False,
    contributes: Contributes = "kept",
) -> Node:
    """Add a deduplication.

    Raises:
        ColumnError: A key is not a column, or all duplicates are asked for on a stream.
    """
    if keys is None:
        sole(node.columns, "dropDuplicates", node.plain.df)
    else:
        spelt = spelling(node.plain.df)
        missing = [k for k in keys if spelt(k) not in map(spelt, node.columns)]
        if missing:
            msg = (
                f"`dropDuplicates` names the column `{missing[0]}`, which the frame does not have; "
                f"it has {', '.join(f'`{c}`' for c in node.columns)}."
            )
            raise ColumnError(msg)
    if contributes == "all" and node.plain.df.isStreaming:
        msg = (
            '`contributes="all"` is for batch: on a stream Spark forgets the duplicates it drops, '
            "so only the row that was kept can be traced.\n\nLeave it out, or write a `groupBy(...)"
            ".agg(F.first(...))` with a window: an aggregate traces to every row of its group."
        )
        raise ColumnError(msg)
    operator = Dedup(None if keys is None else tuple(keys), within_watermark, contributes)
    out = Node(operator, (node,))
    _ = out.plain.df.schema
    return out
