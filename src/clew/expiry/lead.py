"""How far the time by which a step keeps rows is ahead of the rows' own time.

A step of a stream keeps a row until the watermark has passed a time of that row: the end of its
window, or a time as it is. Where the window stands in the grouping itself, its size is there to be
read. It may as well have been computed before, in a `select`, been renamed since, or be a window of
windows. So the column is followed to where it comes from, and each window on the way adds its size.
Windows that an earlier step has kept rows for are in that step's account, and end the search.

What cannot be followed gives None: whoever asks takes it as no bound at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.operators.source import Source
from clew.plan.duration import micros
from clew.plan.facts import For, UntilPassed
from clew.plan.made import WINDOW, WINDOW_TIME, bare, find, is_reference, referenced, split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.plan.node import Node


def lead(node: Node, text: str) -> int | None:
    """Say how far a time may be ahead of all that earlier steps have accounted for.

    Args:
        node: The node over whose columns the time is.
        text: The time or the window, as Spark writes it.

    Returns:
        Microseconds; None if it cannot be told.
    """
    value, _ = split(text)
    if is_reference(value):
        taken = referenced(node, value)
        return None if taken is None else _column(*taken)
    window = WINDOW.fullmatch(value)
    if window:
        return _sum(micros(window["size"].strip("'")), lead(node, window["time"]))
    end = WINDOW_TIME.fullmatch(value)
    return lead(node, end["window"]) if end else _named(node, value)


def _named(node: Node, text: str) -> int | None:
    """Follow a name, which may be that of a frame and a column or of a window and its end."""
    column = find(node, bare(text))
    if column is not None:
        return _column(node, column)
    # A dot or brackets: `frame.column`, `window.end`, `window['end']`.
    first, _, rest = re.sub(r"\['?(\w+)'?\]$", r".\1", text).partition(".")
    window = find(node, bare(first))
    if window is not None:
        return _column(node, window) if rest.lower() in ("start", "end") else None
    return _named(node, rest) if rest else None


def _column(node: Node, column: str) -> int | None:
    """Follow a column of a node to where it was made."""
    operator = node.operator
    if isinstance(operator, Source):
        return 0 if operator.origin.event_time == column else None
    keeps = operator.facts.keeps
    if isinstance(keeps, (UntilPassed, For)) and keeps.column == column:
        return 0  # the step itself keeps rows for as long
    return _most(
        _column(node.inputs[each.side], each.text)
        if each.is_same
        else lead(node.inputs[each.side], each.text)
        for each in operator.made_of(node, column)
    )


def _most(leads: Iterable[int | None]) -> int | None:
    """Return the largest; None if one is not known, or there is none."""
    found = list(leads)
    return None if None in found or not found else max(each for each in found if each is not None)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
