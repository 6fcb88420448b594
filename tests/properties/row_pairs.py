"""Joins rows of two sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from properties.model_rows import ModelRow, all_of
from properties.operator_tree import Join, join_columns
from properties.row_form import SECOND, Row

if TYPE_CHECKING:
    from collections.abc import Sequence


def _matches(node: Join, left: Row, right: Row) -> bool:
    """Tell whether two rows satisfy a join's condition, as SQL has it."""
    for key in node.keys:
        one, two = left[key], right[key]
        if one != two or (one is None and not node.null_safe):
            return False
    return in_time(node, left, right)


def in_time(node: Join, left: Row, right: Row) -> bool:
    low, high = node.low_seconds, node.high_seconds
    if low is None and high is None:
        return True
    one, two = left[node.time], right[node.time]
    if one is None or two is None:
        return False
    apart = two - one
    return (low is None or apart >= low * SECOND) and (high is None or apart <= high * SECOND)


class PairMaker:
    """Makes a join's result rows."""

    def __init__(self, node: Join) -> None:
        self._output = [(new, side, name) for new, side, name, _ in join_columns(node)]

    def both(self, left: ModelRow, right: ModelRow) -> ModelRow:
        return ModelRow(self._values(left.values, right.values), all_of([left.prov, right.prov]))

    def left_only(self, row: ModelRow) -> ModelRow:
        return ModelRow(self._values(row.values, {}), row.prov)

    def right_only(self, row: ModelRow) -> ModelRow:
        return ModelRow(self._values({}, row.values), row.prov)

    def _values(self, left: Row, right: Row) -> Row:
        sides = {"l": left, "r": right, "both": left or right}
        return {new: sides[side].get(name) for new, side, name in self._output}


def join_tables(node: Join, left: Sequence[ModelRow], right: Sequence[ModelRow]) -> list[ModelRow]:
    pairs = PairMaker(node)
    found: list[ModelRow] = []
    met: set[int] = set()
    for row in left:
        partners = [i for i, other in enumerate(right) if _matches(node, row.values, other.values)]
        met.update(partners)
        match node.how:
            case "leftsemi" if partners:
                prov = all_of([row.prov, *(right[i].prov for i in partners)])
                found.append(replace(pairs.left_only(row), prov=prov))
            case "leftanti" if not partners:
                found.append(pairs.left_only(row))
            case "inner" | "left" | "right" | "full":
                found += [pairs.both(row, right[i]) for i in partners]
                if not partners and node.how in ("left", "full"):
                    found.append(pairs.left_only(row))
    if node.how in ("right", "full"):
        found += [pairs.right_only(row) for i, row in enumerate(right) if i not in met]
    return found
