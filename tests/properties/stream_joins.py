"""Joins of a running stream: with a table, and with another stream."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from properties.batch_model import TableEvaluation
from properties.free_choices import settle
from properties.model_rows import MILLI, ModelRow, Prov, all_of
from properties.optimizer import event_times
from properties.row_pairs import PairMaker, in_time, join_tables
from properties.stream_operators import Operator, Stateful, Tick, is_past

if TYPE_CHECKING:
    from properties.operator_tree import Join, Node
    from properties.row_form import Row, Tables


class StaticJoin(Operator):
    """Joins each micro-batch with a table."""

    def __init__(self, node: Join, left: Operator, right: Operator) -> None:
        super().__init__(left, right)
        self._node = node

    def run(self, tick: Tick) -> list[ModelRow]:
        tables = (op.run(tick) for op in self.inputs if isinstance(op, TableInput))
        if self._node.how in ("inner", "leftsemi") and not all(tables):
            return []  # Spark does not even read the stream then, so watermarks stand still.
        left, right = (settle(op.run(tick)) for op in self.inputs)
        return join_tables(self._node, left, right)


class TableInput(Operator):
    """A static source with the filters on it; the same rows in every micro-batch."""

    def __init__(self, node: Node, tables: Tables) -> None:
        super().__init__()
        self._rows = TableEvaluation(tables).rows(node)

    def run(self, tick: Tick) -> list[ModelRow]:
        return self._rows


@dataclass
class _Held:
    """A row in a join's state, and whether it has found a partner."""

    row: ModelRow
    matched: bool


class StreamJoin(Stateful):
    """Joins two streams; rows wait in state until the watermark rules further partners out."""

    def __init__(self, node: Join, left: Operator, right: Operator) -> None:
        super().__init__(left, right)
        self._node = node
        self._pairs = PairMaker(node)
        self._times = (event_times(node.left)[0], event_times(node.right)[0])
        timed = [
            key for key in node.keys if key in (*event_times(node.left), *event_times(node.right))
        ]
        self._timed_key = timed[0] if timed else None
        self._held: tuple[list[_Held], list[_Held]] = ([], [])

    def run(self, tick: Tick) -> list[ModelRow]:
        late = self.late(tick)
        left, right = (
            [row for row in settle(op.run(tick)) if not is_past(row.values[time], late)]
            for op, time in zip(self.inputs, self._times, strict=True)
        )
        found = (
            self._semi(left, right) if self._node.how == "leftsemi" else self._match(left, right)
        )
        return found + self._throw_away(self.input_ms(tick.evict_ms))

    def _fits(self, left: Row, right: Row) -> bool:
        # Keys are compared as bytes, so null equals null here, unlike in SQL.
        same = all(left[key] == right[key] for key in self._node.keys)
        return same and in_time(self._node, left, right)

    def _match(self, left: list[ModelRow], right: list[ModelRow]) -> list[ModelRow]:
        mine, theirs = self._held
        found = []
        arrived = [_Held(row, matched=False) for row in left]
        for held in arrived:
            found += self._meet([held], theirs)
        mine += arrived
        for row in right:
            held = _Held(row, matched=False)
            found += self._meet(mine, [held])
            theirs.append(held)
        return found

    def _meet(self, left: list[_Held], right: list[_Held]) -> list[ModelRow]:
        found = []
        for one, two in itertools.product(left, right):
            if self._fits(one.row.values, two.row.values):
                one.matched = two.matched = True
                found.append(self._pairs.both(one.row, two.row))
        return found

    def _semi(self, left: list[ModelRow], right: list[ModelRow]) -> list[ModelRow]:
        """Return each left row once, in the batch in which it first has a partner."""
        mine, theirs = self._held
        theirs += [_Held(row, matched=False) for row in right]
        mine += [_Held(row, matched=False) for row in left]
        found = []
        for held in mine:
            partners = [h.row for h in theirs if self._fits(held.row.values, h.row.values)]
            if partners and not held.matched:
                held.matched = True
                several = Prov(some_of=frozenset([tuple(dict.fromkeys(p.refs for p in partners))]))
                prov = all_of([held.row.prov, several])
                found.append(ModelRow(self._pairs.left_only(held.row).values, prov))
        return found

    def _throw_away(self, evict_ms: int) -> list[ModelRow]:
        """Forget rows that can have no more partners; an outer join returns the lonely ones."""
        found = []
        makers = (self._pairs.left_only, self._pairs.right_only)
        outer = (("left", "full"), ("right", "full"))
        for side, bound in enumerate(self._bounds(evict_ms)):
            gone = [h for h in self._held[side] if self._is_done(side, h.row.values, bound)]
            self._held[side][:] = [h for h in self._held[side] if h not in gone]
            if self._node.how in outer[side]:
                found += [makers[side](h.row) for h in gone if not h.matched]
        return found

    def _is_done(self, side: int, row: Row, bound_ms: int | None) -> bool:
        value = row[self._times[side] if self._timed_key is None else self._timed_key]
        return bound_ms is not None and is_past(value, bound_ms * MILLI)

    def _bounds(self, input_ms: int) -> tuple[int | None, int | None]:
        """Tell up to which event time (ms) the left and the right rows are done."""
        low, high = self._node.low_seconds, self._node.high_seconds
        if self._timed_key is not None:
            return input_ms, input_ms
        # One millisecond less than the bound: the bound itself may still find a partner.
        left = None if high is None else input_ms - high * 1000 - 1
        right = None if low is None else input_ms + low * 1000 - 1
        return left, right

    def reaches(self, origin_ms: int) -> int | None:
        input_ms = super().reaches(origin_ms)
        if input_ms is None:
            return None
        return min(ms for ms in (*self._bounds(input_ms), input_ms) if ms is not None)
