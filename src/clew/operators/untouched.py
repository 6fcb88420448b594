"""Columns that come through unchanged: is this still the value that the source had?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.operators.source import Source
from clew.plan.facts import Rows

if TYPE_CHECKING:
    from clew.plan.node import Node


def origin_of(node: Node, column: str) -> tuple[Source, str] | None:
    """Find the source from which a column of a frame is sure to come as it is, and its name there.

    None where it may have been changed on the way, or where several rows or frames come together.
    """
    while not isinstance(node.operator, Source):
        before = hands_on(node, column)
        if before is None:
            return None
        [node], column = node.inputs, before
    return node.operator, column


def hands_on(node: Node, column: str) -> str | None:
    """Say which column of its input a step is sure to hand on as this one; None if none is."""
    if node.operator.facts.rows not in (Rows.EACH, Rows.CHOSEN) or len(node.inputs) != 1:
        return None
    made = node.operator.made_of(node, column)
    return made[0].text if len(made) == 1 and made[0].is_same else None
