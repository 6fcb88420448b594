"""Columns from the tree of a condition: names, literals and operators, and never text as SQL."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from clew.plan import condition as c
from clew.plan.columns import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": lambda x, y: x.eqNullSafe(y),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
    "and": operator.and_,
    "or": operator.or_,
}


def build_column(tree: c.Expression) -> Column:  # noqa: C901 (one case for each kind of node)
    """Build the column that a tree stands for.

    Raises:
        TypeError: It is no tree of a condition.
    """
    match tree:
        case c.ColumnPath(parts):
            return _path(parts)
        case c.Constant(value):
            return F.lit(value)
        case c.Compare(op, left, right) | c.Arithmetic(op, left, right):
            return _apply(op, build_column(left), build_column(right))
        case c.Junction(op, operands):
            return _balanced(op, [build_column(part) for part in operands])
        case c.Negative(operand):
            return -build_column(operand)
        case c.Not(operand):
            return ~build_column(operand)
        case c.OneOf(operand, values):
            return build_column(operand).isin([build_column(value) for value in values])
        case c.Between(operand, low, high):
            return build_column(operand).between(build_column(low), build_column(high))
        case c.Like(operand, pattern):
            return build_column(operand).like(pattern)
        case c.IsNull(operand):
            return build_column(operand).isNull()
    msg = f"`{type(tree).__name__}` is no part of a condition"
    raise TypeError(msg)


def _path(parts: tuple[str, ...]) -> Column:
    column = named(parts[0])
    for part in parts[1:]:
        column = column.getField(part)
    return column


def _apply(op: str, left: Column, right: Column) -> Column:
    result: Column = _OPERATORS[op](left, right)
    return result


def _balanced(op: str, operands: list[Column]) -> Column:
    """Join many conditions in a tree that is not deep, as Spark walks it by recursion."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return _apply(op, _balanced(op, operands[:middle]), _balanced(op, operands[middle:]))
