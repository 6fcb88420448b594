"""Choose how provenance is carried, by the graph and its sources, and say why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.again.reach import (
    has_stream_join,
    is_gathering,
    obstacle,
    pointers_obstacle,
    stream_obstacle,
)
from clew.capture.kinds import KEYS, POINTERS, SETS, Need, asked_for
from clew.exceptions import CaptureRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.capture.kinds import CaptureKind, CaptureName
    from clew.plan.node import Node

_LOOKED_UP = "the rows behind a result of `through` are looked up afterwards, not carried"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to capture provenance, and why it was taken."""

    kind: CaptureKind
    why: str

    @property
    def capture(self) -> str:
        """What it is called."""
        return self.kind.name


def choose(node: Node, wanted: CaptureName) -> Choice:
    """Choose a capture for a query.

    Raises:
        WriterError: There is no such capture.
        CaptureRefusedError: It was asked for and cannot serve this query.
    """
    kind = asked_for(wanted)
    if kind is None:
        return _automatic(node)
    why = _refusal(node, kind)
    if why:
        raise CaptureRefusedError(kind.name, why)
    return Choice(kind, "asked for")


def _automatic(node: Node) -> Choice:
    # Rows that wait to be joined take all that they carry into Spark's state.
    if not has_stream_join(node) and not any(is_gathering(each) for each in node.walk()):
        return Choice(SETS, "each result is made from a few rows that the query itself decides")
    if _looked_up_only(node):
        return Choice(KEYS, _LOOKED_UP)
    why = _refusal(node, POINTERS) or _far_back(node)
    if why:
        return Choice(SETS, why)
    return Choice(POINTERS, "the sources can be read again and the query gives the same twice")


def _looked_up_only(node: Node) -> bool:
    return any(n.operator.facts.by_condition and n.plain.df.isStreaming for n in node.walk())


def _far_back(node: Node) -> str | None:
    """Name the step for which all that was ever read would have to be read again."""
    for each in node.walk():
        if each.operator.facts.rests_on_past:
            kind = each.operator.kind
            return f"which rows are in a `{kind}` depends on all that came before them"
    return None


def _not_at_hand(node: Node) -> str | None:
    return _LOOKED_UP if _looked_up_only(node) else None


def _other_groups(node: Node) -> str | None:
    return obstacle(node, whole=False) or stream_obstacle(node, whole=False)


def _other_rows(node: Node) -> str | None:
    return obstacle(node, whole=True) or stream_obstacle(node, whole=True)


_LACKING: Mapping[Need, Callable[[Node], str | None]] = {
    Need.ROWS_AT_HAND: _not_at_hand,
    Need.STEPS_TO_POINT_AT: pointers_obstacle,
    Need.SAME_GROUPS_AGAIN: _other_groups,
    Need.SAME_ROWS_AGAIN: _other_rows,
}
"""What says that a query does not give what a capture needs, and why."""


def _refusal(node: Node, kind: CaptureKind) -> str | None:
    """Say why a capture cannot serve a query; None if it can."""
    return next(filter(None, (_LACKING[need](node) for need in kind.needs)), None)
