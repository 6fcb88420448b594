"""Capture `sets`: each row carries the set of source rows it was made from.

One hidden array per stream, so an answer never mixes sources. An element holds the source row's id
and, unless the user said otherwise, its content: then provenance needs no second read of the
source, whatever the source is. Elements begin with the id, so sorting an array sorts by id.
Duplicates are removed only where they can occur; Spark's `array_distinct` is quadratic for structs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.plan.algebra import Annotation, Capture, Gathering, Move, left, looked_up, right
from clew.plan.columns import ID_A, ID_B, JSON, ids_text, named, own_id, quote
from clew.plan.mask import REDACTED, current_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.plan.algebra import Field, Groups, Origin, Related, Typed
    from clew.plan.mask import Mask

FROM = "_clew_from_"
_MORE = "_clew_more_"

_LONG = T.LongType()
_ELEMENT = [
    T.StructField("a", _LONG),
    T.StructField("b", _LONG),
    T.StructField("segment", T.StringType()),
    T.StructField("time", T.TimestampType()),
]


@dataclass(frozen=True, slots=True)
class Sets(Annotation):
    """The arrays of a frame and the type of their elements, by stream."""

    types: Mapping[str, T.StructType] = field(default_factory=dict)


def from_column(stream: str) -> str:
    """Name the hidden column that holds a row's sources of one stream."""
    return FROM + stream


def storable(name: str, kind: T.DataType) -> tuple[str, T.DataType]:
    """Give a column a type that Parquet can hold; return it as SQL, with that type."""
    column = quote(name)
    if isinstance(kind, T.VariantType):
        return f"to_json({column}) AS {column}", T.StringType()
    if isinstance(kind, (T.NullType, T.AnsiIntervalType, T.CalendarIntervalType)):
        return f"CAST({column} AS STRING) AS {column}", T.StringType()
    return column, kind


def content(columns: Sequence[Field]) -> tuple[str, T.StructType]:
    """Pack the user's columns of a row into one struct; return it as SQL, with its type."""
    if not columns:
        return "struct(CAST(NULL AS STRING) AS `_`)", T.StructType().add("_", "string")
    mask = current_mask()
    left = [(name, kind) for name, kind in columns if mask.way(name) != "drop"]
    if columns and not left:
        return content(())
    kept = [(name, *_kept(name, kind, mask)) for name, kind in left]
    packed = f"struct({', '.join(column for _, column, _ in kept)})"
    return packed, T.StructType([T.StructField(name, kind) for name, _, kind in kept])


def _kept(name: str, kind: T.DataType, mask: Mask) -> tuple[str, T.DataType]:
    """Give a column in the form in which it is kept."""
    way = mask.way(name)
    if way is None:
        return storable(name, kind)
    column = quote(name)
    if way == "redact":
        return f"'{REDACTED}' AS {column}", T.StringType()
    text = f"hex({column})" if isinstance(kind, T.BinaryType) else f"CAST({column} AS STRING)"
    inner = f"sha2(concat('{mask.key}', {text}), 256)"
    return f"sha2(concat('{mask.key}', {inner}), 256) AS {column}", T.StringType()


def time_of(column: str | None) -> str:
    """Return a row's time, null where it has none, as SQL."""
    return f"CAST({quote(column) if column else 'NULL'} AS TIMESTAMP)"


