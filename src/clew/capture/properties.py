"""Capture `properties`: each row carries values that its source rows have, merged on the way.

On-the-fly provenance queries in Spark's terms. A property begins where the user says so, with a
value of each row. Wherever one row is made of several, their values are merged, by an aggregate
beside the user's own or by an expression; nothing else is carried and nothing is stored. So the
answer to a question such as "which sensors were involved?" is there as soon as the result is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import PropertyError
from clew.plan.algebra import Annotation, Capture, Gathering, Move, left, looked_up, right
from clew.plan.columns import ID_A, ID_B, JSON, named
from clew.plan.merge import value_column
from clew.plan.secret import UNKEYED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from clew.plan.algebra import Field, Groups, Members, Origin, Related, Typed
    from clew.plan.merge import Merge

_MORE = "_clew_more_"


@dataclass(frozen=True, slots=True)
class Properties(Annotation):
    """The properties that rows of a frame have.

    Attributes:
        merges: How each is merged.
        kinds: The type of each.
    """

    merges: Mapping[str, Merge] = field(default_factory=dict)
    kinds: Mapping[str, T.DataType] = field(default_factory=dict)


class PropertiesCapture(Capture):
    """Carry the properties that the pipeline declares, and nothing else."""

    name = "properties"
    secret = UNKEYED

    def at_source(self, origin: Origin) -> Move:
        return Move(_with({}, {}))

    def begin(
        self,
        before: Annotation,
        prop: str,
        value: Column | Callable[[Column], Column],
        merge: Merge,
        df: DataFrame,
    ) -> Move:
        known, name = _known(before), value_column(prop)
        # Not `callable`: a column has `__call__`, too, to say that it is none.
        carried = merge.begin(value) if isinstance(value, Column) else value(named(name))
        kind = df.select(carried.alias("value")).schema["value"].dataType
        after = _with({**known.merges, prop: merge}, {**known.kinds, prop: kind})
        return Move(after, ({name: carried},))

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
