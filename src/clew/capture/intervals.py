"""Capture `intervals`: each row carries, per source, the span of time its source rows lie in.

Two numbers for each source, whatever the windows hold: the smallest and the largest event time of
the rows behind a row, in microseconds. They cover what contributed and may cover more, so they are
no answer. They say which part of the source to read again when somebody asks for one. Where a
source has no event time, any of its timestamps serves, and where it has none, all of it is read.

As little as possible goes into Spark's state. A row that stands for one source row carries its time
once. A window over the event time itself covers its rows, so its own ends serve and nothing is
aggregated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.plan.algebra import Annotation, Capture, Gathering, Move, left, right
from clew.plan.columns import ID_A, ID_B, JSON, ids_text, named, own_id, quote
from clew.plan.spans import span_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.plan.algebra import Field, Groups, Origin, Related, Typed

LOW = "_clew_lo_"
HIGH = "_clew_hi_"

_LONG = T.LongType()


@dataclass(frozen=True, slots=True)
class Spans(Annotation):
    """The spans of a frame.

    Attributes:
        timed: The streams that have one.
        moments: Those of them whose span has one end only, since the other is the same.
    """

    timed: tuple[str, ...] = ()
    moments: frozenset[str] = frozenset()


def low(stream: str) -> str:
    """Name the hidden column with the earliest time of a row's sources of one stream."""
    return LOW + stream


def high(stream: str) -> str:
    """Name the hidden column with the latest time of a row's sources of one stream."""
    return HIGH + stream


class IntervalsCapture(Capture):
    """Carry one covering interval per source."""

    name = "intervals"

    def at_source(self, origin: Origin) -> Move:
        return begun(origin, origin.name)

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        # Equal rows made from one row cannot be told apart, so the ids are not unique after this.
        after = replace(before, unique=False, repeats=frozenset(before.streams))
        return Move(after, (own_id([(ID_A, _LONG), (ID_B, _LONG), *by], finer=True),))

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        after = _spans(before.streams, timed(before), unique=True)
        own = own_id(groups.keys)
        if groups.within is not None and len(timed(before)) == 1:
            [stream] = timed(before)
            ends = {
                low(stream): F.expr(f"unix_micros({groups.within}.`start`)"),
                high(stream): F.expr(f"unix_micros({groups.within}.`end`) - 1"),
            }
            return Gathering({}, Move(after, ({**own, **ends},)))
        aggregates = {low(s): F.min(named(low(s))) for s in timed(before)}
        aggregates |= {high(s): F.max(named(last_of(before, s))) for s in timed(before)}
        return Gathering(aggregates, Move(after, (own,)))

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        window = partitions.window()
        lows = {low(s): F.min(named(low(s))).over(window) for s in timed(before)}
        highs = {high(s): F.max(named(last_of(before, s))).over(window) for s in timed(before)}
        after = _spans(before.streams, timed(before), unique=before.unique)
        return Move(after, ({**lows, **highs},))

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
        shared = frozenset(timed(first)) & frozenset(timed(second))
        after = _spans(streams, both, unique=unique, moments=_moments(first, second) - shared)
        ends = _ends(after, [(first, left), (second, right)])
        return Move(after, ({**own, **ends},))

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        streams, both = merged(first.streams, second.streams), merged(timed(first), timed(second))
        unique = first.unique and second.unique
        after = _spans(streams, both, unique=unique, moments=_moments(first, second))
        moves = []
        for branch, side in enumerate((first, second)):
            own = own_id([(ID_A, _LONG), (ID_B, _LONG), (str(branch), _LONG)])
            moves.append(Move(after, ({**own, **_ends(after, [(side, str)])},)))
        return moves[0], moves[1]

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        return Move(before)

    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        kind = T.StructType([T.StructField(c, _LONG) for c in before.columns])
        parsed = F.transform(packed, lambda one: F.from_json(one, kind, JSON))
        read: dict[str, Column] = {}
        for stream in timed(before):
            last = last_of(before, stream)
            read[low(stream)] = F.array_min(F.transform(parsed, _field(low(stream))))
            read[high(stream)] = F.array_max(F.transform(parsed, _field(last)))
        after = _spans(before.streams, timed(before), unique=False)
        return Move(after, (own_id([(ids_text(parsed), T.StringType()), *by]), read))

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        # Where the rows behind a row lie is not known, so the sources have no span from here on.
        streams = tuple(dict.fromkeys(s for side, _ in made.sides for s in side.streams))
        return made.with_ids(), _spans(streams, (), unique=True)


def begun(origin: Origin, stream: str) -> Move:
    """Give rows of a source their id, and a span of one moment under the name of a stream."""
    a, b, _ = origin.columns()
    time = span_column(origin)
    timed = (stream,) if time else ()
    # A function of the time, not the time itself: Spark must not take it for the event time.
    micros = {low(stream): F.expr(f"unix_micros({quote(time)})")} if time else {}
    after = Spans(
        (ID_A, ID_B, *micros),
        origin.identity.unique,
        (origin.name,),
        timed=timed,
        moments=frozenset(timed),
    )
    return Move(after, ({ID_A: F.expr(a), ID_B: F.expr(b), **micros},))


INTERVALS = IntervalsCapture()


def timed(annotation: Annotation) -> tuple[str, ...]:
    """Name the streams of a frame that have a span."""
    return annotation.timed if isinstance(annotation, Spans) else ()


def last_of(annotation: Annotation, stream: str) -> str:
    """Name the hidden column with the latest time of a stream: the earliest serves for a moment."""
    assert isinstance(annotation, Spans)
    return low(stream) if stream in annotation.moments else high(stream)


def merged(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Put two lists of names together, each name once."""
    return tuple(dict.fromkeys((*first, *second)))


def _moments(first: Annotation, second: Annotation) -> frozenset[str]:
    """Name the streams whose span has one end on every side that has one."""
    assert isinstance(first, Spans)
    assert isinstance(second, Spans)
    whole = {s for side in (first, second) for s in side.timed if s not in side.moments}
    return (first.moments | second.moments) - whole


def _ends(
    after: Spans, sides: Sequence[tuple[Annotation, Callable[[str], str]]]
) -> dict[str, Column]:
    """Take the ends of each span from the sides that have one; null where none has.

    Args:
        after: What is made.
        sides: The frames that rows come from, each with how its hidden columns are named now.
    """
    ends: dict[str, Column] = {}
    for stream in after.timed:
        having = [(side, name) for side, name in sides if stream in timed(side)]
        lows = [named(name(low(stream))) for _, name in having]
        highs = [named(name(last_of(side, stream))) for side, name in having]
        ends[low(stream)] = _of(F.least, lows)
        if stream not in after.moments:
            ends[high(stream)] = _of(F.greatest, highs)
    return ends


def _of(choose: Callable[..., Column], columns: Sequence[Column]) -> Column:
    """Choose among up to two columns."""
    if not columns:
        return F.lit(None).cast(_LONG)
    return columns[0] if len(columns) == 1 else choose(*columns)


def _spans(
    streams: Sequence[str],
    timed: Sequence[str],
    *,
    unique: bool,
    moments: frozenset[str] = frozenset(),
) -> Spans:
    ends = [n(s) for s in timed for n in ((low,) if s in moments else (low, high))]
    return Spans(
        (ID_A, ID_B, *ends), unique, tuple(streams), frozenset(streams), tuple(timed), moments
    )


def _field(name: str) -> Callable[[Column], Column]:
    return lambda struct: struct[name]
