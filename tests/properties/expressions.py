"""Scalar expressions as data: written as SQL text or as columns, and their types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from properties.row_form import Kind


@dataclass(frozen=True, repr=False)
class Expr:
    """A scalar expression: an operation and its arguments.

    Examples:
        >>> Expr("and", (compare(">", "v", 2), Expr("isnull", (col("k"),))))
        (v > 2) AND (k IS NULL)
    """

    op: str
    args: tuple[Any, ...]

    def __repr__(self) -> str:
        return to_sql(self)


def col(name: str) -> Expr:
    """Refer to a column by name."""
    return Expr("col", (name,))


def lit(value: int | str | None) -> Expr:
    """Stand for a constant."""
    return Expr("lit", (value,))


def compare(op: str, name: str, value: int | str) -> Expr:
    """Compare a column with a constant."""
    return Expr(op, (col(name), lit(value)))


def refs(expr: Expr) -> frozenset[str]:
    """Name the columns that an expression reads."""
    if expr.op == "col":
        return frozenset(expr.args)
    return frozenset().union(*(refs(arg) for arg in expr.args if isinstance(arg, Expr)))


def substitute(expr: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """Replace column references by their definitions."""
    if expr.op == "col":
        return definitions.get(expr.args[0], expr)
    args = tuple(substitute(a, definitions) if isinstance(a, Expr) else a for a in expr.args)
    return Expr(expr.op, args)


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Split an expression at its outermost ANDs."""
    if expr.op != "and":
        return (expr,)
    return tuple(part for arg in expr.args for part in conjuncts(arg))


_INFIX = {"and": "AND", "or": "OR"} | {
    op: op for op in ("+", "-", "*", "%", "=", "<>", "<", "<=", ">", ">=", "<=>")
}
_TIMES = {
    "later": "{0} + make_dt_interval(0, 0, 0, {1})",
    "from_text": "CAST(CAST({0} AS STRING) AS TIMESTAMP)",
    "from_seconds": "to_timestamp(date_format({0}, 'yyyy-MM-dd HH:mm:ss'))",
    "from_json": "CAST(get_json_object(to_json(named_struct('t', {0})), '$.t') AS TIMESTAMP)",
    "minute": "date_trunc('minute', {0})",
}
"""Times that are made of times."""
_POSTFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _operand(arg: Expr) -> str:
    text = to_sql(arg)
    return f"({text})" if arg.op in _INFIX or arg.op in _POSTFIX else text


def to_sql(expr: Expr) -> str:
    """Write an expression as Spark SQL."""
    op, args = expr.op, expr.args
    if op == "col":
        return str(args[0])
    if op == "lit":
        return _literal(args[0])
    if op in _INFIX:
        return f" {_INFIX[op]} ".join(_operand(arg) for arg in args)
    if op in _POSTFIX:
        return f"{_operand(args[0])} {_POSTFIX[op]}"
    if op in ("start", "end"):
        return f"{to_sql(args[0])}.{op}"
    if op in _TIMES:
        return _TIMES[op].format(*map(to_sql, args))
    if op == "not":
        return f"NOT ({to_sql(args[0])})"
    if op == "in":
        return f"{_operand(args[0])} IN ({', '.join(to_sql(arg) for arg in args[1:])})"
    return f"{op}({', '.join(to_sql(arg) for arg in args)})"


_COLUMN_OPS: dict[str, Callable[..., Column]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a % b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a.eqNullSafe(b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
    "isnull": lambda a: a.isNull(),
    "isnotnull": lambda a: a.isNotNull(),
    "in": lambda a, *options: a.isin(*options),
    "coalesce": F.coalesce,
    "if": lambda test, yes, no: F.when(test, yes).otherwise(no),
    "upper": F.upper,
    "concat": F.concat,
    "length": F.length,
    "size": F.size,
    "second": F.second,
    "window_time": F.window_time,
    "later": lambda a, seconds: a + F.make_dt_interval(F.lit(0), F.lit(0), F.lit(0), seconds),
    "from_text": lambda a: a.cast("string").cast("timestamp"),
    "from_seconds": lambda a: F.to_timestamp(F.date_format(a, "yyyy-MM-dd HH:mm:ss")),
    "from_json": lambda a: F.get_json_object(F.to_json(F.struct(a.alias("t"))), "$.t").cast(
        "timestamp"
    ),
    "minute": lambda a: F.date_trunc("minute", a),
    "start": lambda a: a.getField("start"),
    "end": lambda a: a.getField("end"),
}


def to_column(expr: Expr) -> Column:
    """Write an expression with Spark's functions, columns by name."""
    if expr.op == "col":
        return F.col(expr.args[0])
    if expr.op == "lit":
        return F.lit(expr.args[0])
    return _COLUMN_OPS[expr.op](*(to_column(arg) for arg in expr.args))


def kind_of(expr: Expr, columns: Mapping[str, Kind]) -> Kind:
    """Tell the type of an expression over the given columns."""
    if expr.op == "col":
        return columns[expr.args[0]]
    if expr.op == "lit":
        return "string" if isinstance(expr.args[0], str) else "int"
    if expr.op in ("upper", "concat"):
        return "string"
    if expr.op in ("window_time", "start", "end", *_TIMES):
        return "timestamp"
    if expr.op in ("length", "size", "second"):
        return "int"
    kinds = {kind_of(arg, columns) for arg in expr.args[1 if expr.op == "if" else 0 :]}
    return "long" if "long" in kinds else next(iter(kinds))