class SetsCapture(Capture):
    """Carry the set of source rows, one array per stream."""

    name = "sets"

    def at_source(self, origin: Origin) -> Move:
        a, b, segment = origin.columns()
        users = [(f.name, f.dataType) for f in origin.schema.fields]
        time = time_of(origin.event_time)
        element, kind = _element(segment, time, users if origin.keep_content else None)
        sets = _sets(unique=origin.identity.unique, types={origin.name: kind})
        own = {ID_A: F.expr(a), ID_B: F.expr(b)}
        return Move(sets, (own, {from_column(origin.name): F.expr(f"array({element})")}))

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        # Equal rows made from one row cannot be told apart, so the ids are not unique after this.
        after = _sets(unique=False, types=_types(before), repeats=before.streams)
        return Move(after, (own_id([(ID_A, _LONG), (ID_B, _LONG), *by], finer=True),))

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        columns = {from_column(s): named(from_column(s)) for s in before.streams}
        aggregates = {name: F.flatten(F.collect_list(col)) for name, col in columns.items()}
        after = _sets(unique=True, types=_types(before), repeats=before.streams)
        steps = _without_repeats(_types(before), before.repeats)
        return Gathering(aggregates, Move(after, (*steps, own_id(groups.keys))))

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        window = partitions.window()
        gathered = {
            from_column(s): F.flatten(F.collect_list(named(from_column(s))).over(window))
            for s in before.streams
        }
        after = _sets(unique=before.unique, types=_types(before), repeats=before.streams)
        return Move(after, (gathered, *_without_repeats(_types(before), before.repeats)))

    def pair(self, first: Annotation, second: Annotation) -> Move:
        own = own_id([(side(c), _LONG) for side in (left, right) for c in (ID_A, ID_B)])
        return _together(first, second, own, unique=first.unique and second.unique)

    def witness(self, first: Annotation, second: Annotation) -> Move:
        own = {ID_A: named(left(ID_A)), ID_B: named(left(ID_B))}
        return _together(first, second, own, unique=first.unique)

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        types = {**_types(first), **_types(second)}
        shared = set(first.streams) & set(second.streams)
        after = _sets(
            unique=first.unique and second.unique,
            types=types,
            repeats=[s for s in types if s in shared or s in first.repeats | second.repeats],
        )
        moves = []
        for branch, side in enumerate((first, second)):
            missing = {from_column(s): _empty(t) for s, t in types.items() if s not in side.streams}
            own = own_id([(ID_A, _LONG), (ID_B, _LONG), (str(branch), _LONG)])
            moves.append(Move(after, ({**own, **missing},)))
        return moves[0], moves[1]

    def mark(
        self,
        before: Annotation,
        name: str,
        columns: Sequence[Field],
        time: str | None,
    ) -> Move:
        types = _types(before)
        element, kind = _element("CAST(NULL AS STRING)", time_of(time), columns, types)
        after = _sets(unique=before.unique, types={**types, name: kind}, repeats=before.repeats)
        return Move(after, ({from_column(name): F.expr(f"array({element})")},))

    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        types = _types(before)
        fields = [T.StructField(ID_A, _LONG), T.StructField(ID_B, _LONG)]
        fields += [T.StructField(from_column(s), T.ArrayType(t)) for s, t in types.items()]
        kind = T.StructType(fields)
        parsed = F.transform(packed, lambda one: F.from_json(one, kind, JSON))
        read = {
            from_column(s): F.flatten(F.transform(parsed, _field(from_column(s)))) for s in types
        }
        after = _sets(unique=False, types=types, repeats=before.streams)
        steps = _without_repeats(types, frozenset(before.streams))
        return Move(after, (own_id([(ids_text(parsed), T.StringType()), *by]), read, *steps))

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        types: dict[str, T.StructType] = {}
        df = made.with_ids()
        for side, find in made.sides:
            kinds = _types(side)
            lists = {_MORE + s: F.flatten(F.collect_list(named(from_column(s)))) for s in kinds}
            df = looked_up(df, find(), lists)
            more = {s: F.coalesce(named(_MORE + s), _empty(kind)) for s, kind in kinds.items()}
            # The sides may share a source.
            joined = {
                from_column(s): F.concat(named(from_column(s)), new) if s in types else new
                for s, new in more.items()
            }
            df = df.withColumns(joined).drop(*lists)
            types |= kinds
        after = _sets(unique=True, types=types, repeats=list(types))
        return Move(after, _without_repeats(types, frozenset(types))).apply(df, ()), after


