"""The moves that a capture method implements.

Each operator says what happens to a row's annotation in these moves, and knows nothing of what an
annotation is. Each capture method implements them, and knows nothing of operators. A move names
the hidden columns after the step and how they are computed from those before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from clew.sources.identity import Identity

Typed = tuple["Column", "DataType"]
"""A column and its type."""

Field = tuple[str, "Column", "DataType"]
"""A column with the name it has in the user's rows, and its type."""

LEFT = "_clew_l"
RIGHT = "_clew_r"


def left(column: str) -> str:
    """Name the left side's copy of a hidden column while two rows are put together."""
    return LEFT + column


def right(column: str) -> str:
    """Name the right side's copy of a hidden column while two rows are put together."""
    return RIGHT + column


@dataclass(frozen=True, slots=True)
class Origin:
    """A source as a capture method sees it."""

    name: str
    identity: Identity
    schema: StructType
    event_time: str | None
    keep_content: bool = True


@dataclass(frozen=True, slots=True)
class Annotation:
    """What the hidden columns of a frame are.

    Attributes:
        columns: The hidden columns.
        unique: No two rows of the frame share an id.
        streams: The streams (sources and named frames) that rows may come from.
        repeats: The streams of which one row may stand behind several rows of the frame.
    """

    columns: tuple[str, ...] = ()
    unique: bool = False
    streams: tuple[str, ...] = ()
    repeats: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Move:
    """The annotation after a step, and how to compute it from the columns at hand.

    Attributes:
        annotation: The annotation after the step.
        steps: Hidden columns to compute, one projection after the other.
    """

    annotation: Annotation
    steps: tuple[dict[str, Column], ...] = ()

    def apply(self, df: DataFrame, old: Sequence[str]) -> DataFrame:
        """Compute the new hidden columns and drop the old ones."""
        out = df
        for step in self.steps:
            out = out.withColumns(step) if step else out
        gone = [name for name in old if name not in self.annotation.columns]
        return out.drop(*gone) if gone else out


@dataclass(frozen=True, slots=True)
class Gathering:
    """A move in two parts: inside the aggregation, and on its result."""

    aggregates: dict[str, Column]
    after: Move

    def finish(self, df: DataFrame) -> DataFrame:
        """Turn the aggregated columns into the annotation."""
        return self.after.apply(df, list(self.aggregates))


class Capture(ABC):
    """A way to carry provenance: an implementation of the moves and nothing else.

    `keep` is the one move that needs no method: the hidden columns pass on as they are.
    """

    name: str

    @abstractmethod
    def at_source(self, origin: Origin) -> Move:
        """A source row stands for itself."""

    @abstractmethod
    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        """Several rows come from one; `by` tells them apart."""

    @abstractmethod
    def gather(self, before: Annotation, keys: Sequence[Typed]) -> Gathering:
        """One row comes from all rows of a group; `keys` identify the group."""

    @abstractmethod
    def spread(self, before: Annotation, partition: Sequence[Column]) -> Move:
        """Each row may come from all rows of its partition, and keeps its own id."""

    @abstractmethod
    def pair(self, first: Annotation, second: Annotation) -> Move:
        """One row comes from two, either of which may be missing.

        The sides' columns are at hand under the names given by `left` and `right`.
        """

    @abstractmethod
    def witness(self, first: Annotation, second: Annotation) -> Move:
        """A row passes because of another: it keeps its id and also comes from the other."""

    @abstractmethod
    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        """Rows come from one of two inputs; both moves lead to the same columns."""

    @abstractmethod
    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        """Rows become a stream of their own that later answers can stop at."""

    @abstractmethod
    def pack(self, before: Annotation) -> Column:
        """Write the annotation as one text value, to travel through a function."""

    @abstractmethod
    def unpack(self, before: Annotation, packed: Column, by: Sequence[Typed]) -> Move:
        """Read the annotation back from a list of such texts; `by` is what the function made."""
