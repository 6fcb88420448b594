"""Aggregation: a row comes from every row of its group and window.

The user's grouping and aggregate expressions are handed to Spark as they are, so any that Spark
accepts works: tumbling, sliding and session windows, `window_time`, user-defined aggregates. The
annotation is gathered by further aggregates beside them. A group's id is a hash of its keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import BeyondRowError, GraphError
from clew.operators.groups import aliased, key_name, keyed
from clew.operators.keep import shown
from clew.operators.project import probe_stars, references_of
from clew.operators.untouched import origin_of
from clew.plan.algebra import Groups, Members
from clew.plan.analysis import change, describe
from clew.plan.columns import WATERMARK, at_hand, named, quote, real_name, refuse_nameless, sole
from clew.plan.facts import Facts, Keeps, Rows, UntilPassed, WithoutEnd, WithoutWindow, stated
from clew.plan.made import expression, split
from clew.plan.node import Annotated, Node
from clew.plan.spans import span_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.model import Exactness
    from clew.plan.algebra import Admission, Capture, Typed
    from clew.plan.made import Made

Grouping = Literal["groupBy", "rollup", "cube"]
_LEVEL = "_clew_level"
_ROWS = "_clew_rows_in_group"
_CAST = re.compile(
    r"Column<'(?P<tries>TRY_)?CAST\((?P<copy>_clew_ref_\d+_\d+)(?: AS (?P<name>\w+))?"
    r"(?:(?P<path>(?:\['\w+'\])+) AS \w+)? AS (?P<kind>(?:[^()\[]|\([\d, ]+\))+)\)'>"
)
_FIELD = re.compile(r"\['(\w+)'\]")
_WINDOW = re.compile(r"window\((\w+)(?:, *'[^']*')+\)(?: AS \w+)?")


@dataclass(frozen=True, slots=True)
class Clock:
    """The grouping key that a stream's aggregate compares with the watermark.

    Attributes:
        key: Its position among the keys.
        is_window: It is a window, late once its end is; else a time.
    """

    key: int
    is_window: bool


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Group rows and aggregate each group.

    Attributes:
        grouping: Spark's verb.
        keys: The user's grouping expressions.
        aggregates: The user's aggregates.
        key_names: What Spark calls the keys.
        clock: The key that a stream's watermark is compared with.
        key_types: The types of the keys.
        overlaps: A row may be in several groups.
        session: The position of the key that is a session window.
        within: The position of the key that is a window over the event time of the one source.
    """

    grouping: Grouping
    keys: tuple[Column | str, ...]
    aggregates: tuple[Column, ...]
    key_names: tuple[str, ...]
    clock: Clock | None = None
    key_types: tuple[T.DataType, ...] | None = None
    overlaps: bool = True
    session: int | None = None
    within: int | None = None
    exactness: ClassVar[Exactness] = "exact"

    def __post_init__(self) -> None:
        """Refuse any other method of a frame: a verb may come from a store.

        Raises:
            GraphError: The verb does not group rows.
        """
        if self.grouping not in get_args(Grouping):
            msg = f"`{self.grouping}` does not group rows."
            raise GraphError(msg)

    @property
    def kind(self) -> str:
        return "aggregate" if self.grouping == "groupBy" else self.grouping

    @property
    def label(self) -> str:
        by = ", ".join(shown(key) for key in self.keys)
        what = ", ".join(shown(each) for each in self.aggregates)
        return f"{what} by {by}" if by else what

    @property
    def facts(self) -> Facts:
        keeps: Keeps = WithoutWindow()
        if self.session is not None:
            keeps = WithoutEnd("a session window may grow without end")
        elif self.clock is not None:
            key = self.clock.key
            keeps = UntilPassed(self.keys[key], self.key_names[key])
        has_groups = self.grouping == "groupBy" and len(self.keys) > 0
        return stated(
            Rows.GATHERED,
            keeps,
            closes=True,
            evaluates=True,
            aggregates=True,
            of_nothing=not has_groups,
            grows=self.session is not None,
            # Without keys there is a row even of no rows at all, which belongs to no trial.
            keeps_apart=has_groups,
        )

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        if column not in self.key_names:
            return ()
        key, _ = split(shown(self.keys[self.key_names.index(column)]))
        return (expression(node.inputs[0], key),)

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        grouped = getattr(source.df, self.grouping)(*self.keys)
        if not source.annotation.columns:
            nothing = Groups([], partial(self._members, source, [], None))
            move = capture.gather(source.annotation, nothing)
            return Annotated(grouped.agg(*self.aggregates), move.after.annotation)
        types = self.key_types or _key_types(source.df, self)
        keys: list[Typed] = [(quote(n), t) for n, t in zip(self.key_names, types, strict=True)]
        extra: dict[str, Column] = {}
        if self.grouping != "groupBy":
            # A null key and a rolled-up one look alike; the level tells them apart.
            extra[_LEVEL] = F.grouping_id()
            keys.append((_LEVEL, T.LongType()))
        admission = capture.admit(source.annotation, self._clock_time())
        find = partial(self._members, source, types, admission)
        groups = Groups(keys, find, self._quoted(self.session), self._quoted(self.within))
        gathering = capture.gather(admission.annotation, groups)
        if admission.condition is not None:
            # A late row may still be in time for a later window, so windows come first.
            taken = admission.apply(
                source.df.withColumns(keyed(self.keys)), source.annotation.columns
            )
            by = [named(key_name(i)).alias(n) for i, n in enumerate(self.key_names)]
            grouped = getattr(taken, self.grouping)(*by)
        emitted = self._emitted(capture)
        if emitted is not None:
            extra[_ROWS] = F.count(F.lit(1))
        hidden = {**gathering.aggregates, **extra}
        df = grouped.agg(*self.aggregates, *[c.alias(name) for name, c in hidden.items()])
        df = df if emitted is None else df.filter(emitted)
        return Annotated(gathering.finish(df).drop(*extra), gathering.after.annotation)

    def _emitted(self, capture: Capture) -> Column | None:
        """Tell which groups a stream has emitted, as a condition on them; None if on all.

        A condition on a window alone would go down to where the row is put into windows, through
        aggregates before this one as well, and what is there of nested windows is more than Spark
        can compile. A condition that needs the group stays here.
        """
        if self.clock is None:
            return None
        key = quote(self.key_names[self.clock.key])
        emitted = capture.emitted(f"{key}.`end`" if self.clock.is_window else key)
        return None if emitted is None else F.when(named(_ROWS) > 0, emitted)

    def _quoted(self, key: int | None) -> str | None:
        return None if key is None else quote(self.key_names[key])

    def _clock_time(self) -> str | None:
        if self.clock is None:
            return None
        key = key_name(self.clock.key)
        return f"{key}.`end`" if self.clock.is_window else key

    def _members(
        self, source: Annotated, types: Sequence[T.DataType], admission: Admission | None
    ) -> Members:
        keys_of = keyed(self.keys)
        rows = source.df.select(*[named(c) for c in source.annotation.columns], *aliased(keys_of))
        if admission is not None:
            rows = admission.apply(rows, source.annotation.columns)
        keys: list[Typed] = list(zip(keys_of, types, strict=True))
        if self.session is not None:
            session = key_name(self.session)
            others = [key for key in keys if key[0] != session]
            return Members(rows, others, overlaps=False, session=session)
        if self.grouping == "groupBy":
            return Members(rows, keys, self.overlaps)
        # A hash depends on the type: the level is a long, as `grouping_id` is.
        levels = F.array(*[F.lit(n).cast("bigint") for n in self._levels()])
        rows = rows.withColumn(_LEVEL, F.explode(levels))
        bits = len(keys) - 1
        rows = rows.withColumns(
            {
                name: F.when(F.getbit(named(_LEVEL), F.lit(bits - i)) == 0, named(name))
                for i, name in enumerate(keys_of)
            }
        )
        return Members(rows, [*keys, (_LEVEL, T.LongType())])

    def _levels(self) -> list[int]:
        """List Spark's `grouping_id` of each way in which keys are left out, last key first."""
        count = len(self.keys)
        if self.grouping == "rollup":
            return [(1 << n) - 1 for n in range(count + 1)]
        return list(range(1 << count))


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
    keys, aggregates = _named_well(node, grouping, keys, aggregates)
    counted = getattr(df, grouping)(*keys).agg(F.count(F.lit(1)))
    names = counted.columns[:-1]
    if len(names) < len(keys):
        msg = (
            "the grouping columns are not part of the result, so groups cannot be told apart.\n\n"
            'Write `spark.conf.set("spark.sql.retainGroupColumns", "true")`, which is Spark\'s '
            "default, before the pipeline is built."
        )
        raise GraphError(msg)
    fields = counted.schema.fields[:-1]
    operator = Aggregate(
        grouping,
        tuple(keys),
        tuple(aggregates),
        tuple(names),
        _clock(fields),
        tuple(field.dataType for field in fields),
        session=_session(fields),
        within=_within(node, keys) if grouping == "groupBy" else None,
    )
    out = Node(operator, (node,))
    sole(out.columns, "agg", df)
    made = change(out.plain.df, df)
    beyond = made.beyond(["Aggregate", "Expand", "Filter"])
    if beyond:
        raise BeyondRowError(
            "agg",
            describe(beyond),
            "Compute it in a `select` or a join before the `groupBy`.",
        )
    # Spark puts a row into several windows, or into several levels of a rollup, by an `Expand`.
    return replace(out, operator=replace(operator, overlaps="Expand" in made.added))


