"""What a pipeline leaves open: which values Spark is free to choose, which rows look alike."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from properties.expressions import refs
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
    OrderLimit,
    Pivot,
    Read,
    Rename,
    Select,
    SetOperation,
    Unpivot,
    Watermark,
    WindowColumn,
    WithColumn,
    aggregate_columns,
    children,
    columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def settled(node: Node) -> frozenset[str] | None:
    """Tell which columns have values that no free choice of Spark's can change.

    `dropDuplicates` on some columns keeps any one of the equal rows, so the other columns are not
    settled. `None`: not even the number of rows is.
    """
    match node:
        case DropDuplicates(child, subset):
            return _narrowed(settled(child), subset)
        case Filter(child, condition):
            before = settled(child)
            return before if before is not None and refs(condition) <= before else None
        case WithColumn(child, name, value):
            before = settled(child)
            if before is None:
                return None
            return before | {name} if refs(value) <= before else before - {name}
        case Select(child, named):
            before = settled(child)
            kept = (name for name, value in named if before is not None and refs(value) <= before)
            return None if before is None else frozenset(kept)
        case Unpivot(child, ids, values, variable, value):
            before = settled(child)
            if before is None:
                return None
            return (before & {*ids}) | {variable} | ({value} if before >= {*values} else set())
        case WindowColumn(child, window, name):
            before = settled(child)
            return before | {name} if before is not None and window.column in before else None
        case Explode(child, column, name):
            before = settled(child)
            return before | {name} if before is not None and column in before else None
        case Rename(child, old, new):
            before = settled(child)
            return None if before is None else frozenset(new if n == old else n for n in before)
        case Drop(child, names):
            before = settled(child)
            return None if before is None else before - set(names)
        case _:
            inputs = children(node)
            open_input = any(not is_settled(child) for child in inputs)
            if open_input and isinstance(node, Watermark | Named):
                return settled(inputs[0])
            return None if open_input else frozenset(columns(node))


def _narrowed(before: frozenset[str] | None, subset: Iterable[str]) -> frozenset[str] | None:
    return frozenset(subset) if before is not None and before >= set(subset) else None


def is_settled(node: Node) -> bool:
    """Tell whether every value of a result is certain."""
    return settled(node) == frozenset(columns(node))


def identifying(node: Node) -> tuple[str, ...] | None:
    """Find columns that tell any two rows of a result apart; `None` where there may be none."""
    match node:
        case Read():
            return ("rid",)
        case WithColumn(child, name, _):
            return _unless(identifying(child), lambda found: name in found)
        case Select(child, named):
            renamed = {value.args[0]: name for name, value in named if value.op == "col"}
            return _renamed(identifying(child), renamed)
        case Rename(child, old, new):
            return _renamed(identifying(child), {n: n for n in columns(child)} | {old: new})
        case Drop(child, names):
            return _unless(identifying(child), lambda found: bool(set(names) & set(found)))
        case Aggregate(_, _, _, _, grouping) if grouping != "groupBy":
            return None  # a key may be null, and null where it is left out
        case Pivot(_, keys):
            return keys
        case Distinct() | Aggregate() | SetOperation():
            found = (
                aggregate_columns(dataclasses.replace(node, aggs=()))
                if (isinstance(node, Aggregate))
                else columns(node)
            )
            return None if "array" in found.values() else tuple(found)
        case DropDuplicates(_, subset):
            return subset
        case Filter(child) | Watermark(child) | Named(child) | OrderLimit(child):
            return identifying(child)
        case Join():
            return _identifying_join(node)
        case _:
            return None


def _unless(
    found: tuple[str, ...] | None, spoiled: Callable[[tuple[str, ...]], bool]
) -> tuple[str, ...] | None:
    return None if found is None or spoiled(found) else found


def _renamed(found: tuple[str, ...] | None, names: Mapping[str, str]) -> tuple[str, ...] | None:
    if found is None or not set(found) <= set(names):
        return None
    return tuple(names[name] for name in found)


def _identifying_join(node: Join) -> tuple[str, ...] | None:
    left = identifying(node.left)
    if node.how in ("leftsemi", "leftanti"):
        return left
    right = identifying(node.right)
    if left is None or right is None or node.using:
        return None
    return left + tuple(node.prefix + name for name in right)
