"""Evaluates expressions, and the operators that look at one row."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from properties.model_rows import MILLI
from properties.operator_tree import (
    Drop,
    Explode,
    Filter,
    Node,
    Rename,
    Select,
    Unpivot,
    WindowColumn,
    WithColumn,
)
from properties.row_form import SECOND, Row
from properties.row_groups import windows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from properties.expressions import Expr
    from properties.model_rows import ModelRow


def _remainder(a: int, b: int) -> int:
    """Divide as Java does: the remainder has the sign of the dividend."""
    return int(math.fmod(a, b))


_STRICT: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": _remainder,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "not": lambda a: not a,
    "in": lambda a, *options: a in options,
    "upper": str.upper,
    "concat": lambda a, b: a + b,
    "length": len,
    "size": len,
    "second": lambda a: a // SECOND % 60,
    "window_time": lambda a: a[1] - 1,
    "later": lambda a, seconds: a + seconds * SECOND,
    "from_text": lambda a: a,
    "from_seconds": lambda a: a // SECOND * SECOND,
    "from_json": lambda a: a // MILLI * MILLI,  # JSON has milliseconds
    "minute": lambda a: a // (60 * SECOND) * (60 * SECOND),
    "start": lambda a: a[0],
    "end": lambda a: a[1],
}
"""Operations whose result is null when an argument is."""


def evaluate(expr: Expr, row: Mapping[str, Any]) -> Any:
    """Evaluate an expression as Spark does, with nulls as a third truth value."""
    op = expr.op
    if op == "col":
        return row[expr.args[0]]
    if op == "lit":
        return expr.args[0]
    args = [evaluate(arg, row) for arg in expr.args]
    if op in _STRICT:
        return None if None in args else _STRICT[op](*args)
    if op in ("and", "or"):
        decisive = op == "or"
        if decisive in args:
            return decisive
        return None if None in args else not decisive
    if op == "if":
        return args[1] if args[0] else args[2]
    if op == "coalesce":
        return next((arg for arg in args if arg is not None), None)
    if op == "<=>":
        return args[0] == args[1]
    return (args[0] is None) == (op == "isnull")


def _passes(conditions: Iterable[Expr], row: Row) -> bool:
    return all(evaluate(condition, row) is True for condition in conditions)


def narrow_rows(node: Node, rows: Iterable[ModelRow]) -> list[ModelRow]:
    """Apply an operator that looks at one row; the row's provenance stays as it is."""
    return [replace(row, values=made) for row in rows for made in _derive(node, row.values)]


def _derive(node: Node, row: Row) -> Iterator[Row]:
    match node:
        case Filter(_, condition):
            if evaluate(condition, row) is True:
                yield row
        case WithColumn(_, name, value):
            yield row | {name: evaluate(value, row)}
        case Select(_, named):
            yield {name: evaluate(value, row) for name, value in named}
        case Rename(_, old, new):
            yield {new if name == old else name: value for name, value in row.items()}
        case Drop(_, names):
            yield {name: value for name, value in row.items() if name not in names}
        case WindowColumn(_, window, name):
            for one in windows_of(window, row[window.column]):
                yield row | {name: one}
        case Unpivot(_, ids, values, variable, value):
            for name in values:
                yield {one: row[one] for one in ids} | {variable: name, value: row[name]}
        case Explode(_, column, name, outer):
            for item in row[column] or ((None,) if outer else ()):
                yield row | {name: item}
        case _:
            yield row
