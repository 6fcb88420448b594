"""Columns that come through unchanged: is this still the value that the source had?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.operators.keep import Keep, shown
from clew.operators.named import Named
from clew.operators.project import Project
from clew.operators.property import Property
from clew.operators.source import Source

if TYPE_CHECKING:
    from clew.plan.node import Node, Operator


def origin_of(node: Node, column: str) -> Source | None:
    """Find the source from which a column of a frame is sure to come as it is.

    None where it may have been changed on the way, or where rows of several frames come together.
    """
    while not isinstance(node.operator, Source):
        if not hands_on(node.operator, column):
            return None
        [node] = node.inputs
    return node.operator


def hands_on(operator: Operator, column: str) -> bool:
    """Tell whether a step is sure to leave a column as it is, under the same name."""
    if isinstance(operator, Project) and operator.partition is None:
        if isinstance(operator.columns, dict):
            return column.lower() not in (name.lower() for name in operator.columns)
        return column in [shown(each) for each in operator.columns]
    return isinstance(operator, (Keep, Named, Property))
