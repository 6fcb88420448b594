"""Capture `pointers`: each row points at the few rows it was made from directly.

GeneaLog's idea in the form that Spark allows. A row has its own id and a fixed number of pointers:
to a source row, or to a group of rows. What makes a row of many, an aggregation, leaves one pointer
to its group, which is a hash of the group's keys; the group's rows are in no chain, they are found
by computing the same hash for the rows that the aggregation read (`Level`). In between, rows are
made of a number of rows that the query alone decides: a join adds up the pointers of its sides, a
union keeps both sides' and leaves one of them empty. The covering span of each source comes along,
to say which part of it an unfolding has to read. A pointer that is the row's own id, as that of a
source row or of a group's one row, takes no column of its own until the row gets another id.

The same moves serve twice. While the query runs they carry pointers; when pointers are unfolded,
the part of the graph below a group is interpreted again, over the source as a table, and `levels`
then holds the rows of each group, with what was in them (`contents=True`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.intervals import IntervalsCapture, Spans
from clew.capture.sets import content, time_of
from clew.plan.algebra import Annotation, Gathering, Move, left, right
from clew.plan.columns import ID_A, ID_B, JSON, identify, named, segment_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.plan.algebra import Field, Groups, Members, Origin, Related, Typed

GROUP_A = "_clew_group_a"
GROUP_B = "_clew_group_b"
SESSION_FROM = "_clew_session_from"
SESSION_TO = "_clew_session_to"

_LONG = T.LongType()
_ONE = "_clew_one"


@dataclass(frozen=True, slots=True)
class Slot:
    """What a pointer points at.

    Attributes:
        kind: One row of a source or a named frame, the rows of one group, or those of one session
            of a group.
        target: The source's or frame's name, or the group's level.
        by_segment: The first half of the row's id is the hash of its segment's name.
    """

    kind: Literal["row", "group", "session"]
    target: str
    by_segment: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The numbers that make the pointer."""
        return ("a", "b", "from", "to") if self.kind == "session" else ("a", "b")


@dataclass(frozen=True, slots=True)
class Pointers(Spans):
    """The pointers of a frame.

    Attributes:
        slots: What they point at, in order.
        own: The numbers of those that are the row's own id.
        whole: The numbers of those that bring the content of the row that they point at.
    """

    slots: tuple[Slot, ...] = ()
    own: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Level:
    """The rows that an aggregation gathered, each with its group's id and its own pointers.

    A row stands there once for each group that it is in; `overlaps` tells if there may be several.

    Attributes:
        rows: The rows, with the first half of their group's id as `GROUP_A`.
        annotation: What they point at.
        overlaps: A row may be in several groups.
        second: The second half of the group's id. It is no column of `rows`: texts go through
            SHA-256 for it, which only rows whose first half is wanted are worth.
        behind: Hidden columns of `annotation` that are no columns of `rows` either, for the same
            reason, and how they are computed from those.
    """

    rows: DataFrame
    annotation: Pointers
    overlaps: bool
    second: Column
    behind: Mapping[str, Column] = field(default_factory=dict)


def pointer(number: int, part: str) -> str:
    """Name the hidden column that is made for a part of a pointer."""
    return f"_clew_p{number}_{part}"


def part_of(annotation: Pointers, number: int, part: str) -> str:
    """Name the hidden column that holds a part of a pointer: made for it, or the row's own id."""
    if number in annotation.own:
        return {"a": ID_A, "b": ID_B}[part]
    return pointer(number, part)


