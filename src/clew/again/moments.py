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
from clew.operators.join import Join
from clew.operators.keep import Keep, shown
from clew.operators.named import Named
from clew.operators.ordered import Ordered
from clew.operators.project import Project, Reshape
from clew.operators.property import Property
from clew.operators.source import Source
from clew.operators.union import Union, both
from clew.plan.spans import span_column

if TYPE_CHECKING:
    from clew.plan.node import Node

_WINDOW = re.compile(r"^window\((?P<time>.+?), '(?P<size>[^']+)'")
_OF_WINDOW = re.compile(
    r"^(?:window_time\((?P<window>\w+)\)|(?P<struct>\w+)(?:\.|\[)(?:start|end)\]?)$"
)
_RENAMES = ("withColumnRenamed", "withColumnsRenamed", "toDF")
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
    if isinstance(operator, (Keep, Named, Property)):
        return holds_moment(node.inputs[0], column, of_window=of_window)
    if isinstance(operator, Reshape) and operator.verb in (*_RENAMES, "drop"):
        at = node.columns.index(column)
        name = column if operator.verb == "drop" else node.inputs[0].columns[at]
        return holds_moment(node.inputs[0], name, of_window=of_window)
    if isinstance(operator, Project):
        return _computed(node, operator, column, of_window=of_window)
    if isinstance(operator, Aggregate):
        return _grouped(node, operator, column, of_window=of_window)
    if isinstance(operator, Ordered):
        return not of_window and column == operator.moment and is_of_moments(node)
    if isinstance(operator, Union):
        return all(
            holds_moment(side, name, of_window=of_window) for side, name in both(node, column)
        )
    if isinstance(operator, Join):
        sides = [side for side in node.inputs if column in side.columns]
        return all(holds_moment(side, column, of_window=of_window) for side in sides)
    return False


def _computed(node: Node, project: Project, column: str, *, of_window: bool) -> bool:
    [before] = node.inputs
    if isinstance(project.columns, dict):
        changed = {name.lower(): shown(each) for name, each in project.columns.items()}
        texts = [changed.get(column.lower(), column)]
    else:
        written = [_named(shown(each), project) for each in project.columns]
        texts = [text for name, text in written if name == column]
        texts += [column for name, _ in written if name == "*" and column in before.columns]
    return len(texts) == 1 and _gives(before, texts[0], of_window=of_window)


def _named(text: str, project: Project) -> tuple[str, str]:
    """Split what a `select` was given into a name and an expression."""
    for token, name in project.references.items():
        text = text.replace(token, name)
    expression, _, alias = text.rpartition(" AS ")
    return (alias.strip("`"), expression) if expression else (text, text)


def _grouped(node: Node, aggregate: Aggregate, column: str, *, of_window: bool) -> bool:
    if column not in aggregate.key_names:
        return False
    key = shown(aggregate.keys[aggregate.key_names.index(column)]).rpartition(" AS ")
    text = key[0] or key[2]
    made = _WINDOW.match(text)
    if made:
        return of_window and _gives(node.inputs[0], made["time"], of_window=False)
    return _gives(node.inputs[0], text, of_window=of_window)
