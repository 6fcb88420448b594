"""A plain-Python model of what a finite stream returns, with the provenance of every row.

`run_stream` evaluates a `Spec` batch by batch. No Spark in here. The pipeline is first rearranged
as Spark's optimizer rearranges it (`optimizer`), because Structured Streaming's results depend on
where a filter ends up.

What was read off Spark 4.3 by experiment, append mode, `availableNow`, one file per trigger:

- Batch `n` evicts with the watermark that the batches before `n` produced, and drops late rows with
  the one that batch `n - 1` evicted with. Both start at 0. Late means event time (of a window: its
  end) at or below the watermark; a null event time is never late and never evicted.
- A watermark is the largest event time seen, cut to milliseconds, less the delay; a null counts as
  1970. Several watermarks: the smallest counts, and one that saw nothing is 0. A watermark that two
  branches share is one watermark and takes the larger of the two.
- After the last file one batch without data runs, if the watermark moved and an operator keeps
  state.
- Behind a stateful operator the watermark is its own input's; behind a time-bounded join it is the
  smallest of that and of the two bounds up to which the join has thrown state away.
- Sessions that only touch are one session. A late row is dropped by itself, before it is merged.
- `dropDuplicates` looks at lateness only if the event time column is still there, and the optimizer
  removes it when nothing above needs it. `distinct` is `dropDuplicates` on all columns.
- `dropDuplicatesWithinWatermark` forgets a key once the watermark reaches the kept row's event time
  plus the delay; a null event time counts as 1970, so such a key is forgotten at once.
- Stream-stream joins compare keys as bytes: null keys match each other. Inner, left, right and semi
  joins never show it, because the optimizer drops null keys on the sides that need a partner; full
  joins do.
- An inner or semi join with an empty table does not read the stream, so no watermark moves.
- A filter on a join key reaches the other side too, and so that side's watermark; a filter that no
  null passes turns an outer join into a stricter one; `explode` drops rows with empty arrays below
  the watermark.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from properties.batch_model import source_rows
from properties.expressions import col, refs
from properties.model_rows import MicroBatch, Model, ModelRow, Path
from properties.operator_tree import (
    Aggregate,
    Distinct,
    Drop,
    DropDuplicates,
    Explode,
    Filter,
    Join,
    Named,
    Node,
    Read,
    Rename,
    Select,
    Spec,
    Union,
    Unpivot,
    Watermark,
    WindowColumn,
    WithColumn,
    columns,
    join_columns,
    walk,
)
from properties.optimizer import MarkedBy, definitions, event_times, rearrange
from properties.stream_joins import StaticJoin, StreamJoin, TableInput
from properties.stream_operators import (
    Aggregating,
    BothInputs,
    Deduplicating,
    DeduplicatingWithin,
    Input,
    Mark,
    Operator,
    Rowwise,
    Tick,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from properties.row_form import Batches, Tables


class _Planner:
    """Turns a rearranged pipeline into running operators.

    `needed` is what the operators above read. Spark prunes the other columns, and with them, below
    `dropDuplicates`, what it would know of lateness.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._numbers = itertools.count()

    def plan(self, node: Node, needed: frozenset[str]) -> Operator:
        if not _has_stream(node):
            return TableInput(node, self._tables)
        match node:
            case Read(source):
                return Input(source)
            case Filter(child, condition):
                return Rowwise(node, self.plan(child, needed | refs(condition)))
            case WithColumn() | Select() | Rename() | Drop():
                return Rowwise(node, self.plan(node.child, _read_by(node, needed)))
            case Named(child):
                return Rowwise(node, self.plan(child, needed))
            case Unpivot(child, ids, values):
                return Rowwise(node, self.plan(child, (needed & {*ids}) | {*values}))
            case WindowColumn(child, window, name):
                return Rowwise(node, self.plan(child, (needed - {name}) | {window.column}))
            case Explode(child, column, name):
                return Rowwise(node, self.plan(child, (needed - {name}) | {column}))
            case Union(left, right):
                return BothInputs(self.plan(left, needed), self.plan(right, needed))
            case MarkedBy(child, _, column):
                return Mark(node, self.plan(child, needed | {column}))
            case Aggregate(child, window, keys, aggs):
                read = {*keys, *(a.column for a in aggs)}
                read |= set() if window is None else {window.column}
                return Aggregating(node, self.plan(child, frozenset(read)))
            case Distinct() | DropDuplicates():
                return self._dedup(node, needed)
            case Join():
                return self._join(node, needed)
            case _:
                msg = f"no streaming pipeline has {type(node).__name__}"
                raise TypeError(msg)

    def _dedup(self, node: Distinct | DropDuplicates, needed: frozenset[str]) -> Operator:
        within = isinstance(node, DropDuplicates) and node.within_watermark
        keys = node.subset if isinstance(node, DropDuplicates) else tuple(columns(node))
        times = event_times(node.child)
        read = needed | set(keys) | (set(times) if within else set())
        child = self.plan(node.child, read)
        visible = next((time for time in times if time in read), None)
        if within:
            [delay] = {n.delay_seconds for n in walk(node) if isinstance(n, Watermark)}
            return DeduplicatingWithin(next(self._numbers), keys, times[0], delay, child)
        return Deduplicating(next(self._numbers), keys, visible, child)

    def _join(self, node: Join, needed: frozenset[str]) -> Operator:
        read = {"l": set(node.keys), "r": set(node.keys)}
        if node.low_seconds is not None or node.high_seconds is not None:
            read = {side: names | {node.time} for side, names in read.items()}
        for new, side, name, _ in join_columns(node):
            if new in needed and side != "both":
                read[side].add(name)
        left = self.plan(node.left, frozenset(read["l"]))
        right = self.plan(node.right, frozenset(read["r"]))
        static = any(not _has_stream(side) for side in (node.left, node.right))
        return StaticJoin(node, left, right) if static else StreamJoin(node, left, right)