def carried(number: int) -> str:
    """Name the hidden column with the content of the row that a pointer points at."""
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
        _, _, segment = origin.columns()
        whole = [0] if self._contents else []
        slot = Slot("row", origin.name, origin.identity.by_segment)
        after = _pointers(plain.annotation, (slot,), [0], whole)
        if not whole:
            return Move(after, plain.steps)
        users = [(f.name, f.dataType) for f in origin.schema.fields]
        kept = _whole(segment, origin.event_time, users if origin.keep_content else [])
        return Move(after, (*plain.steps, {carried(0): kept}))

    def derive(self, before: Annotation, by: Sequence[Typed]) -> Move:
        assert isinstance(before, Pointers)
        plain = super().derive(before, by)
        # The pointers come first: they may be the id that the row has until now.
        after = _pointers(plain.annotation, before.slots, whole=before.whole)
        return Move(after, (_apart(before), *plain.steps))

    def gather(self, before: Annotation, groups: Groups) -> Gathering:
        plain = super().gather(before, groups)
        level = self._new_level(before, groups)
        if groups.session is None:
            after = _pointers(plain.after.annotation, (Slot("group", level),), [0])
            return Gathering(plain.aggregates, Move(after, plain.after.steps))
        # A row cannot tell which session it will be part of: sessions are found by their ends.
        a, b = identify([key for key in groups.keys if key[0] != groups.session])
        ends = {
            pointer(0, "a"): a,
            pointer(0, "b"): b,
            pointer(0, "from"): F.expr(f"unix_micros({groups.session}.`start`)"),
            pointer(0, "to"): F.expr(f"unix_micros({groups.session}.`end`)"),
        }
        after = _pointers(plain.after.annotation, (Slot("session", level),))
        return Gathering(plain.aggregates, Move(after, (*plain.after.steps, ends)))

    def spread(self, before: Annotation, partitions: Groups) -> Move:
        plain = super().spread(before, partitions)
        slot = Slot("group", self._new_level(before, partitions))
        a, b = identify(partitions.keys)
        after = _pointers(plain.annotation, (slot,))
        return Move(after, (*plain.steps, {pointer(0, "a"): a, pointer(0, "b"): b}))

    def relate(self, made: Related) -> tuple[DataFrame, Annotation]:
        df, plain = super().relate(made)
        slots = []
        for side, find in made.sides:
            assert isinstance(side, Pointers)
            slots.append(Slot("group", self._next_level()))
            if self._contents:
                self.levels[slots[-1].target] = _level(find(), side)
        return df, _pointers(plain, tuple(slots), range(len(slots)))

    def _next_level(self) -> str:
        self._gathered += 1
        return f"{self._node}.{self._gathered - 1}"

    def _new_level(self, before: Annotation, groups: Groups) -> str:
        """Name the level of some groups, and note their rows if they are looked for."""
        assert isinstance(before, Pointers)
        level = self._next_level()
        if self._contents:
            self.levels[level] = _level(groups.members(), before)
        return level

    def _together(
        self, first: Annotation, second: Annotation, own: dict[str, Column], *, unique: bool
    ) -> Move:
        assert isinstance(first, Pointers)
        assert isinstance(second, Pointers)
        plain = super()._together(first, second, own, unique=unique)
        count = len(first.slots)
        whole = [*first.whole, *[count + i for i in second.whole]]
        after = _pointers(plain.annotation, (*first.slots, *second.slots), whole=whole)
        moved = _renumbered(first, left, 0) | _renumbered(second, right, count)
        [step] = plain.steps
        return Move(after, ({**step, **moved},))

    def either(self, first: Annotation, second: Annotation) -> tuple[Move, Move]:
        assert isinstance(first, Pointers)
        assert isinstance(second, Pointers)
        plain = super().either(first, second)
        one, other = first.slots, second.slots
        places = _places(one, other)
        slots = (*one, *[s for s, p in zip(other, places, strict=True) if p >= len(one)])
        sides = ((plain[0], first, list(range(len(one)))), (plain[1], second, places))
        bare = {p for _, side, at in sides for i, p in enumerate(at) if i not in side.whole}
        whole = [p for p in range(len(slots)) if p not in bare]
        after = _pointers(plain[0].annotation, slots, whole=whole)
        moves = []
        for move, side, at in sides:
            filled = {c: F.lit(None) for c in after.columns if c.startswith("_clew_p")}
            filled = {c: v if c.endswith("_row") else v.cast(_LONG) for c, v in filled.items()}
            for i, p in enumerate(at):
                names = [(pointer(p, h), part_of(side, i, h)) for h in side.slots[i].parts]
                names += [(carried(p), carried(i))] if p in after.whole else []
                filled |= {to: named(c) for to, c in names}
            moves.append(Move(after, (filled, *move.steps)))
        return moves[0], moves[1]

    def mark(
        self, before: Annotation, name: str, columns: Sequence[Field], time: str | None
    ) -> Move:
        assert isinstance(before, Pointers)
        slots = (*before.slots, Slot("row", name))
        last = len(before.slots)
        whole = [*before.whole, *([last] if self._contents else [])]
        after = _pointers(before, slots, [*before.own, last], whole)
        after = replace(after, streams=(*before.streams, name))
        if not self._contents:
            return Move(after)
        return Move(after, ({carried(last): _whole("CAST(NULL AS STRING)", time, columns)},))

    def pack(self, before: Annotation, groups: Groups | None = None) -> Column:
        bare = _bare(before)
        if groups is None:
            return super().pack(bare)
        a, b = identify(groups.keys)
        group = [a.alias(GROUP_A), b.alias(GROUP_B)]
        kept = [named(c) for c in bare.columns if not c.startswith("_clew_p")]
        return F.to_json(F.struct(*kept, *group), JSON)

    def unpack(
        self, before: Annotation, packed: Column, by: Sequence[Typed], groups: Groups | None = None
    ) -> Move:
        bare = _bare(before)
        plain = super().unpack(bare, packed, by)
        slots = bare.slots
        read = {
            pointer(i, part): part_of(bare, i, part)
            for i, slot in enumerate(slots)
            for part in slot.parts
        }
        if groups is not None:
            slots = (Slot("group", self._new_level(before, groups)),)
            read = {pointer(0, "a"): GROUP_A, pointer(0, "b"): GROUP_B}
        kind = T.StructType([T.StructField(c, _LONG) for c in dict.fromkeys(read.values())])
        one = F.from_json(F.element_at(packed, 1), kind, JSON)
        after = _pointers(plain.annotation, slots)
        return Move(after, (*plain.steps, {to: one[name] for to, name in read.items()}))

    def assemble(
        self, before: Annotation, rows: DataFrame, packed: str, by: Sequence[Typed]
    ) -> Move:
        bare = _bare(before)
        plain = super().unpack(bare, named(packed), by)
        level = self._next_level()
        if self._contents:
            self.levels[level] = _listed(rows, plain, packed, bare)
        # The row's id is made of those in its list, so it stands for the list as well.
        after = _pointers(plain.annotation, (Slot("group", level),), [0])
        return Move(replace(after, unique=before.unique), plain.steps)


