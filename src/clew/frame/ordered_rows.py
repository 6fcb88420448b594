"""`OrderedRows`: what `inOrder` returns."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import ColumnError, GraphError
from clew.operators.machines import (
    BoundedSort,
    ClockWindow,
    CountWindow,
    Lookback,
    TimeWindow,
    ValueWindow,
    WindowJoin,
)
from clew.operators.ordered import Lane, Ordered, is_number, kind_of, ordered
from clew.operators.source import Source
from clew.plan.columns import WATERMARK
from clew.plan.duration import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from clew.frame.frame import TracedFrame
    from clew.operators.machines import Machine
    from clew.operators.ordered import Pairs
    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """Rows in order, waiting for a window.

    The order is by event time, then by content, then by id, among the rows of one key. On a stream
    a row takes its place once the watermark has passed it; rows that come later are left out, as
    Spark leaves them out of its own windows.
    """

    _node: Node
    _lane: Lane

    def countWindow(
        self, size: int, slide: int = 1, *, partial: bool = False, into: str = "rows"
    ) -> TracedFrame:
        """Make a row of the last `size` rows, after every `slide` rows.

        Args:
            size: How many rows a window has.
            slide: How many rows lie between the ends of two windows.
            partial: Begin with the first row, with the rows there are.
            into: The column that will hold the window's rows, in order.
        """
        _at_least(size, 1, "size")
        _at_least(slide, 1, "slide")
        return self._made("countWindow", CountWindow(size, slide, partial), into)

    def timeWindow(self, size: str, *, every: str | None = None, into: str = "rows") -> TracedFrame:
        """Make a row of all rows that are at most `size` old: with each row, or with each tick.

        Args:
            size: For how long a row is in the window, e.g. `"30 seconds"`.
            every: The time between two ticks of a clock; without it each row makes one.
            into: The column that will hold the window's rows, in order.
        """
        length = _length(size, "size")
        if every is None:
            return self._made("timeWindow", TimeWindow(length), into)
        return self._made("timeWindow", ClockWindow(length, _length(every, "every")), into)

    def valueWindow(
        self,
        column: str,
        size: str | float | Decimal,
        slide: str | float | Decimal | None = None,
        *,
        into: str = "rows",
    ) -> TracedFrame:
        """Make a row of rows that follow each other and differ little in a value.

        A window begins with a row and takes in those after it as long as they differ from it by
        less than `size`. The next begins with the first row that differs by `slide` or more.

        Args:
            column: The value: a number, or a time.
            size: How much rows of a window may differ; for a time a length, e.g. `"1 minute"`.
            slide: How far windows are apart; by default as far as they reach.
            into: The column that will hold the window's rows, in order.
        """
        kind = kind_of(self._node, column, "valueWindow")
        if not is_number(kind):
            msg = (
                f"`valueWindow` needs a number or a time, and `{column}` is {kind.simpleString()}."
            )
            raise ColumnError(msg)
        reach = _amount(size, kind, "size")
        step = reach if slide is None else _amount(slide, kind, "slide")
        return self._made("valueWindow", ValueWindow(reach, step), into, column)

    def boundedSort(self, by: str, slack: int, *, into: str = "sorted_at") -> TracedFrame:
        """Put rows in the order of a column, as far as a buffer of `slack` rows allows.

        With each row that comes once the buffer is full, the smallest goes.

        Args:
            by: The column.
            slack: How many rows are held back.
            into: The column that will hold the moment at which a row went. It is the event time of
                what follows, since the rows' own need not be in order any more.
        """
        _at_least(slack, 0, "slack")
        kind = kind_of(self._node, by, "boundedSort")
        if not is_number(kind) and not isinstance(kind, T.StringType):
            msg = f"`boundedSort` cannot compare `{by}`, which is {kind.simpleString()}."
            raise ColumnError(msg)
        return self._made("boundedSort", BoundedSort(slack, is_number(kind)), into, by)

    def join(
        self,
        other: OrderedRows,
        within: str | tuple[str, str] | None = None,
        *,
        rows: int | tuple[int, int] | None = None,
        on: Callable[[Column, Column], Column] | None = None,
        pairs: Pairs = "new",
        into: str = "pairs",
    ) -> TracedFrame:
        """Put rows of two frames together as they come.

        With each moment at which a row of either side comes, the rows that both sides then look
        back on are compared. Rows belong together if they have the same keys and meet `on`.

        Args:
            other: The other side, in order by as many keys.
            within: How far back each side looks in time; one length, or one for each side.
            rows: How many rows back each side looks; one number, or one for each side.
            on: A condition over a row of either side:
                `lambda left, right: left["kwh"] > right["kwh"]`.
            pairs: `"new"`: pairs with a row that came at the moment, so each pair once. `"all"`:
                all that there are at the moment.
            into: The column that will hold the pairs, each with `left` and `right`.
        """
        if (within is None) == (rows is None):
            msg = (
                "a join of rows in order looks back in time or by a number of rows.\n\n"
                'Write `within="10 seconds"` or `rows=100`.'
            )
            raise GraphError(msg)
        if len(self._lane.keys) != len(other._lane.keys):
            msg = (
                f"the sides of a join are in order by {len(self._lane.keys)} and "
                f"{len(other._lane.keys)} keys.\n\nGive both as many: rows with the same keys meet."
            )
            raise GraphError(msg)
        if pairs not in ("new", "all"):
            msg = f'`pairs` is "new" or "all"; got {pairs!r}.'
            raise GraphError(msg)
        machine = WindowJoin(*_lookbacks(within, rows))
        operator = Ordered(
            machine,
            (self._lane, other._lane),
            "join in order",
            into,
            on=on or _any_two,
            pairs=pairs,
        )
        return _traced(ordered([self._node, other._node], operator))

    def _made(
        self, name: str, machine: Machine, into: str, value: str | None = None
    ) -> TracedFrame:
        operator = Ordered(machine, (self._lane,), name, into, value)
        return _traced(ordered([self._node], operator))


def in_order(node: Node, keys: Sequence[str], time: str | None) -> OrderedRows:
    """Put the rows of a frame in order.

    Raises:
        ColumnError: It is not said by which time, and nothing else says.
    """
    return OrderedRows(node, Lane(tuple(keys), time or _event_time(node)))


def _event_time(node: Node) -> str:
    """Find the column that a watermark is on, or the event time that the sources share."""
    marked = [f.name for f in node.schema.fields if WATERMARK in f.metadata]
    sources = [n.operator for n in node.walk() if isinstance(n.operator, Source)]
    times = {each.origin.event_time for each in sources}
    found = marked or [t for t in times if t is not None and t in node.columns]
    if len(found) != 1:
        msg = (
            "it is not said by which time rows are put in order.\n\n"
            'Name it: `.inOrder("meter", time="ts")`.'
        )
        raise ColumnError(msg)
    return found[0]


def _traced(node: Node) -> TracedFrame:
    from clew.frame.frame import TracedFrame

    return TracedFrame(node)


def _any_two(left: Column, right: Column) -> Column:  # noqa: ARG001 (the keys say enough)
    return F.lit(True)


def _at_least(number: int, least: int, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        msg = f"`{name}` is a number of rows, {least} or more; got {number!r}."
        raise GraphError(msg)


def _length(text: str, name: str) -> int:
    found = micros(text) if isinstance(text, str) else None
    if not found:
        msg = f'`{name}` is a length of time such as "30 seconds"; got {text!r}.'
        raise GraphError(msg)
    return found


def _amount(given: str | float | Decimal, kind: T.DataType, name: str) -> Decimal:
    if isinstance(kind, T.TimestampType):
        return Decimal(_length(str(given), name))
    if isinstance(kind, T.DateType):
        return Decimal(_length(str(given), name)) / Decimal(86_400_000_000)
    try:
        found = Decimal(str(given))
    except InvalidOperation:
        found = Decimal(0)
    if not found > 0:
        msg = f"`{name}` is a number greater than 0; got {given!r}."
        raise GraphError(msg)
    return found


def _lookbacks(
    within: str | tuple[str, str] | None, rows: int | tuple[int, int] | None
) -> tuple[Lookback, Lookback]:
    if rows is not None:
        counts = rows if isinstance(rows, tuple) else (rows, rows)
        for each in counts:
            _at_least(each, 1, "rows")
        return Lookback(rows=counts[0]), Lookback(rows=counts[1])
    assert within is not None
    one, other = within if isinstance(within, tuple) else (within, within)
    return Lookback(time=_length(one, "within")), Lookback(time=_length(other, "within"))
