"""Choose how provenance is carried, by the graph and its sources, and say why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from clew.again.reach import (
    has_stream_join,
    is_gathering,
    obstacle,
    pointers_obstacle,
    stream_obstacle,
)
from clew.capture.intervals import INTERVALS
from clew.capture.keys import KEYS
from clew.capture.pointers import PointersCapture
from clew.capture.sets import SETS
from clew.exceptions import CaptureRefusedError, WriterError
from clew.operators.ordered import Ordered
from clew.operators.through import Through

if TYPE_CHECKING:
    from clew.plan.algebra import Capture
    from clew.plan.node import Node

CaptureName = Literal["auto", "off", "sets", "pointers", "intervals", "keys"]


_LOOKED_UP = "the rows behind a result of `through` are looked up afterwards, not carried"


@dataclass(frozen=True, slots=True)
class Choice:
    """A way to capture provenance, and why it was taken."""

    capture: str
    why: str


def capture_of(name: str) -> Capture:
    """Return what implements a capture."""
    if name == "pointers":
        return PointersCapture()
    known: dict[str, Capture] = {"intervals": INTERVALS, "keys": KEYS}
    return known.get(name, SETS)


def choose(node: Node, wanted: CaptureName) -> Choice:
    """Choose a capture for a query.

    Raises:
        WriterError: There is no such capture.
        CaptureRefusedError: It was asked for and cannot serve this query.
    """
    if wanted not in get_args(CaptureName):
        known = ", ".join(f'"{each}"' for each in get_args(CaptureName))
        msg = f"`capture` is one of {known}; got {wanted!r}."
        raise WriterError(msg)
    if wanted == "sets" and _looked_up_only(node):
        raise CaptureRefusedError(wanted, _LOOKED_UP)
    if wanted in ("off", "sets"):
        return Choice(wanted, "asked for")
    if wanted == "auto":
        return _automatic(node)
    why = _pointers(node) if wanted == "pointers" else _intervals(node)
    if why:
        raise CaptureRefusedError(wanted, why)
    return Choice(wanted, "asked for")


def _automatic(node: Node) -> Choice:
    # Rows that wait to be joined take all that they carry into Spark's state.
    if not has_stream_join(node) and not any(is_gathering(each) for each in node.walk()):
        return Choice("sets", "each result is made from a few rows that the query itself decides")
    if _looked_up_only(node):
        return Choice("keys", _LOOKED_UP)
    why = _pointers(node) or _far_back(node)
    if why:
        return Choice("sets", why)
    return Choice("pointers", "the sources can be read again and the query gives the same twice")


def _looked_up_only(node: Node) -> bool:
    return any(isinstance(n.operator, Through) and n.plain.df.isStreaming for n in node.walk())


def _far_back(node: Node) -> str | None:
    """Name the step for which all that was ever read would have to be read again."""
    for each in node.walk():
        operator = each.operator
        if isinstance(operator, Ordered) and operator.size_us is None:
            return f"which rows are in a `{operator.name}` depends on all that came before them"
    return None


def _pointers(node: Node) -> str | None:
    return (
        pointers_obstacle(node) or obstacle(node, whole=False) or stream_obstacle(node, whole=False)
    )


def _intervals(node: Node) -> str | None:
    return obstacle(node, whole=True) or stream_obstacle(node, whole=True)
