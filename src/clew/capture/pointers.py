"""Capture `pointers`: each row points at the few rows it was made from directly.

GeneaLog's idea in the form that Spark allows. A row has its own id and a fixed number of pointers:
to a source row, or to a group of rows. What makes a row of many, an aggregation, leaves one pointer
to its group, which is a hash of the group's keys; the group's rows are in no chain, they are found
by computing the same hash for the rows that the aggregation read (`Level`). In between, rows are
made of a number of rows that the query alone decides: a join adds up the pointers of its sides, a
union keeps both sides' and leaves one of them empty. The covering span of each source comes along,
to say which part of it an unfolding has to read.

The same moves serve twice. While the query runs they carry pointers; when pointers are unfolded,
the part of the graph below a group is interpreted again, over the source as a table, and `levels`
then holds the rows of each group, with what was in them (`contents=True`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.algebra import Annotation, Gathering, Move, left, right
from clew.capture.intervals import IntervalsCapture, Spans, timed
from clew.capture.sets import content, time_of
from clew.graph.columns import ID_A, ID_B, JSON, identify, ids_text, named, own_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.capture.algebra import Field, Groups, Members, Origin, Typed

GROUP_A = "_clew_group_a"
GROUP_B = "_clew_group_b"
SESSION_FROM = "_clew_session_from"
SESSION_TO = "_clew_session_to"

_LONG = T.LongType()


@dataclass(frozen=True, slots=True)
class Slot:
    """What a pointer points at.

    Attributes:
        kind: One source row, the rows of one group, or those of one session of a group.
        target: The source's name, or the group's level.
    """

    kind: Literal["row", "group", "session"]
    target: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The numbers that make the pointer."""
        return ("a", "b", "from", "to") if self.kind == "session" else ("a", "b")


@dataclass(frozen=True, slots=True)
class Pointers(Spans):
    """The pointers of a frame; its hidden columns hold them in this order."""

    slots: tuple[Slot, ...] = ()
    contents: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """The rows that an aggregation gathered, each with its group's id and its own pointers.

    A row stands there once for each group that it is in; `overlaps` tells if there may be several.
    """

    rows: DataFrame
    annotation: Pointers
    overlaps: bool = True


def pointer(number: int, part: str) -> str:
    """Name the hidden column that holds a part of a pointer."""
    return f"_clew_p{number}_{part}"


def carried(number: int) -> str:
    """Name the hidden column with the content of the source row that a pointer points at."""
    return f"_clew_p{number}_row"