def _named_well(
    node: Node, grouping: Grouping, keys: Sequence[Column | str], aggregates: Sequence[Column]
) -> tuple[list[Column | str], list[Column]]:
    """Give what is taken as `frame["column"]` the names that Spark's own result would have."""
    by = at_positions(node, keys)
    probe_stars(node, by, aggregates)
    refuse_nameless((*by, *aggregates))
    with at_hand():
        grouped = getattr(node.plain.df, grouping)(*by)
        key_names = grouped.agg(F.count(F.lit(1))).columns[:-1]
        names = grouped.agg(*aggregates).columns[len(key_names) :]
    references = references_of(node)
    df = node.plain.df
    return _renamed(df, by, key_names, references), _renamed(df, aggregates, names, references)


def at_positions(node: Node, keys: Sequence[Column | str]) -> list[Column | str]:
    """Take grouping columns that are given by their positions."""
    return [_at_position(node, key) for key in keys]


def _at_position(node: Node, key: Column | str | int) -> Column | str:
    """Take a grouping column that is given by its position, counted from 1 as Spark does."""
    if not isinstance(key, int):
        return key
    columns = node.columns
    if not 1 <= key <= len(columns):
        msg = (
            f"`groupBy({key})` counts columns from 1, and the frame has {len(columns)}.\n\n"
            f'Name the column instead, e.g. `.groupBy("{columns[0]}")`.'
        )
        raise GraphError(msg)
    return named(columns[key - 1])


