"""What each window does with rows that come one after the other.

A machine is given the rows of one key, in order, and says which results are due. It knows nothing
of Spark: the same machine runs inside a stream, over a table, and in the tests. What it has to
remember is plain data that JSON can hold, so that it survives a restart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

State = dict[str, Any]


class Member(NamedTuple):
    """A row on its way through a window.

    Attributes:
        time: Its event time, in microseconds.
        row: Its content, as text.
        note: Its annotation, as text; for this module just something that comes along.
        lane: The input that it came from.
        value: What value windows and sorting look at, as text; None for null.
    """

    time: int
    row: str
    note: str = ""
    lane: int = 0
    value: str | None = None


class Due(NamedTuple):
    """A result: the moment it is of, and the rows that it is made from, in order."""

    at: int
    members: Sequence[Member]


class Machine(ABC):
    """A window, or whatever else takes rows in order."""

    @abstractmethod
    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        """Take rows in and yield what is due.

        Args:
            state: What was remembered, empty at first; it is changed.
            members: The next rows, in order.
            until: The moment up to which all rows are there; None if there are no more at all.
        """

    def next_due(self, state: State) -> int | None:
        """Say at which moment something is to be done even if no row comes; None if nothing is."""
        return None

    def is_over(self, state: State) -> bool:
        """Tell whether nothing is remembered that could ever matter."""
        return False


def in_order(members: Iterable[Member]) -> list[Member]:
    """Put rows in order: by event time, then by content, then by id.

    Content comes before the id so that a query without provenance, where rows have no id, gives
    the same; rows that are equal in all columns are told apart by the id, which the note begins
    with.
    """
    return sorted(members, key=lambda m: (m.time, m.lane, m.row, m.note))


@dataclass(frozen=True, slots=True)
class CountWindow(Machine):
    """The last `size` rows, after every `slide` rows.

    Attributes:
        size: How many rows a window has.
        slide: How many rows lie between the ends of windows that follow each other.
        partial: Windows that begin before the first row are due as well, with the rows there are.
    """

    size: int
    slide: int = 1
    partial: bool = False

    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        held = deque(_read(state), maxlen=self.size)
        count = state.get("count", 0)
        first = self.slide if self.partial else self.size
        for member in members:
            held.append(member)
            count += 1
            if count >= first and (count - first) % self.slide == 0:
                yield Due(member.time, tuple(held))
        state.update(held=list(held), count=count)


@dataclass(frozen=True, slots=True)
class TimeWindow(Machine):
    """With each row, all rows up to it that are at most `size` older."""

    size: int

    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        held = deque(_read(state))
        for member in members:
            held.append(member)
            _forget(held, member.time - self.size)
            yield Due(member.time, tuple(held))
        _forget_until(held, until, self.size)
        state["held"] = list(held)

    def next_due(self, state: State) -> int | None:
        # By then no row that comes can look back on those that are there.
        return _last(state) + self.size if state.get("held") else None

    def is_over(self, state: State) -> bool:
        return not state["held"]


@dataclass(frozen=True, slots=True)
class ClockWindow(Machine):
    """With each tick of a clock, all rows up to it that are at most `size` older.

    Ticks are at multiples of `every` since 1970. One that has no row to look back on is not due.
    """

    size: int
    every: int

    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        held = deque(_read(state))
        for member in members:
            # Every tick before this row has seen all of its rows.
            yield from self._ticks(state, held, member.time - 1)
            if not held:
                state["next"] = -(-member.time // self.every) * self.every
            held.append(member)
        yield from self._ticks(state, held, until)
        state["held"] = list(held)

    def _ticks(self, state: State, held: deque[Member], until: int | None) -> Iterator[Due]:
        while held and (until is None or state["next"] <= until):
            tick = state["next"]
            _forget(held, tick - self.size)
            if held:
                yield Due(tick, tuple(held))
                state["next"] = tick + self.every

    def next_due(self, state: State) -> int | None:
        return state["next"] if state.get("held") else None

    def is_over(self, state: State) -> bool:
        return not state["held"]


@dataclass(frozen=True, slots=True)
class ValueWindow(Machine):
    """Rows that follow each other and differ by less than `size` from the first, in some value.

    The next window begins with the first row that differs from the beginning of the last by
    `slide` or more. A window is due once a row comes that is not in it. Rows without a value are
    in none.
    """

    size: Decimal
    slide: Decimal

    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        windows = [
            (Decimal(head), [Member(*m) for m in held]) for head, held in state.get("open", [])
        ]
        last = Decimal(state["last"]) if "last" in state else None
        for member in members:
            value = _number(member.value)
            if value is None:
                continue
            still = []
            for head, held in windows:
                if _gap(value, head) < self.size:
                    held.append(member)
                    still.append((head, held))
                else:
                    yield Due(member.time, tuple(held))
            if last is None or _gap(value, last) >= self.slide:
                last = value
                still.append((value, [member]))
            windows = still
        state["open"] = [(str(head), held) for head, held in windows]
        if last is not None:
            state["last"] = str(last)


@dataclass(frozen=True, slots=True)
class BoundedSort(Machine):
    """Rows in the order of some value, as far as a buffer of `slack` rows allows.

    With each row that comes once the buffer is full, the smallest goes. Nulls are smallest and
    not-a-number is largest, as in Spark; among equals, the one that came first.
    """

    slack: int
    is_number: bool

    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        held = list(_read(state))
        for member in members:
            held.append(member)
            if len(held) > self.slack:
                smallest = min(range(len(held)), key=lambda i: (self._rank(held[i].value), i))
                yield Due(member.time, (held.pop(smallest),))
        state["held"] = held

    def _rank(self, value: str | None) -> tuple[Any, ...]:
        if value is None:
            return (0,)
        if not self.is_number:
            return (1, value)
        number = _number(value)
        return (2,) if number is None else (1, number)


@dataclass(frozen=True, slots=True)
class Lookback:
    """How far one input of a join looks back: a number of rows, or a length of time."""

    rows: int | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class WindowJoin(Machine):
    """With each moment at which a row comes, the rows that either input then looks back on.

    Which of them belong together is decided further on. Rows of one moment come together, so that
    it does not matter which is taken first.
    """

    left: Lookback
    right: Lookback

    def take(self, state: State, members: Sequence[Member], until: int | None) -> Iterator[Due]:
        lanes = [deque(_read(state, name)) for name in ("left", "right")]
        for time, together in groupby(members, key=lambda m: m.time):
            for member in together:
                lanes[member.lane].append(member)
            for held, side in zip(lanes, (self.left, self.right), strict=True):
                if side.time is not None:
                    _forget(held, time - side.time)
                while side.rows is not None and len(held) > side.rows:
                    held.popleft()
            if all(lanes):
                yield Due(time, (*lanes[0], *lanes[1]))
        for held, side in zip(lanes, (self.left, self.right), strict=True):
            if side.time is not None:
                _forget_until(held, until, side.time)
        state.update(left=list(lanes[0]), right=list(lanes[1]))

    def next_due(self, state: State) -> int | None:
        sides = (("left", self.left), ("right", self.right))
        times = [
            _last(state, name) + side.time
            for name, side in sides
            if side.time is not None and state.get(name)
        ]
        return max(times, default=None)

    def is_over(self, state: State) -> bool:
        return not state["left"] and not state["right"]


def _read(state: State, name: str = "held") -> Iterator[Member]:
    return (Member(*each) for each in state.get(name, []))


def _forget(held: deque[Member], before: int) -> None:
    """Leave behind the rows before some moment; they are in order."""
    while held and held[0].time < before:
        held.popleft()


def _forget_until(held: deque[Member], until: int | None, size: int) -> None:
    """Leave behind what a row that comes after some moment cannot look back on."""
    if until is not None:
        _forget(held, until - size + 1)


def _last(state: State, name: str = "held") -> int:
    """Return the time of the last row that is remembered."""
    time: int = state[name][-1][0]
    return time


def _gap(one: Decimal, other: Decimal) -> Decimal:
    # Infinity less infinity is no number.
    return Decimal(0) if one == other else abs(one - other)


def _number(text: str | None) -> Decimal | None:
    if text is None:
        return None
    number = Decimal(text)
    return None if number.is_nan() else number