def _pointers(
    plain: Annotation,
    slots: tuple[Slot, ...],
    own: Collection[int] = (),
    whole: Collection[int] = (),
) -> Pointers:
    """Describe rows with other pointers; see `Pointers`."""
    assert isinstance(plain, Spans)
    columns = [c for c in plain.columns if not c.startswith("_clew_p")]
    for i, slot in enumerate(slots):
        columns += [pointer(i, part) for part in slot.parts if i not in own]
        columns += [carried(i)] if i in whole else []
    return Pointers(
        tuple(columns),
        plain.unique,
        plain.streams,
        plain.repeats,
        plain.timed,
        plain.moments,
        slots,
        frozenset(own),
        frozenset(whole),
    )


def _whole(segment: str, time: str | None, columns: Sequence[Field]) -> Column:
    """Put what the store keeps of a row into one value."""
    packed, _ = content(columns)
    return F.expr(f"struct({segment} AS segment, {time_of(time)} AS `time`, {packed} AS `row`)")


def _apart(annotation: Pointers) -> dict[str, Column]:
    """Give pointers that are the row's own id columns of their own."""
    halves = (("a", ID_A), ("b", ID_B))
    return {pointer(i, part): named(c) for i in sorted(annotation.own) for part, c in halves}


def _level(members: Members, annotation: Pointers) -> Level:
    a, b = identify(members.keys)
    rows = members.rows.withColumn(GROUP_A, a)
    if members.session is not None:
        ends = {SESSION_FROM: "start", SESSION_TO: "end"}
        rows = rows.withColumns(
            {c: F.expr(f"unix_micros({members.session}.`{end}`)") for c, end in ends.items()}
        )
    behind = _behind(annotation)
    return Level(rows.drop(*behind), annotation, members.overlaps, b, behind)


def _behind(annotation: Pointers) -> dict[str, Column]:
    """Say which columns can wait until it is known which rows are wanted.

    The name of a segment, mostly the path of a file, comes along with what is kept of a row that
    is still a source row; so its hash, by SHA-256, need not be computed for every row.
    """
    if annotation.own != {0} or annotation.whole != {0} or len(annotation.slots) != 1:
        return {}
    [slot] = annotation.slots
    if not slot.by_segment:
        return {}
    return {ID_A: F.expr(segment_hash(f"{carried(0)}.segment"))}


def _listed(rows: DataFrame, ids: Move, packed: str, bare: Pointers) -> Level:
    """Find the rows of a level in the lists that its groups were made of."""
    made = ids.apply(rows, ())
    kind = T.StructType([T.StructField(c, _LONG) for c in bare.columns])
    group = [named(ID_A).alias(GROUP_A), named(ID_B).alias(GROUP_B)]
    each = made.select(*group, F.explode(named(packed)).alias(_ONE))
    read = each.withColumn(_ONE, F.from_json(named(_ONE), kind, JSON))
    rows = read.select(GROUP_A, GROUP_B, f"{_ONE}.*")
    return Level(rows, bare, overlaps=True, second=named(GROUP_B))


def _bare(annotation: Annotation) -> Pointers:
    """Leave the contents behind: a user's function should not have to carry them."""
    assert isinstance(annotation, Pointers)
    return _pointers(annotation, annotation.slots, annotation.own)


def _renumbered(annotation: Pointers, side: Callable[[str], str], first: int) -> dict[str, Column]:
    moved: dict[str, Column] = {}
    for i, slot in enumerate(annotation.slots):
        for part in slot.parts:
            moved[pointer(first + i, part)] = named(side(part_of(annotation, i, part)))
        if i in annotation.whole:
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
