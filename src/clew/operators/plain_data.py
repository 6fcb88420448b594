"""Operators as plain data that JSON can hold, and back.

An operator is a frozen dataclass, so it is stored as its name and its fields. Fields hold numbers,
texts, types, other dataclasses and the user's columns; a column is written as SQL text that the
caller provides, since only the caller can tell whether a text is right. A function that only
computes a column from columns is written as the column it gives for stand-ins. Any other function
is not storable, and the error says so in words that complete "this step holds ...".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import GraphError
from clew.operators import machines as M
from clew.operators.admissible import FUNCTIONS, admit_sql, admit_type
from clew.operators.aggregate import Aggregate, Clock, Pivot
from clew.operators.dedup import Dedup
from clew.operators.join import Join
from clew.operators.keep import Keep
from clew.operators.named import Named
from clew.operators.ordered import Lane, Ordered
from clew.operators.project import DropAt, Project, Reshape
from clew.operators.property import Property
from clew.operators.setops import SetOperation
from clew.operators.union import Union
from clew.operators.unpivot import Unpivot
from clew.plan.merge import MERGES, Merge
from clew.plan.sql import column_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.plan.node import Operator

STORED: tuple[type, ...] = (
    *(Keep, Project, Reshape, DropAt, Unpivot, Named, Property),
    *(Aggregate, Pivot, Join, Dedup, SetOperation, Union, Ordered),
)
"""The operators that can be stored, if their parameters can."""

_PARTS: tuple[type, ...] = (
    *(Clock, Lane, M.Lookback, M.CountWindow, M.TimeWindow, M.ClockWindow),
    *(M.ValueWindow, M.BoundedSort, M.WindowJoin),
)
_BY_NAME = {each.__name__: each for each in (*STORED, *_PARTS)}
_PLAIN = (str, bool, int, type(None))
_ARGUMENTS = {"on": 2, "value": 1, "both": 2}
_ITEM = "_clew_item"


class NotStorableError(Exception):
    """Something of an operator cannot be written as data; the text says what it is."""


@dataclass(frozen=True, slots=True)
class Body:
    """A function of columns, as the column that it gives for stand-ins.

    Attributes:
        count: How many columns it takes.
        column: What it gives for `argument(0)`, `argument(1)`, ...
    """

    count: int
    column: Column


def argument(number: int) -> str:
    """Name the stand-in for an argument of a function."""
    return f"_clew_x{number}"


def opened(operator: Operator) -> dict[str, Any]:
    """Return an operator's fields, with functions turned into their bodies.

    Raises:
        NotStorableError: The operator is one that cannot be stored, or holds a function that is
            more than an expression.
    """
    if not isinstance(operator, STORED):
        called = operator.label.split(" by ")[0]
        msg = f"a Python function, `{called}`"
        raise NotStorableError(msg)
    fields = dataclasses.fields(operator)  # type: ignore[arg-type]
    # What is not handed in is not a parameter, but what the running process holds.
    return {f.name: _opened(f.name, getattr(operator, f.name)) for f in fields if f.init}


def _opened(name: str, value: Any) -> Any:
    if isinstance(value, Merge):
        return _opened_merge(value)
    if callable(value) and not isinstance(value, Column):
        return _body(name, value)
    return value


def _opened_merge(merge: Merge) -> Any:
    if MERGES.get(merge.name) == merge:
        return {"merge": merge.name}
    together = getattr(merge.together, "__name__", "")
    if getattr(F, together, None) is not merge.together:
        msg = "an aggregate of its own that is a Python function"
        raise NotStorableError(msg)
    return {"merge": together, "both": merge.both and _body("both", merge.both)}


def _body(name: str, function: Callable[..., Any]) -> Body:
    count = _ARGUMENTS.get(name, 1)
    try:
        column = function(*[F.col(argument(i)) for i in range(count)])
    except Exception as error:
        msg = "a Python function that is no expression"
        raise NotStorableError(msg) from error
    if not isinstance(column, Column):
        msg = "a Python function that is no expression"
        raise NotStorableError(msg)
    return Body(count, column)


def columns_in(value: Any) -> Iterator[Column]:
    """List the columns that a parameter holds, in a fixed order."""
    if isinstance(value, Column):
        yield value
    elif isinstance(value, Body):
        yield value.column
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from columns_in(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from columns_in(each)


def with_columns(value: Any, columns: Iterator[Column]) -> Any:
    """Put other columns in the place of those in a parameter, in the order of `columns_in`."""
    if isinstance(value, Column):
        return next(columns)
    if isinstance(value, Mapping):
        return {k: with_columns(each, columns) for k, each in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(with_columns(each, columns) for each in value)
    return value


def encode(value: Any, texts: Iterator[str]) -> Any:
    """Write a parameter as data.

    Args:
        value: The parameter; functions are opened.
        texts: The SQL of its columns, in the order of `columns_in`.

    Raises:
        NotStorableError: It is of a kind that cannot be written.
    """
    if isinstance(value, _PLAIN) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Column):
        return {"sql": next(texts)}
    if isinstance(value, Body):
        return {"function": next(texts), "of": value.count}
    if isinstance(value, T.DataType):
        return {"type": T.StructType().add("of", value).jsonValue()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, list):
        return [encode(each, texts) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(each, texts) for each in value]}
    if isinstance(value, Mapping):
        return {"map": [[encode(k, texts), encode(each, texts)] for k, each in value.items()]}
    if isinstance(value, _PARTS):
        fields = dataclasses.fields(value)  # type: ignore[arg-type]
        return {
            "part": type(value).__name__,
            "with": {f.name: encode(getattr(value, f.name), texts) for f in fields},
        }
    msg = f"a Python object, `{type(value).__name__}`"
    raise NotStorableError(msg)


def decode(data: Any) -> Any:
    """Read a parameter that was written by `encode`."""
    if isinstance(data, list):
        return [decode(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "sql" in data:
        return column_of(admit_sql(data["sql"]))
    if "function" in data:
        return _function(admit_sql(data["function"]), data["of"])
    if "type" in data:
        return T.StructType.fromJson(admit_type(data["type"]))["of"].dataType
    if "decimal" in data:
        return Decimal(data["decimal"])
    if "tuple" in data:
        return tuple(decode(each) for each in data["tuple"])
    if "map" in data:
        return {decode(k): decode(each) for k, each in data["map"]}
    return _BY_NAME[data["part"]](**{k: decode(each) for k, each in data["with"].items()})


def made(name: str, fields: Mapping[str, Any]) -> Operator:
    """Make an operator of its name and its decoded fields."""
    given = dict(fields)
    if isinstance(given.get("merge"), Mapping):
        given["merge"] = _merge(given["merge"])
    kind = _BY_NAME[name]
    if kind is Keep and given["verb"] == "filter":
        for each in given["args"]:
            if isinstance(each, str):
                admit_sql(each)
    operator: Operator = kind(**given)
    return operator


def _merge(said: Mapping[str, Any]) -> Merge:
    if "both" not in said:
        return MERGES[said["merge"]]
    if said["merge"] not in FUNCTIONS:
        msg = f"the store says to merge by `{said['merge']}`, which is no aggregate function."
        raise GraphError(msg)
    return Merge("own", getattr(F, said["merge"]), said["both"])


def _function(text: str, count: int) -> Callable[..., Column]:
    """Make a function of columns again.

    A text cannot name what a column that is handed over at run time will be, such as the variable
    of another function. So the columns are put into one item, over which the text is a function.
    """
    body = text
    for i in range(count):
        body = body.replace(argument(i), f"{_ITEM}.{argument(i)}")

    def applied(*columns: Column) -> Column:
        item = F.struct(*[c.alias(argument(i)) for i, c in enumerate(columns)])
        return F.call_function("transform", F.array(item), F.expr(f"{_ITEM} -> {body}"))[0]

    return applied
