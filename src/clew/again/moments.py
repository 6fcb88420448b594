"""Which columns say when a source's rows happened.

A window over such a column holds rows that are near each other in the source, so how far around a
result one must read follows from the sizes of windows alone. A column counts if it is the time by
which a source is read in parts, or the start or the end of a window over one. Whatever else was
computed on the way may lie anywhere, also if it looks like a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.operators.aggregate import Aggregate
from clew.operators.keep import shown
from clew.operators.ordered import Ordered
from clew.operators.source import Source
from clew.plan.made import WINDOW, is_reference, referenced
from clew.plan.spans import span_column

if TYPE_CHECKING:
    from clew.plan.node import Node

_WINDOW = re.compile(r"^window\((?P<time>.+?), '(?P<size>[^']+)'")
_OF_WINDOW = re.compile(
    r"^(?:window_time\((?P<window>\w+)\)|(?P<struct>\w+)(?:\.|\[)(?:start|end)\]?)$"
)
_NAME = re.compile(r"^\w+$")


def window_of(aggregate: Aggregate) -> re.Match[str] | None:
    """Find the window among an aggregation's keys: the `time` it is over, and its `size`."""
    return next(filter(None, (_WINDOW.match(shown(key)) for key in aggregate.keys)), None)


def window_is_of_moments(node: Node) -> bool:
    """Tell whether an aggregation's window is over a time of the sources."""
    assert isinstance(node.operator, Aggregate)
    window = window_of(node.operator)
    return window is not None and _gives(node.inputs[0], window["time"], of_window=False)


def is_of_moments(node: Node) -> bool:
    """Tell whether rows are put in order by a time of the sources."""
    operator = node.operator
    assert isinstance(operator, Ordered)
    sides = zip(node.inputs, operator.lanes, strict=True)
    return all(holds_moment(side, lane.time, of_window=False) for side, lane in sides)


def _gives(node: Node, text: str, *, of_window: bool) -> bool:
    """Tell whether an expression is sure to give a time of the sources, or a window over one.

    Args:
        node: The node over whose columns it is.
        text: The expression as Spark writes it.
        of_window: A window is asked for.
    """
    if is_reference(text):
        taken = referenced(node, text)
        return taken is not None and holds_moment(*taken, of_window=of_window)
    made = WINDOW.fullmatch(text)
    if made:
        return of_window and _gives(node, made["time"], of_window=False)
    found = None if of_window else _OF_WINDOW.match(text)
    if found:
        return holds_moment(node, found["window"] or found["struct"], of_window=True)
    return bool(_NAME.match(text)) and holds_moment(node, text, of_window=of_window)


def holds_moment(node: Node, column: str, *, of_window: bool) -> bool:
    """Tell whether a column holds a time of the sources, or a window over one.

    It is followed to where it comes from.
    """
    operator = node.operator
    if column not in node.columns:
        return False
    if isinstance(operator, Source):
        return not of_window and span_column(operator.origin) == column
    found = operator.made_of(node, column)
    return bool(found) and all(
        holds_moment(node.inputs[each.side], each.text, of_window=of_window)
        if each.is_same
        else _gives(node.inputs[each.side], each.text, of_window=of_window)
        for each in found
    )
