"""The moves that a capture method implements.

Each operator says what happens to a row's annotation in these moves, and knows nothing of what an
annotation is. Each capture method implements them, and knows nothing of operators. A move names
the hidden columns after the step and how they are computed from those before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from clew.plan.columns import ID_A, ID_B, JSON, identify, named, own_id
from clew.plan.mask import NOTHING, Mask
from clew.plan.secret import hashing_with

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, WindowSpec
    from pyspark.sql.types import DataType, StructType

    from clew.plan.merge import Merge
    from clew.plan.secret import Secret
    from clew.sources.identity import Identity

Typed = tuple["Column | str", "DataType"]
"""A value, as Spark's SQL or as a column, and its type."""

Field = tuple[str, "DataType"]
"""The name of a column in the user's rows, and its type."""

LEFT = "_clew_l"
RIGHT = "_clew_r"
LATE = "_clew_late"
"""The watermark that a row's batch judged lateness by, in microseconds; null if none did."""
_OF_A = "_clew_of_a"
_OF_B = "_clew_of_b"


def left(column: str) -> str:
    """Name the left side's copy of a hidden column while two rows are put together."""
    return LEFT + column


def right(column: str) -> str:
    """Name the right side's copy of a hidden column while two rows are put together."""
    return RIGHT + column


@dataclass(frozen=True, slots=True)
class Origin:
    """A source as a capture method sees it.

    `secret` is that of the store, once the pipeline belongs to one; `mask` is what of its rows the
    store does not get.
    """

    name: str
    identity: Identity
    schema: StructType
    event_time: str | None
    keep_content: bool = True
    secret: Secret | None = None
    mask: Mask = NOTHING

    def columns(self) -> tuple[str, str, str]:
        """Return the two halves of a row's id and its segment's readable name, as SQL.

        A name that shows what is masked is left out: it is kept with each row.
        """
        with hashing_with(self.secret):
            a, b, segment = self.identity.columns(self.schema)
        hidden = self.mask.hides(self.identity.named_by())
        return a, b, "CAST(NULL AS STRING)" if hidden else segment


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


@dataclass(frozen=True, slots=True)
class Members:
    """The rows of all groups of an aggregation, each with the keys of its group.

    Attributes:
        rows: The rows' hidden columns, and the keys; a row of several groups stands there as often.
        keys: The keys, in the order in which they make the group's id.
        overlaps: A row may be in several groups.
        session: The column with the session that a row makes by itself, if groups are sessions: a
            group's session is made of those of its rows. It is not among the keys.
    """

    rows: DataFrame
    keys: Sequence[Typed]
    overlaps: bool = True
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """How an aggregation groups rows.

    Attributes:
        keys: What identifies a group, on its one row.
        members: Finds the rows of the groups; for captures that look groups up afterwards.
        session: The key that is a session window, as SQL.
        within: The key that is a window over the event time of the one source, as SQL: the group's
            source rows lie in it.
    """

    keys: Sequence[Typed]
    members: Callable[[], Members]
    session: str | None = None
    within: str | None = None

    def window(self) -> WindowSpec:
        """Return the groups as a window, for functions that look at all rows of a group."""
        keys = [F.expr(key) if isinstance(key, str) else key for key, _ in self.keys]
        return Window.partitionBy(*keys)


@dataclass(frozen=True, slots=True)
class Related:
    """Rows that come from rows of other frames in a way that only a condition tells.

    Attributes:
        rows: The rows, without any annotation.
        keys: What identifies one of them.
        sides: The frames: what their rows carry, and how those behind each row are found.
    """

    rows: DataFrame
    keys: Sequence[Typed]
    sides: Sequence[tuple[Annotation, Callable[[], Members]]]

    def with_ids(self) -> DataFrame:
        """Return the rows with their ids."""
        return self.rows.withColumns(own_id(self.keys))


def looked_up(rows: DataFrame, members: Members, values: Mapping[str, Column]) -> DataFrame:
    """Add to rows with ids what aggregates make of the members of each; null if it has none."""
    a, b = identify(members.keys)
    ids = {_OF_A: a, _OF_B: b}
    aggregates = [value.alias(name) for name, value in values.items()]
    behind = members.rows.withColumns(ids).groupBy(*ids).agg(*aggregates)
    same = (named(_OF_A) == named(ID_A)) & (named(_OF_B) == named(ID_B))
    return rows.join(behind, same, "left").drop(*ids)


@dataclass(frozen=True, slots=True)
class Admission:
    """Which rows a stateful step takes in, and their annotation inside it."""

    annotation: Annotation
    condition: Column | None = None

    def apply(self, df: DataFrame, old: Sequence[str]) -> DataFrame:
        """Keep the rows that are taken in."""
        out = df if self.condition is None else df.filter(self.condition)
        gone = [name for name in old if name not in self.annotation.columns]
        return out.drop(*gone) if gone else out


class Capture(ABC):
    """A way to carry provenance: an implementation of the moves and nothing else.

    `keep` is the one move that needs no method: the hidden columns pass on as they are.
    """

    name: str
    secret: Secret | None = None
    """What ids are hashed with where the pipeline belongs to no store; most captures need one."""

    def enter(self, node: int) -> None:  # noqa: B027 (most captures need not know)
        """Note which node of the graph is interpreted next."""

    def admit(self, before: Annotation, time: str | None) -> Admission:
        """A stateful step of a stream takes rows in; `time` is what it compares with the watermark.

        Spark itself drops late rows, so there is nothing to do while a stream runs.
        """
        return Admission(before)

    def emitted(self, time: str) -> Column | None:
        """Say which results of an aggregation over a stream have been emitted; None for all.

        Spark itself holds windows back, so there is nothing to do while a stream runs.
        """
        return None

    @abstractmethod
    def at_source(self, origin: Origin) -> Move:
        """A source row stands for itself."""

    def begin(
        self,
        before: Annotation,
        prop: str,
        value: Column | Callable[[Column], Column],
        merge: Merge,
        df: DataFrame,
    ) -> Move:
        """Rows of a frame get a property, or another value of one; most captures carry none.

        A value is a column over the user's rows, or a function of the value that a row has.
        """
        return Move(before)

    @abstractmethod
    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        """Several rows come from one; `by` tells them apart."""

    @abstractmethod
    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        """One row comes from all rows of a group."""

    @abstractmethod
    def spread(self, before: Annotation, partitions: Groups) -> Move:
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

    def pack(self, before: Annotation, groups: Groups | None = None) -> Column:
        """Write the annotation as one text value, to travel through a function.

        A function over whole `groups` has rows of one group at a time.
        """
        if not before.columns:
            return F.lit("{}")
        return F.to_json(F.struct(*[named(c) for c in before.columns]), JSON)

    @abstractmethod
    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        """Read the annotation back from a list of such texts; `by` is what the function made."""

    @abstractmethod
    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        """Rows come from rows of other frames in a way that only a condition tells."""

    def assemble(
        self, before: Annotation, rows: DataFrame, packed: str, by: Sequence[Typed]
    ) -> Move:
        """One row comes from the rows of a list that was put together outside of Spark.

        Args:
            before: The annotation of the rows in the lists.
            rows: The rows that are made.
            packed: The column with the list, of such texts as `pack` writes.
            by: What tells rows apart that are made of the same.
        """
        move = self.unpack(before, named(packed), by)
        return Move(replace(move.annotation, unique=before.unique), move.steps)
