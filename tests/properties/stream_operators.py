"""Operators of a running stream that have one input, each with its state and its watermark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from properties.evaluation import narrow_rows
from properties.free_choices import group_by, keep_one, settle
from properties.model_rows import MILLI, ModelRow, Path, World, any_of
from properties.optimizer import MarkedBy, event_times
from properties.row_form import SECOND
from properties.row_groups import Group, group_rows, merge_sessions, summary_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from properties.operator_tree import Aggregate, Node


@dataclass(frozen=True)
class Tick:
    """One micro-batch: its rows, and the watermarks (ms) for late rows and for eviction."""

    number: int
    inputs: Mapping[str, list[ModelRow]]
    late_ms: int
    evict_ms: int


class Operator:
    """A running operator. The watermark it works with is what its inputs let through."""

    def __init__(self, *inputs: Operator) -> None:
        self.inputs = inputs

    def run(self, tick: Tick) -> list[ModelRow]:
        raise NotImplementedError

    def reaches(self, origin_ms: int) -> int | None:
        """Tell the watermark behind this operator, given the query's; `None` if it has none."""
        found = [ms for op in self.inputs if (ms := op.reaches(origin_ms)) is not None]
        return min(found, default=None)

    def wants_another(self, before_ms: int, now_ms: int) -> bool:
        """Tell whether a batch without data would change this operator's state."""
        return False

    def all(self) -> Iterator[Operator]:
        yield self
        for op in self.inputs:
            yield from op.all()


class Input(Operator):
    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source

    def run(self, tick: Tick) -> list[ModelRow]:
        return tick.inputs.get(self._source, [])


class Rowwise(Operator):
    def __init__(self, node: Node, child: Operator) -> None:
        super().__init__(child)
        self._node = node

    def run(self, tick: Tick) -> list[ModelRow]:
        return narrow_rows(self._node, self.inputs[0].run(tick))


class BothInputs(Operator):
    def run(self, tick: Tick) -> list[ModelRow]:
        return [row for op in self.inputs for row in op.run(tick)]