def _has_stream(node: Node) -> bool:
    return any(isinstance(n, Read) and not n.static for n in walk(node))


def _read_by(node: WithColumn | Select | Rename | Drop, needed: frozenset[str]) -> frozenset[str]:
    defined = definitions(node)
    return frozenset().union(*(refs(defined.get(name, col(name))) for name in needed))


class _Query:
    """Runs the micro-batches of a finite stream."""

    def __init__(self, root: Operator) -> None:
        self._root = root
        self._marks = [op for op in root.all() if isinstance(op, Mark)]
        self._reached: dict[Watermark, int] = {}
        self._before_ms = 0
        self._now_ms = 0
        self.batches: list[MicroBatch] = []

    def run(self, inputs: Mapping[str, list[ModelRow]], *, has_data: bool) -> None:
        tick = Tick(len(self.batches), inputs, self._before_ms, self._now_ms)
        for op in self._marks:
            op.seen_ms = None
        rows = self._root.run(tick)
        self.batches.append(MicroBatch(tick.number, self._now_ms, has_data, tuple(rows)))
        self._before_ms = self._now_ms
        self._advance()

    def wants_another(self) -> bool:
        return any(op.wants_another(self._before_ms, self._now_ms) for op in self._root.all())

    def _advance(self) -> None:
        for op in self._marks:
            if op.seen_ms is not None:
                reached = op.seen_ms - op.node.delay_seconds * 1000
                before = self._reached.get(op.node.mark, reached)
                self._reached[op.node.mark] = max(before, reached)
        if self._marks:
            slowest = min(self._reached.get(op.node.mark, 0) for op in self._marks)
            self._now_ms = max(self._now_ms, slowest)


def run_stream(spec: Spec, batches: Batches) -> Model:
    """Evaluate a pipeline over micro-batches, in append mode, until the stream ends.

    Args:
        spec: The pipeline.
        batches: For each source its micro-batches in order; a static source has just its rows.
            A source whose batches have run out takes part with no rows.

    Returns:
        The rows that Spark returns, together and per micro-batch, each with its provenance.
    """
    tables: Any = {name: batches[name] for name in spec.statics}
    root = _Planner(tables).plan(rearrange(spec.root), frozenset(columns(spec.root)))
    query = _Query(root)
    streams = {name: [source_rows(name, rows) for rows in batches[name]] for name in spec.sources}
    for number in range(max(map(len, streams.values()))):
        query.run({n: s[number] for n, s in streams.items() if number < len(s)}, has_data=True)
    while query.wants_another():
        query.run({}, has_data=False)
    rows = tuple(row for batch in query.batches for row in batch.rows)
    choices: dict[tuple[Any, ...], tuple[Path, ...]] = {}
    for op in root.all():
        if isinstance(op, Deduplicating):
            choices |= op.choices()
    return Model(rows, choices, tuple(query.batches))
