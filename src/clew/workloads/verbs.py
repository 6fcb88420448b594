"""What a workload's query may ask of a frame.

The queries run on a plain Spark DataFrame (streaming or batch) and, unchanged, on a traced
frame. So they are typed against the few verbs that both have, and they name columns by string
or `F.col`, never through the frame itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import Column
    from typing_extensions import Self

FrameT_co = TypeVar("FrameT_co", covariant=True)


class Grouped(Protocol[FrameT_co]):
    """What `groupBy` gives: something to aggregate."""

    def agg(self, *exprs: Column) -> FrameT_co:
        """Compute aggregates per group."""


class Frame(Protocol):
    """The DataFrame verbs that the workloads use, with Spark's spelling."""

    def withWatermark(self, event_time: str, delay: str, /) -> Self:
        """Say which column is the event time and how late a row may come."""

    def filter(self, condition: Column | str, /) -> Self:
        """Keep the rows for which the condition holds."""

    def select(self, *columns: Column | str) -> Self:
        """Compute columns row by row."""

    def groupBy(self, *columns: Column | str) -> Grouped[Self]:
        """Group by columns or a window."""

    def join(self, other: Self, on: Column, how: str = ..., /) -> Self:
        """Pair the rows of two frames."""


FrameT = TypeVar("FrameT", bound=Frame)
"""A DataFrame in gives a DataFrame out, a traced frame in gives a traced frame out."""