def _renamed(
    df: DataFrame, columns: Sequence[Any], names: Sequence[str], references: Mapping[str, str]
) -> list[Any]:
    if len(columns) != len(names):
        return list(columns)
    out = []
    for column, name in zip(columns, names, strict=True):
        better = _cast_name(df, column, references) or real_name(name, references)
        out.append(column if better == name else column.alias(better))
    return out


def _cast_name(df: DataFrame, column: Column | str, references: Mapping[str, str]) -> str | None:
    """Ask Spark what it calls a cast of `frame["column"]` beside groups.

    A cast of a name is called by that name there, and one of a column that a frame has given by
    the whole expression, unless it needs a time zone. So the copy is taken from the frame, too.
    """
    match = _CAST.fullmatch(str(column))
    if match is None or match["copy"] not in references:
        return None
    path = _FIELD.findall(match["path"] or "")
    value = df[".".join([match["copy"], *path])]
    cast = value.try_cast(match["kind"]) if match["tries"] else value.cast(match["kind"])
    name = df.groupBy(cast).agg(F.count(F.lit(1))).columns[0]
    return name.replace(match["copy"], match["name"] or references[match["copy"]])


def _session(keys: Sequence[T.StructField]) -> int | None:
    """Find the key that is a session window."""
    return next((i for i, key in enumerate(keys) if "spark.sessionWindow" in key.metadata), None)


def _within(node: Node, keys: Sequence[Column | str]) -> int | None:
    """Find the key that is a window over a source's event time, untouched on its way here."""
    windows = ((i, _WINDOW.fullmatch(shown(key))) for i, key in enumerate(keys))
    found = next(((i, match[1]) for i, match in windows if match), None)
    if found is None:
        return None
    position, time = found
    origin = origin_of(node, time) if time in node.columns else None
    return position if origin is not None and span_column(origin[0].origin) == origin[1] else None


def _clock(keys: Sequence[T.StructField]) -> Clock | None:
    """Find the key that Spark marked as carrying the stream's watermark."""
    for i, field in enumerate(keys):
        if WATERMARK in field.metadata:
            is_window = isinstance(field.dataType, T.StructType)
            return Clock(i, is_window)
    return None


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

    @property
    def facts(self) -> Facts:
        return stated(Rows.GATHERED, WithoutWindow(), aggregates=True, of_nothing=not self.keys)

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        [source] = inputs
        values = None if self.values is None else list(self.values)
        df = source.df.groupBy(*self.keys).pivot(self.column, values).agg(*self.aggregates)
        if not source.annotation.columns:
            plain = Aggregate("groupBy", self.keys, self.aggregates, self.key_names)
            return Annotated(df, plain.annotate(inputs, capture).annotation)
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
    keys, aggregates = _named_well(node, "groupBy", keys, aggregates)
    names = node.plain.df.groupBy(*keys).agg(F.count(F.lit(1))).columns[:-1]
    kept = None if values is None else tuple(values)
    out = Node(Pivot(tuple(keys), column, kept, tuple(aggregates), tuple(names)), (node,))
    sole(out.columns, "pivot", node.plain.df)
    return out
