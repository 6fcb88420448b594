"""Capture `properties`: each row carries values that its source rows have, merged on the way.

On-the-fly provenance queries in Spark's terms. A property begins where the user says so, with a
value of each row. Wherever one row is made of several, their values are merged, by an aggregate
beside the user's own or by an expression; nothing else is carried and nothing is stored. So the
answer to a question such as "which sensors were involved?" is there as soon as the result is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.algebra import Annotation, Capture, Gathering, Move, left, looked_up, right
from clew.exceptions import PropertyError
from clew.graph.columns import ID_A, ID_B, JSON, named
from clew.graph.secret import UNKEYED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.capture.algebra import Field, Groups, Members, Origin, Related, Typed

VALUE = "_clew_v_"
_MORE = "_clew_more_"


@dataclass(frozen=True, slots=True)
class Merge:
    """How several values of a property become one.

    Attributes:
        name: What the user calls it.
        together: Aggregates the values of a group's rows.
        both: Merges two values, neither of which is null.
        begin: Turns a row's own value into what is carried.
        gathered: Turns what the aggregate made into what is carried.
    """

    name: str
    together: Callable[[Column], Column]
    both: Callable[[Column, Column], Column] | None
    begin: Callable[[Column], Column] = lambda value: value
    gathered: Callable[[Column], Column] = lambda value: value

    def pair(self, prop: str, one: Column, other: Column) -> Column:
        """Merge the values of two rows, either of which may be missing."""
        if self.both is None:
            msg = (
                f"property `{prop}` is merged by an aggregate of your own, and here two rows "
                "become one, by a join or in a window of rows in order, which an aggregate cannot "
                "do.\n\nSay how two values become one: "
                "`merge=(F.bit_or, lambda a, b: a.bitwiseOR(b))`."
            )
            raise PropertyError(msg)
        return F.coalesce(self.both(one, other), one, other)


def _listed(value: Column) -> Column:
    return F.when(value.isNotNull(), F.array(value)).otherwise(F.slice(F.array(value), 1, 0))


def _in_order(values: Column) -> Column:
    return F.array_sort(F.array_distinct(values))


MERGES = {
    "sum": Merge("sum", F.sum, lambda a, b: a + b),
    "min": Merge("min", F.min, F.least),
    "max": Merge("max", F.max, F.greatest),
    "set": Merge(
        "set",
        F.collect_set,
        lambda a, b: _in_order(F.concat(a, b)),
        begin=_listed,
        gathered=lambda v: _in_order(F.flatten(v)),
    ),
    "list": Merge(
        "list",
        F.collect_list,
        F.concat,
        begin=_listed,
        # Spark gathers in any order, so the lists that were gathered are put in one.
        gathered=lambda v: F.flatten(F.array_sort(v)),
    ),
}
"""The merges that have a name."""


def merge_of(given: Any) -> Merge:
    """Read what the user gave as a merge.

    Raises:
        PropertyError: There is no such merge.
    """
    if isinstance(given, str) and given in MERGES:
        return MERGES[given]
    if callable(given):
        return Merge("own", given, None)
    if isinstance(given, tuple) and len(given) == 2 and all(callable(each) for each in given):
        return Merge("own", given[0], given[1])
    names = ", ".join(f'"{each}"' for each in MERGES)
    msg = (
        f"`merge` is {names} or an aggregate of your own; got {given!r}.\n\nAn aggregate is a "
        "function of a column, such as `F.bit_or`; where rows are joined, add how two values "
        "become one: `(F.bit_or, lambda a, b: a.bitwiseOR(b))`."
    )
    raise PropertyError(msg)


@dataclass(frozen=True, slots=True)
class Properties(Annotation):
    """The properties that rows of a frame have.

    Attributes:
        merges: How each is merged.
        kinds: The type of each.
    """

    merges: Mapping[str, Merge] = field(default_factory=dict)
    kinds: Mapping[str, T.DataType] = field(default_factory=dict)


def value_column(prop: str) -> str:
    """Name the hidden column that holds a property."""
    return VALUE + prop


class PropertiesCapture(Capture):
    """Carry the properties that the pipeline declares, and nothing else."""

    name = "properties"
    secret = UNKEYED

    def at_source(self, origin: Origin) -> Move:
        return Move(_with({}, {}))

    def begin(
        self, before: Annotation, prop: str, value: Column, merge: Merge, kind: T.DataType
    ) -> Move:
        """Give rows a property, or another value of one that they have."""
        known = _known(before)
        after = _with({**known.merges, prop: merge}, {**known.kinds, prop: kind})
        return Move(after, ({value_column(prop): value},))

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        return Move(before)

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        merges = _known(before).merges
        aggregates = {value_column(p): _together(p, m) for p, m in merges.items()}
        return Gathering(aggregates, Move(_after(before, groups), _gathered(merges)))

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        window, merges = partitions.window(), _known(before).merges
        aggregates = {value_column(p): _together(p, m).over(window) for p, m in merges.items()}
        return Move(_after(before, partitions), (aggregates, *_gathered(merges)))

    def pair(self, first: Annotation, second: Annotation) -> Move:
        after = _of_both(first, second)
        values: dict[str, Column] = {}
        for prop, merge in after.merges.items():
            name = value_column(prop)
            sides = [
                named(side(name))
                for side, has in ((left, first), (right, second))
                if name in has.columns
            ]
            values[name] = merge.pair(prop, *sides) if len(sides) > 1 else sides[0]
        return Move(after, (values,))

    def witness(self, first: Annotation, second: Annotation) -> Move:
        return self.pair(first, second)

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        after = _of_both(first, second)
        empty = {value_column(p): F.lit(None).cast(kind) for p, kind in after.kinds.items()}

        def filled(side: Annotation) -> Move:
            return Move(after, ({n: null for n, null in empty.items() if n not in side.columns},))

        return filled(first), filled(second)

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        return Move(before)

    def pack(self, before: Annotation, groups: Groups | None = None) -> Column:
        """Write the values as text; where only an aggregate merges them, those of the group."""
        if groups is None or not before.columns:
            return super().pack(before, groups)
        window, merges = groups.window(), _known(before).merges
        values = [
            named(value_column(p)) if m.both else m.gathered(_together(p, m).over(window))
            for p, m in merges.items()
        ]
        names = [value_column(p) for p in merges]
        return F.to_json(F.struct(*[v.alias(n) for v, n in zip(values, names, strict=True)]), JSON)

    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        # A function over rows gives each of its rows the text of one.
        after = before if groups is None else _after(before, groups, only_aggregated=True)
        known = _known(after)
        kind = _struct(known)
        values = {
            value_column(p): _folded(packed, p, m, kind)
            if groups is not None and m.both
            else _value(packed[0], p, kind)
            for p, m in known.merges.items()
        }
        return Move(after, (values,))

    def assemble(
        self, before: Annotation, rows: DataFrame, packed: str, by: Sequence[Typed]
    ) -> Move:
        known = _known(before)
        kind = _struct(known)
        values = {
            value_column(p): _folded(named(packed), p, m, kind) for p, m in known.merges.items()
        }
        return Move(before, (values,))

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        after = _with({}, {})
        for side, _ in made.sides:
            after = _of_both(after, side)
        if after.merges and made.rows.isStreaming:
            msg = (
                f"property `{next(iter(after.merges))}` does not pass a function of your own on a "
                "stream: which rows a result comes from is looked up afterwards.\n\n"
                "Begin it behind `through`."
            )
            raise PropertyError(msg)
        df = made.with_ids()
        for side, find in made.sides:
            df = _merged(df, _known(side).merges, find())
        return df.drop(ID_A, ID_B), after


PROPERTIES = PropertiesCapture()


def _merged(df: DataFrame, merges: Mapping[str, Merge], members: Members) -> DataFrame:
    """Merge the values of the rows behind each row into what it has already."""
    if not merges:
        return df
    more = {p: _MORE + p for p in merges}
    out = looked_up(df, members, {more[p]: _together(p, m) for p, m in merges.items()})
    values: dict[str, Column] = {}
    for prop, merge in merges.items():
        name, new = value_column(prop), merge.gathered(named(more[prop]))
        values[name] = merge.pair(prop, named(name), new) if name in df.columns else new
    return out.withColumns(values).drop(*more.values())


def _known(annotation: Annotation) -> Properties:
    assert isinstance(annotation, Properties)
    return annotation


def _with(merges: Mapping[str, Merge], kinds: Mapping[str, T.DataType]) -> Properties:
    return Properties(tuple(value_column(p) for p in merges), merges=merges, kinds=kinds)


def _of_both(first: Annotation, second: Annotation) -> Properties:
    one, other = _known(first), _known(second)
    return _with({**one.merges, **other.merges}, {**one.kinds, **other.kinds})


def _together(prop: str, merge: Merge) -> Column:
    return merge.together(named(value_column(prop)))


def _gathered(merges: Mapping[str, Merge]) -> tuple[dict[str, Column], ...]:
    return ({value_column(p): m.gathered(named(value_column(p))) for p, m in merges.items()},)


def _after(before: Annotation, groups: Groups, *, only_aggregated: bool = False) -> Properties:
    """Say what rows have once the values of groups are merged; a sum may be of a wider type.

    Args:
        before: What they had.
        groups: The groups.
        only_aggregated: Only properties for which there is no merge of two are merged.
    """
    known = _known(before)
    merges = {p: m for p, m in known.merges.items() if not (only_aggregated and m.both)}
    if not merges:
        return known
    values = [_together(p, m).alias(value_column(p)) for p, m in merges.items()]
    merged = groups.members().rows.groupBy().agg(*values)
    for step in _gathered(merges):
        merged = merged.withColumns(step)
    kinds = {p: merged.schema[value_column(p)].dataType for p in merges}
    return _with(known.merges, {**known.kinds, **kinds})


def _struct(known: Properties) -> T.StructType:
    return T.StructType([T.StructField(value_column(p), t) for p, t in known.kinds.items()])


def _value(text: Column, prop: str, kind: T.StructType) -> Column:
    return F.from_json(text, kind, JSON)[value_column(prop)]


def _folded(packed: Column, prop: str, merge: Merge, kind: T.StructType) -> Column:
    """Merge the values in a list of texts, one after the other."""
    own = kind[value_column(prop)].dataType

    def add(so_far: Column, text: Column) -> Column:
        return merge.pair(prop, so_far, _value(text, prop, kind)).cast(own)

    return F.aggregate(packed, F.lit(None).cast(own), add)