class Mark(Operator):
    """A watermark. `seen_ms` is the largest event time of the batch, `None` for no rows."""

    def __init__(self, node: MarkedBy, child: Operator) -> None:
        super().__init__(child)
        self.node = node
        self.seen_ms: int | None = None

    def run(self, tick: Tick) -> list[ModelRow]:
        rows = self.inputs[0].run(tick)
        times = [(row.values[self.node.column] or 0) // MILLI for row in rows]
        self.seen_ms = max(times, default=None)
        return rows

    def reaches(self, origin_ms: int) -> int | None:
        return origin_ms


class Stateful(Operator):
    """An operator with state, which has an input watermark of its own."""

    def input_ms(self, origin_ms: int) -> int:
        # Spark does not ask the operators while the query's watermark is 0.
        found = super().reaches(origin_ms) if origin_ms else 0
        return max(found or 0, 0)

    def late(self, tick: Tick) -> int:
        return self.input_ms(tick.late_ms) * MILLI

    def evict(self, tick: Tick) -> int:
        return self.input_ms(tick.evict_ms) * MILLI

    def wants_another(self, before_ms: int, now_ms: int) -> bool:
        return self.input_ms(now_ms) > self.input_ms(before_ms)


def is_past(value: Any, watermark: int) -> bool:
    """Tell whether an event time, or a window's end, is at or below a watermark."""
    at = value[1] if isinstance(value, tuple) else value
    return at is not None and at <= watermark


class Aggregating(Stateful):
    """Keeps each group until the watermark passes its window (or its event time)."""

    def __init__(self, node: Aggregate, child: Operator) -> None:
        super().__init__(child)
        self._node = node
        self._time = 0
        if node.window is None:
            times = event_times(node.child)
            self._time = next(i for i, key in enumerate(node.keys) if key in times)
        self._groups: dict[Group, list[ModelRow]] = {}

    def run(self, tick: Tick) -> list[ModelRow]:
        late, evict = self.late(tick), self.evict(tick)
        rows = settle(self.inputs[0].run(tick))
        arrived = [(g, row) for g, row in group_rows(self._node, rows) if not self._past(g, late)]
        self._add(arrived)
        done = [group for group in self._groups if self._past(group, evict)]
        return [summary_row(self._node, group, self._groups.pop(group)) for group in done]

    def _past(self, group: Group, watermark: int) -> bool:
        return is_past(group[self._time], watermark)

    def _add(self, arrived: Iterable[tuple[Group, ModelRow]]) -> None:
        if self._node.window is not None and self._node.window.session:
            sessions = [*self._groups.items(), *((group, [row]) for group, row in arrived)]
            self._groups = dict(merge_sessions(sessions))
        else:
            for group, row in arrived:
                self._groups.setdefault(group, []).append(row)


class Deduplicating(Stateful):
    """Lets the first row of each key through; among rows of one batch, any one."""

    def __init__(
        self, number: int, keys: tuple[str, ...], time: str | None, child: Operator
    ) -> None:
        super().__init__(child)
        self._number = number
        self._keys = keys
        self._time = time
        self._seen: set[Group] = set()
        self._choices: dict[tuple[Any, ...], tuple[Path, ...]] = {}

    def run(self, tick: Tick) -> list[ModelRow]:
        found = []
        for key, group in self._arrivals(tick).items():
            if key not in self._seen:
                self._seen.add(key)
                slot = (self._number, tick.number, key)
                self._choices[slot] = tuple((i,) for i in range(len(group)))
                found += keep_one(slot, group)
        if self._time in self._keys:
            at, evict = self._keys.index(self._time), self.evict(tick)
            self._seen = {key for key in self._seen if not is_past(key[at], evict)}
        return found

    def _arrivals(self, tick: Tick) -> dict[Group, list[ModelRow]]:
        rows, late = settle(self.inputs[0].run(tick)), self.late(tick)
        if self._time is not None:
            rows = [row for row in rows if not is_past(row.values[self._time], late)]
        return group_by(rows, self._keys)

    def choices(self) -> dict[tuple[Any, ...], tuple[Path, ...]]:
        """List, for each place where Spark chooses, the ways it may go."""
        return self._choices


class DeduplicatingWithin(Deduplicating):
    """Forgets a key some time after the row that was kept, so choices have consequences.

    For each key it follows every way that the choices may have gone: the path of choices, and until
    when the key is remembered on that path.
    """

    def __init__(
        self, number: int, keys: tuple[str, ...], time: str, delay_seconds: int, child: Operator
    ) -> None:
        super().__init__(number, keys, time, child)
        self._event_time = time
        self._delay = delay_seconds * SECOND
        self._ways: dict[Group, dict[Path, int | None]] = {}

    def run(self, tick: Tick) -> list[ModelRow]:
        found = []
        for key, group in self._arrivals(tick).items():
            found += self._choose(key, group)
        evict = self.evict(tick)
        for ways in self._ways.values():
            for path, until in ways.items():
                if until is not None and until <= evict:
                    ways[path] = None
        return found

    def _choose(self, key: Group, group: list[ModelRow]) -> list[ModelRow]:
        found = []
        after: dict[Path, int | None] = {}
        options = group
        if all(row.values == group[0].values for row in group):
            options = [ModelRow(group[0].values, any_of(row.prov for row in group))]
        for path, until in self._ways.get(key, {(): None}).items():
            if until is not None:
                after[path] = until
                continue
            for i, row in enumerate(options):
                way = (*path, i)
                after[way] = (row.values[self._event_time] or 0) + self._delay
                found.append(replace(row, world=World((self._number, key), way)))
        self._ways[key] = after
        return found

    def choices(self) -> dict[tuple[Any, ...], tuple[Path, ...]]:
        return {(self._number, key): tuple(ways) for key, ways in self._ways.items()}
