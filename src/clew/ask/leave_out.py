"""What a result would be without each of its rows, by running its query again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.again.trial_rows import prepare
from clew.again.trials import can_share
from clew.ask.trace import one_of
from clew.capture.numbered import TRIAL
from clew.exceptions import ReplayError
from clew.operators.keep import Keep
from clew.plan.columns import named
from clew.plan.node import rebuilt
from clew.show.arrow import to_python

if TYPE_CHECKING:
    from clew.ask.trace import Trace
    from clew.plan.node import Node, Operator
    from clew.store.reader import Snapshot


_MOST_ALONE = 50
"""How many runs are made one after the other, where they cannot be made together."""


def without_each(snapshot: Snapshot, trace: Trace, node: Node, column: str) -> list[Any]:
    """Return a column of a result with all of its rows, then without each, in their order.

    None stands where the result would not be there. What only chooses among finished results does
    not count: a sum is asked about, and not whether it is large enough to be shown.

    Raises:
        ReplayError: The query cannot be run again, or not so often.
    """
    result = one_of(trace)
    members = [(each.stream, each.a, each.b) for each in trace.rows.ids()]
    if len(members) > _MOST_ALONE and not can_share(node):
        msg = f"its steps take one run for each of {len(members):,} rows, which are too many"
        raise ReplayError(msg)
    rows = {each.stream: each.table for each in trace.rows.contents}
    [asked] = trace.start.contents
    trials = prepare(snapshot, result.stream, node, rows, members, asked.table)
    opened = rebuilt(trials.tables.node, _without_filters(trials.tables.node))
    trials = replace(trials, tables=replace(trials.tables, node=opened))
    every = frozenset(range(len(members)))
    kept = [every, *[every - {i} for i in range(len(members))]]
    size = trials.together(len(members))
    found: list[Any] = [None] * len(kept)
    try:
        for start in range(0, len(kept), size):
            table = trials.run(kept[start : start + size], {"value": named(column)})
            values = to_python(table.column("value"))
            for number, value in zip(table.column(TRIAL).to_pylist(), values, strict=True):
                found[start + number] = value
    finally:
        trials.close()
    return found


def _without_filters(node: Node) -> dict[int, Operator]:
    """Open the filters behind the last step that puts rows together."""
    opened: dict[int, Operator] = {}
    while len(node.inputs) == 1 and node.operator.kind in _ROW_BY_ROW:
        if isinstance(node.operator, Keep) and node.operator.verb == "filter":
            opened[node.id] = Keep("filter", (F.lit(True),))
        [node] = node.inputs
    return opened


_ROW_BY_ROW = {
    *("filter", "watermark", "alias", "order", "select", "withColumns", "named", "property"),
    *("withColumnRenamed", "withColumnsRenamed", "toDF", "drop", "fillna", "replace"),
}
