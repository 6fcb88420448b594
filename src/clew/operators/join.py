"""Joins: a row comes from the pair that made it.

An outer row without a partner comes from its one side. A semi join keeps a left row because of
rows on the right, so those belong to the answer: without them the row would not be there again.
On a stream, where Spark emits the left row at its first match, it is that match. An anti join
keeps rows because something is absent, which no row can stand for: the left row alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import BeyondRowError, ColumnError, GraphError
from clew.operators.admit import admitted
from clew.operators.aggregate import Aggregate
from clew.operators.keep import shown
from clew.plan.algebra import Groups, Members, left, right
from clew.plan.analysis import change, describe
from clew.plan.columns import ID_A, ID_B, WATERMARK, is_hidden, named, sole, spelling
from clew.plan.facts import Facts, Keeps, Pairing, Rows, UntilMet, WithTables, stated
from clew.plan.made import Made
from clew.plan.node import Annotated, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.model import Exactness
    from clew.plan.algebra import Annotation, Capture, Move, Typed

_HOW = {
    "inner": "inner",
    "cross": "cross",
    "outer": "outer",
    "full": "outer",
    "fullouter": "outer",
    "left": "left",
    "leftouter": "left",
    "right": "right",
    "rightouter": "right",
    "semi": "semi",
    "leftsemi": "semi",
    "anti": "anti",
    "leftanti": "anti",
}


@dataclass(frozen=True, slots=True)
class Join:
    """Match the rows of two frames.

    Attributes:
        on: The user's condition.
        how: The kind of join.
        times: Where both frames are streams, the column of each that carries its watermark.
    """

    on: str | list[str] | Column | list[Column] | None
    how: str
    times: tuple[str | None, str | None] | None = None
    exactness: ClassVar[Exactness] = "exact"

    @property
    def kind(self) -> str:
        return f"{self.how} join"

    @property
    def label(self) -> str:
        return "" if self.on is None else shown(self.on)

    @property
    def names(self) -> list[str] | None:
        """The join columns when they were given by name."""
        names = [self.on] if isinstance(self.on, str) else self.on
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return [str(name) for name in names]
        return None

    @property
    def facts(self) -> Facts:
        of_streams, names = self.times is not None, self.names or []
        keeps: Keeps = WithTables()
        if self.times is not None:
            keeps = UntilMet(self.times)
        return stated(
            # A row that has a match among the rows of a table stands for all of these.
            Rows.GATHERED if self.how == "semi" and not of_streams else Rows.PAIRED,
            keeps,
            has_state=of_streams,
            closes=of_streams,
            rests_on_others=self.how not in ("inner", "cross"),
            keeps_apart=self.how not in ("semi", "anti"),
            pairing=Pairing(self.how, self.times, tuple(names), self.on),
        )

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        sides = enumerate(node.inputs)
        return tuple(Made(number, column) for number, side in sides if column in side.columns)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        first, second = inputs
        if not first.annotation.columns and not second.annotation.columns:
            references = first.references
            if self.how not in ("semi", "anti"):
                references = (*references, *second.references)
            df = first.df.join(second.df, self.on, self.how)
            return Annotated(df, first.annotation, references)
        if self.how == "anti":
            df = first.df.join(_bare(second), self.on, "anti")
            return first.with_df(df)
        if self.how == "semi":
            return _semi(self, first, second, capture)
        return self._pairs(first, second, capture)

    def _pairs(self, first: Annotated, second: Annotated, capture: Capture) -> Annotated:
        if self.times is not None:
            first = admitted(first, self.times[0], capture)
            second = admitted(second, self.times[1], capture)
        move = capture.pair(first.annotation, second.annotation)
        joined = self.matched(_sided(first, left), _sided(second, right))
        return _merged(joined, move, first, second, (*first.references, *second.references))

    def matched(self, first: DataFrame, second: DataFrame) -> DataFrame:
        """Match the rows of two frames; their hidden columns are named by side."""
        return first.join(second, self.on, self.how)


def _sided(frame: Annotated, side: Callable[[str], str]) -> DataFrame:
    """Rename the hidden columns so that both sides' are at hand after the join."""
    return frame.df.withColumnsRenamed({c: side(c) for c in frame.annotation.columns})


def _bare(frame: Annotated) -> DataFrame:
    return frame.df.drop(*frame.annotation.columns)


def _merged(
    joined: DataFrame,
    move: Move,
    first: Annotated,
    second: Annotated,
    references: tuple[str, ...],
) -> Annotated:
    old = [left(c) for c in first.annotation.columns]
    old += [right(c) for c in second.annotation.columns]
    return Annotated(move.apply(joined, old), move.annotation, references)


def _semi(join: Join, first: Annotated, second: Annotated, capture: Capture) -> Annotated:
    if first.df.isStreaming and second.df.isStreaming:
        move = capture.witness(first.annotation, second.annotation)
        return _first_match(join, first, second, move)
    if join.names is not None and _same_types(join.names, first.df, second.df):
        return _by_names(join.names, first, second, capture)
    return _by_condition(join, first, second, capture)


def _by_names(names: list[str], first: Annotated, second: Annotated, capture: Capture) -> Annotated:
    """Gather the right side's rows per key first: then each left row finds one partner at most."""
    sole([c for c in first.df.columns if not is_hidden(c)], "semi join", first.df)
    one = (F.count(F.lit(1)).alias("_clew_count"),)
    grouped = Aggregate("groupBy", tuple(names), one, tuple(names)).annotate([second], capture)
    partners = _sided(grouped, right).drop("_clew_count")
    joined = _sided(first, left).join(partners, names, "inner")
    move = capture.witness(first.annotation, grouped.annotation)
    return _merged(joined, move, first, grouped, first.references)