class PointersCapture(IntervalsCapture):
    """Carry pointers; one object for each interpretation of a graph, since it notes the levels."""

    name = "pointers"

    def __init__(self, *, contents: bool = False) -> None:
        self.levels: dict[str, Level] = {}
        self._contents = contents
        self._node = 0
        self._gathered = 0

    def enter(self, node: int) -> None:
        self._node, self._gathered = node, 0

    def at_source(self, origin: Origin) -> Move:
        plain = super().at_source(origin)
        _, _, segment = origin.identity.columns(origin.schema)
        after = _pointers(plain.annotation, (Slot("row", origin.name),), contents=self._contents)
        own: dict[str, Column] = {pointer(0, "a"): named(ID_A), pointer(0, "b"): named(ID_B)}
        if self._contents:
            users = [(f.name, f.dataType) for f in origin.schema.fields]
            packed, _ = content(users if origin.keep_content else [])
            time = time_of(origin.event_time)
            own[carried(0)] = F.expr(
                f"struct({segment} AS segment, {time} AS `time`, {packed} AS `row`)"
            )
        return Move(after, (*plain.steps, own))

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        assert isinstance(before, Pointers)
        plain = super().gather(before, groups)
        level = f"{self._node}.{self._gathered}"
        self._gathered += 1
        if self._contents:
            self.levels[level] = _level(groups.members(), before)
        slot = Slot("group" if groups.session is None else "session", level)
        after = _pointers(plain.after.annotation, (slot,), contents=self._contents)
        group = {pointer(0, "a"): named(ID_A), pointer(0, "b"): named(ID_B)}
        if groups.session is not None:
            # A row cannot tell which session it will be part of: sessions are found by their ends.
            a, b = identify([key for key in groups.keys if key[0] != groups.session])
            group = {
                pointer(0, "a"): a,
                pointer(0, "b"): b,
                pointer(0, "from"): F.expr(f"unix_micros({groups.session}.`start`)"),
                pointer(0, "to"): F.expr(f"unix_micros({groups.session}.`end`)"),
            }
        return Gathering(plain.aggregates, Move(after, (*plain.after.steps, group)))

    def _together(
        self, first: Annotation, second: Annotation, own: dict[str, Column], *, unique: bool
    ) -> Move:
        plain = super()._together(first, second, own, unique=unique)
        one, other = _slots(first), _slots(second)
        after = _pointers(plain.annotation, (*one, *other), contents=self._contents)
        moved = _renumbered(first, left, 0) | _renumbered(second, right, len(one))
        [step] = plain.steps
        return Move(after, ({**step, **moved},))

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        plain = super().either(first, second)
        one, other = _slots(first), _slots(second)
        places = _places(one, other)
        slots = (*one, *[s for s, p in zip(other, places, strict=True) if p >= len(one)])
        after = _pointers(plain[0].annotation, slots, contents=self._contents)
        moves = []
        for move, side, at in (
            (plain[0], first, list(range(len(one)))),
            (plain[1], second, places),
        ):
            filled = {c: F.lit(None) for c in after.columns if c.startswith("_clew_p")}
            filled = {c: v if c.endswith("_row") else v.cast(_LONG) for c, v in filled.items()}
            for i, p in enumerate(at):
                names = [(pointer(p, h), pointer(i, h)) for h in _slots(side)[i].parts]
                names += [(carried(p), carried(i))]
                filled |= {to: named(c) for to, c in names if c in side.columns}
            moves.append(Move(after, (*move.steps, filled)))
        return moves[0], moves[1]

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        return Move(before)

    def pack(self, before: Annotation) -> Column:
        return super().pack(_bare(before))

    def unpack(self, before: Annotation, packed: Column, by: Sequence[Typed]) -> Move:
        before = _bare(before)
        kind = T.StructType([T.StructField(c, _LONG) for c in before.columns])
        parsed = F.transform(packed, lambda one: F.from_json(one, kind, JSON))
        plain = super().unpack(before, packed, by)
        one = F.element_at(parsed, 1)
        names = [pointer(i, part) for i, slot in enumerate(before.slots) for part in slot.parts]
        own = own_id([(ids_text(parsed), T.StringType()), *by])
        read = {name: one[name] for name in names}
        after = replace(before, unique=False, repeats=frozenset(before.streams))
        return Move(after, (own, {**plain.steps[1], **read}))


def _level(members: Members, annotation: Pointers) -> Level:
    a, b = identify(members.keys)
    rows = members.rows.withColumns({GROUP_A: a, GROUP_B: b})
    if members.session is not None:
        ends = {SESSION_FROM: "start", SESSION_TO: "end"}
        rows = rows.withColumns(
            {c: F.expr(f"unix_micros({members.session}.`{end}`)") for c, end in ends.items()}
        )
    return Level(rows, annotation, members.overlaps)


def _bare(annotation: Annotation) -> Pointers:
    """Leave the contents behind: a user's function should not have to carry them."""
    assert isinstance(annotation, Pointers)
    kept = tuple(c for c in annotation.columns if not c.endswith("_row"))
    return replace(annotation, columns=kept)


def _slots(annotation: Annotation) -> tuple[Slot, ...]:
    assert isinstance(annotation, Pointers)
    return annotation.slots


def _pointers(plain: Annotation, slots: tuple[Slot, ...], *, contents: bool) -> Pointers:
    columns = [c for c in plain.columns if not c.startswith("_clew_p")]
    for i, slot in enumerate(slots):
        columns += [pointer(i, part) for part in slot.parts]
        if contents and slot.kind == "row":
            columns.append(carried(i))
    return Pointers(
        tuple(columns), plain.unique, plain.streams, plain.repeats, timed(plain), slots, contents
    )


def _renumbered(
    annotation: Annotation, side: Callable[[str], str], first: int
) -> dict[str, Column]:
    moved: dict[str, Column] = {}
    for i, slot in enumerate(_slots(annotation)):
        for part in slot.parts:
            moved[pointer(first + i, part)] = named(side(pointer(i, part)))
        if carried(i) in annotation.columns and slot.kind == "row":
            moved[carried(first + i)] = named(side(carried(i)))
    return moved


def _places(one: Sequence[Slot], other: Sequence[Slot]) -> list[int]:
    """Say where the second side's pointers go: beside their like, or behind all others."""
    free: dict[Slot, list[int]] = {}
    for i, slot in enumerate(one):
        free.setdefault(slot, []).append(i)
    places, last = [], len(one)
    for slot in other:
        if free.get(slot):
            places.append(free[slot].pop(0))
        else:
            places.append(last)
            last += 1
    return places