SETS = SetsCapture()


def _field(name: str) -> Callable[[Column], Column]:
    return lambda struct: struct[name]


def _sets(
    *, unique: bool, types: Mapping[str, T.StructType], repeats: Sequence[str] | frozenset[str] = ()
) -> Sets:
    columns = (ID_A, ID_B, *[from_column(s) for s in types])
    return Sets(columns, unique, tuple(types), frozenset(repeats), types)


def _types(annotation: Annotation) -> Mapping[str, T.StructType]:
    assert isinstance(annotation, Sets)
    return annotation.types


def _empty(kind: T.StructType) -> Column:
    return F.array().cast(T.ArrayType(kind))


def _element(
    segment: str,
    time: str,
    columns: Sequence[Field] | None,
    sources: Mapping[str, T.StructType] | None = None,
) -> tuple[str, T.StructType]:
    """Make an element of a set from the row at hand; return it as SQL, with its type."""
    parts = [f"{ID_A} AS a", f"{ID_B} AS b", f"{segment} AS segment", f"{time} AS `time`"]
    fields = list(_ELEMENT)
    if columns is not None:
        packed, kind = content(columns)
        parts.append(f"{packed} AS `row`")
        fields.append(T.StructField("row", kind))
    if sources is not None:
        inside = ", ".join(f"{quote(from_column(s))} AS {quote(s)}" for s in sources)
        parts.append(f"struct({inside}) AS `from`")
        inner = [T.StructField(s, T.ArrayType(t)) for s, t in sources.items()]
        fields.append(T.StructField("from", T.StructType(inner)))
    return f"struct({', '.join(parts)})", T.StructType(fields)


def _together(
    first: Annotation, second: Annotation, own: dict[str, Column], *, unique: bool
) -> Move:
    types = {**_types(first), **_types(second)}
    joined = {}
    for stream, kind in types.items():
        name = from_column(stream)
        sides = [
            F.coalesce(named(side(name)), _empty(kind))
            for side, annotation in ((left, first), (right, second))
            if stream in annotation.streams
        ]
        joined[name] = sides[0] if len(sides) == 1 else F.concat(*sides)
    shared = frozenset(first.streams) & frozenset(second.streams)
    after = _sets(unique=unique, types=types, repeats=list(types))
    return Move(after, ({**own, **joined}, *_without_repeats(types, shared)))


def _without_repeats(
    types: Mapping[str, T.StructType], repeats: frozenset[str]
) -> tuple[dict[str, Column], ...]:
    """Remove repeated elements in two projections: sort, then keep the first of each run.

    Two, because the second looks at each element's neighbour in the sorted array: as one expression
    Spark would sort again for every element.
    """
    names = {s: from_column(s) for s in types if s in repeats}
    ordered = {name: _by_id(named(name), types[s]) for s, name in names.items()}
    firsts = {name: F.filter(named(name), _first_of_run(name)) for name in names.values()}
    return (ordered, firsts) if names else ()


def _by_id(array: Column, kind: T.StructType) -> Column:
    if _orderable(kind):
        return F.sort_array(array)

    def compare(x: Column, y: Column) -> Column:
        lower = (x["a"] < y["a"]) | ((x["a"] == y["a"]) & (x["b"] < y["b"]))
        same = (x["a"] == y["a"]) & (x["b"] == y["b"])
        return F.when(same, F.lit(0)).when(lower, F.lit(-1)).otherwise(F.lit(1))

    return F.array_sort(array, compare)


def _first_of_run(name: str) -> Callable[[Column, Column], Column]:
    def is_first(element: Column, i: Column) -> Column:
        before = F.get(named(name), i - 1)
        return (i == 0) | (element["a"] != before["a"]) | (element["b"] != before["b"])

    return is_first


def _orderable(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_orderable(f.dataType) for f in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _orderable(kind.elementType)
    return not isinstance(kind, (T.MapType, T.VariantType))
