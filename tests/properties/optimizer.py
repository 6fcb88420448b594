"""Moves filters to where Spark's optimizer moves them.

A filter that does not look at the event time sinks below `withWatermark`, and a watermark knows
only the rows that reach it. So what a stream returns depends on where its filters end up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from properties.evaluation import evaluate
from properties.expressions import Expr, col, conjuncts, lit, refs, substitute
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
    Union,
    Unpivot,
    Watermark,
    WindowColumn,
    WithColumn,
    children,
    columns,
    join_columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, repr=False)
class MarkedBy(Watermark):
    """A watermark below which filters have moved; `mark` is the one that was written."""

    mark: Watermark = field(kw_only=True)


def rearrange(node: Node, conditions: tuple[Expr, ...] = ()) -> Node:
    """Move filters to where Spark's optimizer moves them, `conditions` coming from above.

    The result means the same, but its watermarks see the rows that Spark's see, and its outer
    joins are as strict as Spark makes them.
    """
    match node:
        case Read():
            return _filtered(node, conditions)
        case Filter(child, condition):
            return rearrange(child, conjuncts(condition) + conditions)
        case WithColumn() | Select() | Rename() | Drop():
            defined = definitions(node)
            below = tuple(substitute(c, defined) for c in conditions)
            return replace(node, child=rearrange(node.child, below))
        case Explode(child, column, name, outer):
            full = Expr(">", (Expr("size", (col(column),)), lit(0)))
            below, above = _split(conditions, lambda c: name not in refs(c))
            below += () if outer else (full,)
            return _filtered(replace(node, child=rearrange(child, below)), above)
        case Named(child):
            return replace(node, child=rearrange(child, conditions))
        case Unpivot(child, ids):
            below, above = _split(conditions, lambda c: refs(c) <= set(ids))
            return _filtered(replace(node, child=rearrange(child, below)), above)
        case WindowColumn(child, _, name):
            below, above = _split(conditions, lambda c: name not in refs(c))
            return _filtered(replace(node, child=rearrange(child, below)), above)
        case Union(left, right):
            sides = (rearrange(left, conditions), rearrange(right, conditions))
            return replace(node, left=sides[0], right=sides[1])
        case Watermark(child, delay, column):
            below, above = _split(conditions, lambda c: column not in refs(c))
            mark = node.mark if isinstance(node, MarkedBy) else node
            moved = MarkedBy(rearrange(child, below), delay, column, mark=mark)
            return _filtered(moved, above)
        case Aggregate(child, _, keys):
            below, above = _split(conditions, lambda c: refs(c) <= set(keys))
            return _filtered(replace(node, child=rearrange(child, below)), above)
        case Join():
            return _rearrange_join(node, conditions)
        case Distinct(child) | DropDuplicates(child):
            return _filtered(replace(node, child=rearrange(child)), conditions)
        case _:
            msg = f"no streaming pipeline has {type(node).__name__}"
            raise TypeError(msg)


def _filtered(node: Node, conditions: tuple[Expr, ...]) -> Node:
    for condition in conditions:
        node = Filter(node, condition)
    return node


def _split(
    conditions: tuple[Expr, ...], test: Callable[[Expr], bool]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    return tuple(c for c in conditions if test(c)), tuple(c for c in conditions if not test(c))


def definitions(node: WithColumn | Select | Rename | Drop) -> dict[str, Expr]:
    match node:
        case WithColumn(_, name, value):
            return {name: value}
        case Select(_, named):
            return dict(named)
        case Rename(_, old, new):
            return {new: col(old)}
        case _:
            return {}


_STRICTER = {
    # how: (how if no null passes on the left, on the right, on both)
    "left": ("left", "inner", "inner"),
    "right": ("inner", "right", "inner"),
    "full": ("left", "right", "inner"),
}
_PUSHED = {"inner": "lr", "left": "l", "right": "r", "full": "", "leftsemi": "l", "leftanti": "l"}
_INFERRED = {
    "inner": "lr",
    "left": "r",
    "right": "l",
    "full": "",
    "leftsemi": "lr",
    "leftanti": "r",
}


def _is_about(origin: Mapping[str, tuple[str, str]], side: str, condition: Expr) -> bool:
    return {origin[name][0] for name in refs(condition)} == {side}


def _rearrange_join(node: Join, conditions: tuple[Expr, ...]) -> Node:
    origin = {new: (side, name) for new, side, name, _ in join_columns(node)}
    of_side: dict[str, tuple[Expr, ...]] = {}
    rest = conditions
    for side in "lr":
        of_side[side], rest = _split(rest, partial(_is_about, origin, side))
    node = replace(node, how=_stricter(node.how, of_side))
    inward = {new: col(name) for new, (_, name) in origin.items()}
    sides = {}
    for side, child in (("l", node.left), ("r", node.right)):
        pushed = of_side[side] if side in _PUSHED[node.how] else ()
        rest += () if side in _PUSHED[node.how] else of_side[side]
        sides[side] = rearrange(child, tuple(substitute(c, inward) for c in pushed))
    inferred = {"l": _key_facts(node, sides["r"]), "r": _key_facts(node, sides["l"])}
    for side in _INFERRED[node.how]:
        sides[side] = rearrange(sides[side], inferred[side])
    return _filtered(replace(node, left=sides["l"], right=sides["r"]), rest)


def _stricter(how: Any, of_side: Mapping[str, tuple[Expr, ...]]) -> Any:
    rejects = {
        side: any(evaluate(c, defaultdict(lambda: None)) is not True for c in found)
        for side, found in of_side.items()
    }
    if how not in _STRICTER or not any(rejects.values()):
        return how
    left, right, both = _STRICTER[how]
    return both if all(rejects.values()) else left if rejects["l"] else right


def _key_facts(node: Join, other: Node) -> tuple[Expr, ...]:
    """List what a side learns about its keys from the other side."""
    known = tuple(c for c in _known(other) if len(refs(c)) == 1 and refs(c) <= set(node.keys))
    return tuple(Expr("isnotnull", (col(key),)) for key in node.keys) + known


def _known(node: Node) -> tuple[Expr, ...]:
    """List conditions that every row of a rearranged pipeline meets."""
    match node:
        case Filter(child, condition):
            return (*_known(child), condition)
        case Read():
            return ()
        case WithColumn() | Select() | Rename() | Drop():
            return _known_after(node)
        case Union(left, right):
            return tuple(c for c in _known(left) if c in _known(right))
        case Aggregate(child, _, keys):
            return tuple(c for c in _known(child) if refs(c) <= set(keys))
        case Join(left, right, how):
            return () if how in ("right", "full") else _known(left)
        case _:
            return _known(children(node)[0])


def _known_after(node: WithColumn | Select | Rename | Drop) -> tuple[Expr, ...]:
    """Carry conditions over to the new names of columns that kept their values."""
    defined = definitions(node)
    names = {name: defined.get(name, col(name)) for name in columns(node)}
    kept = {value.args[0]: col(name) for name, value in names.items() if value.op == "col"}
    return tuple(substitute(c, kept) for c in _known(node.child) if refs(c) <= set(kept))


def event_times(node: Node) -> tuple[str, ...]:
    """Name the columns that Spark knows to be event times, in order."""
    match node:
        case Read():
            return ()
        case Watermark(_, _, column):
            return (column,)
        case WithColumn() | Select() | Rename() | Drop():
            before = event_times(node.child)
            defined = definitions(node)
            names = {name: defined.get(name, col(name)) for name in columns(node)}
            return tuple(name for name, value in names.items() if _is_time(value, before))
        case Unpivot(child, ids):
            return tuple(name for name in ids if name in event_times(child))
        case WindowColumn(child, window, name):
            before = event_times(child)
            return (*before, name) if window.column in before else before
        case Aggregate(child, window, keys):
            before = event_times(child)
            timed = () if window is None or window.column not in before else (window.name,)
            return timed + tuple(key for key in keys if key in before)
        case Join(left, right):
            times = {"l": event_times(left), "r": event_times(right), "both": event_times(left)}
            return tuple(n for n, side, name, _ in join_columns(node) if name in times[side])
        case _:
            return event_times(children(node)[0])


def _is_time(value: Expr, before: tuple[str, ...]) -> bool:
    if value.op == "window_time":
        value = value.args[0]
    return value.op == "col" and value.args[0] in before
