"""Capture `intervals`: each row carries, per source, the span of time its source rows lie in.

Two numbers for each source, whatever the windows hold: the smallest and the largest event time of
the rows behind a row, in microseconds. They cover what contributed and may cover more, so they are
no answer. They say which part of the source to read again when somebody asks for one. Where a
source has no event time, any of its timestamps serves, and where it has none, all of it is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.algebra import Annotation, Capture, Gathering, Move, left, right
from clew.graph.columns import ID_A, ID_B, JSON, ids_text, named, own_id, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from clew.capture.algebra import Field, Groups, Origin, Typed

LOW = "_clew_lo_"
HIGH = "_clew_hi_"

_LONG = T.LongType()


@dataclass(frozen=True, slots=True)
class Spans(Annotation):
    """The spans of a frame; `timed` names the streams that have one."""

    timed: tuple[str, ...] = ()


def low(stream: str) -> str:
    """Name the hidden column with the earliest time of a row's sources of one stream."""
    return LOW + stream


def high(stream: str) -> str:
    """Name the hidden column with the latest time of a row's sources of one stream."""
    return HIGH + stream


def span_column(origin: Origin) -> str | None:
    """Choose the column of a source by which the part to read again is found."""
    times = [f.name for f in origin.schema.fields if isinstance(f.dataType, T.TimestampType)]
    if origin.event_time in times:
        return origin.event_time
    return times[0] if times else None


class IntervalsCapture(Capture):
    """Carry one covering interval per source."""

    name = "intervals"

    def at_source(self, origin: Origin) -> Move:
        a, b, _ = origin.identity.columns(origin.schema)
        time = span_column(origin)
        timed = (origin.name,) if time else ()
        # A function of the time, not the time itself: Spark must not take it for the event time.
        micros = {n: F.expr(f"unix_micros({quote(time)})") for n in _names(timed)} if time else {}
        after = Spans((ID_A, ID_B, *micros), origin.identity.unique, (origin.name,), timed=timed)
        return Move(after, ({ID_A: F.expr(a), ID_B: F.expr(b), **micros},))

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        # Equal rows made from one row cannot be told apart, so the ids are not unique after this.
        after = replace(before, unique=False, repeats=frozenset(before.streams))
        return Move(after, (own_id([(ID_A, _LONG), (ID_B, _LONG), *by]),))

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        aggregates = {low(s): F.min(named(low(s))) for s in timed(before)}
        aggregates |= {high(s): F.max(named(high(s))) for s in timed(before)}
        after = _spans(before.streams, timed(before), unique=True)
        return Gathering(aggregates, Move(after, (own_id(groups.keys),)))

    def spread(self, before: Annotation, partition: Sequence[Column]) -> Move:
        from pyspark.sql import Window

        window = Window.partitionBy(*partition)
        lows = {low(s): F.min(named(low(s))).over(window) for s in timed(before)}
        highs = {high(s): F.max(named(high(s))).over(window) for s in timed(before)}
        return Move(replace(before, repeats=frozenset(before.streams)), ({**lows, **highs},))

    def pair(self, first: Annotation, second: Annotation) -> Move:
        own = own_id([(side(c), _LONG) for side in (left, right) for c in (ID_A, ID_B)])
        return self._together(first, second, own, unique=first.unique and second.unique)

    def witness(self, first: Annotation, second: Annotation) -> Move:
        own = {ID_A: named(left(ID_A)), ID_B: named(left(ID_B))}
        return self._together(first, second, own, unique=first.unique)

    def _together(
        self, first: Annotation, second: Annotation, own: dict[str, Column], *, unique: bool
    ) -> Move:
        streams, both = merged(first.streams, second.streams), merged(timed(first), timed(second))
        after = _spans(streams, both, unique=unique)
        joined = {name: _outermost(name, first, second) for name in _names(both)}
        return Move(after, ({**own, **joined},))

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        streams, both = merged(first.streams, second.streams), merged(timed(first), timed(second))
        after = _spans(streams, both, unique=first.unique and second.unique)
        moves = []
        for branch, side in enumerate((first, second)):
            missing = {n: F.lit(None).cast(_LONG) for n in _names(both) if n not in side.columns}
            own = own_id([(ID_A, _LONG), (ID_B, _LONG), (str(branch), _LONG)])
            moves.append(Move(after, ({**own, **missing},)))
        return moves[0], moves[1]

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        return Move(before)

    def pack(self, before: Annotation) -> Column:
        return F.to_json(F.struct(*[named(c) for c in before.columns]), JSON)

    def unpack(self, before: Annotation, packed: Column, by: Sequence[Typed]) -> Move:
        kind = T.StructType([T.StructField(c, _LONG) for c in before.columns])
        parsed = F.transform(packed, lambda one: F.from_json(one, kind, JSON))
        read: dict[str, Column] = {}
        for stream in timed(before):
            read[low(stream)] = F.array_min(F.transform(parsed, _field(low(stream))))
            read[high(stream)] = F.array_max(F.transform(parsed, _field(high(stream))))
        after = replace(before, unique=False, repeats=frozenset(before.streams))
        return Move(after, (own_id([(ids_text(parsed), T.StringType()), *by]), read))


INTERVALS = IntervalsCapture()


def timed(annotation: Annotation) -> tuple[str, ...]:
    """Name the streams of a frame that have a span."""
    return annotation.timed if isinstance(annotation, Spans) else ()


def merged(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Put two lists of names together, each name once."""
    return tuple(dict.fromkeys((*first, *second)))


def _names(streams: Sequence[str]) -> list[str]:
    return [name(s) for s in streams for name in (low, high)]


def _spans(streams: Sequence[str], spans: Sequence[str], *, unique: bool) -> Spans:
    columns = (ID_A, ID_B, *_names(spans))
    return Spans(columns, unique, tuple(streams), frozenset(streams), tuple(spans))


def _outermost(name: str, first: Annotation, second: Annotation) -> Column:
    sides = [
        named(side(name))
        for side, annotation in ((left, first), (right, second))
        if name in annotation.columns
    ]
    if len(sides) == 1:
        return sides[0]
    return F.least(*sides) if name.startswith(LOW) else F.greatest(*sides)


def _field(name: str) -> Callable[[Column], Column]:
    return lambda struct: struct[name]