def _same_types(names: list[str], first: DataFrame, second: DataFrame) -> bool:
    """Tell whether keys are compared as they are; else two of a side may equal one of the other."""
    spelt = spelling(first)
    sides = [{spelt(f.name): f.dataType for f in df.schema.fields} for df in (first, second)]
    return all(sides[0].get(spelt(n)) == sides[1].get(spelt(n), ...) for n in names)


def _by_condition(join: Join, first: Annotated, second: Annotated, capture: Capture) -> Annotated:
    """Find the matches of each left row by its id, beside the semi join itself."""
    if first.df.isStreaming:
        msg = (
            "a semi join of a stream with a table needs its columns by name and of one type, so "
            'that the matching rows can be looked up.\n\nWrite `.join(table, on=["key"], '
            'how="semi")`, renaming and casting columns before if they differ.'
        )
        raise GraphError(msg)
    matches = _sided(first, left).join(_sided(second, right), join.on, "inner")
    own = [left(ID_A), left(ID_B)]
    hidden = [right(c) for c in second.annotation.columns]
    found = matches.select(*[named(c) for c in (*own, *hidden)])
    found = found.withColumnsRenamed({right(c): c for c in second.annotation.columns})
    keys: list[Typed] = [(c, T.LongType()) for c in own]
    gathering = capture.gather(second.annotation, Groups(keys, lambda: Members(found, keys)))
    aggregates = [c.alias(name) for name, c in gathering.aggregates.items()]
    count = F.count(F.lit(1)).alias("_clew_count")
    sets = gathering.finish(found.groupBy(*own).agg(count, *aggregates)).drop("_clew_count")
    sets = sets.withColumnsRenamed({c: right(c) for c in gathering.after.annotation.columns})
    kept = _sided(first, left).join(_bare(second), join.on, "semi")
    joined = kept.join(sets.withColumnsRenamed({c: f"{c}_m" for c in own}), _same_id(own), "inner")
    gathered = replace(second, annotation=gathering.after.annotation)
    move = capture.witness(first.annotation, gathered.annotation)
    return _merged(joined.drop(*[f"{c}_m" for c in own]), move, first, gathered, first.references)


def _same_id(own: list[str]) -> Column:
    a, b = own
    return (named(a) == named(f"{a}_m")) & (named(b) == named(f"{b}_m"))


def _first_match(join: Join, first: Annotated, second: Annotated, move: Move) -> Annotated:
    """Pair each left row with its matches and keep the first pair to arrive."""
    _need_unique(first.annotation)
    one, other = _sided(first, left), _sided(second, right)
    pairs = one.join(other, join.on, "inner")
    names = join.names or []
    layout = [*names, *_without(one.columns, names), *_without(other.columns, names)]
    unique = [f"_clew_at_{i}" for i in range(len(layout))]
    # The left column of a name stands before the right one.
    wanted = [*names, *_without(one.columns, names), *map(right, second.annotation.columns)]
    kept = pairs.toDF(*unique).select(*[named(unique[layout.index(c)]).alias(c) for c in wanted])
    once = kept.dropDuplicatesWithinWatermark([left(ID_A), left(ID_B)])
    # New names have no qualifier: give them the one that the left side had.
    again = once.alias(first.alias) if first.alias else once
    return _merged(again, move, first, second, first.references)


def _without(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    return [c for c in columns if c not in names]


def _need_unique(annotation: Annotation) -> None:
    if not annotation.unique:
        msg = (
            "a semi join of two streams needs rows on the left that can be told apart, and here "
            "two rows may share an id (equal rows of a source without positions, or `explode`).\n\n"
            'Name key columns at the source: `clew.trace(df, "name", id=["column"])`.'
        )
        raise GraphError(msg)


def join(
    first: Node,
    second: Node,
    on: str | list[str] | Column | list[Column] | None,
    how: str | None,
) -> Node:
    """Add a join.

    Raises:
        ColumnError: A name in the condition stands for two columns.
        BeyondRowError: The condition holds a subquery.
        GraphError: Spark knows no such join.
    """
    wanted = _HOW.get((how or "inner").lower().replace("_", ""))
    if wanted is None:
        msg = f"`join` knows no `how={how!r}`; it knows {', '.join(sorted(set(_HOW.values())))}."
        raise GraphError(msg)
    node = Node(Join(on, wanted, _times(first, second)), (first, second))
    try:
        df = node.plain.df
        _ = df.schema
    except ColumnError as error:
        msg = (
            'a column in the join condition, taken as `frame["column"]`, is in both sides or in '
            'neither of them.\n\nFor a self-join give each side a name: `a = frame.alias("a")`, '
            '`b = frame.alias("b")`, and write `F.col("a.column") == F.col("b.column")`.'
        )
        raise ColumnError(msg) from error
    beyond = change(df, first.plain.df, second.plain.df).beyond(["Join", "Filter"])
    if beyond:
        raise BeyondRowError("join", describe(beyond), "Join with the other table as well.")
    return node


def _times(first: Node, second: Node) -> tuple[str | None, str | None] | None:
    """Name the column of each stream that Spark compares with the watermark."""
    if not (first.plain.df.isStreaming and second.plain.df.isStreaming):
        return None
    return _time(first), _time(second)


def _time(node: Node) -> str | None:
    return next((f.name for f in node.schema.fields if WATERMARK in f.metadata), None)
