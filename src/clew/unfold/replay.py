"""Replay: compute results again over the part of the sources that covers them, with their rows.

Ariadne's c-join and replay. The covering part is read as tables, without the rows that were late,
and the same graph is interpreted with `sets`; of what comes out, the wanted rows are kept. The
wanted rows' own values narrow the replay further: Spark pushes them down to the sources as far as
they hold there, e.g. the keys of a group.

A replay that does not give a wanted row again is an error, never a shorter answer.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.late import WithoutLate
from clew.capture.sets import SETS
from clew.exceptions import ReplayError
from clew.graph.columns import ID_A, ID_B, named
from clew.graph.node import interpret
from clew.unfold.reach import reach
from clew.unfold.tables import Span, as_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.graph.node import Node
    from clew.unfold.arrivals import Arrivals

MOST_NARROWED = 50
"""How many rows' own values a replay is narrowed by."""
_MOST_BROADCAST = 500_000
_SETTLED = (
    T.IntegralType,
    T.StringType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.DecimalType,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows to compute again.

    Attributes:
        ids: Their ids, each once, in columns `a` and `b`.
        count: How many there are.
        spans: The part of each source that covers them.
        values: Their values, if there are few.
    """

    ids: DataFrame
    count: int
    spans: Mapping[str, Span]
    values: Sequence[Mapping[str, Any]] = ()


def replay(node: Node, wanted: Wanted, arrivals: Arrivals | None, last: int | None) -> DataFrame:
    """Compute rows again, with the source rows behind each in hidden columns.

    Raises:
        ReplayError: Some of them did not come out again.
    """
    width = reach(node, whole=True)
    spans = {source: span.wider(width) for source, span in wanted.spans.items()}
    tables = as_tables(node, spans, arrivals, last)
    rows = interpret(tables.node, WithoutLate(SETS, tables.late), check=False).df
    attempts = [rows.filter(_narrowed(node, wanted.values)), rows] if wanted.values else [rows]
    count = 0
    for attempt in attempts:
        found = _kept(attempt, wanted).persist()
        count = found.select(ID_A, ID_B).distinct().count()
        if count == wanted.count:
            return found
        found.unpersist()
    msg = (
        f"a replay gave {count} of the {wanted.count} rows asked for: the source no longer "
        "holds all rows that the query read, or the query has changed since.\n\n"
        "Check that the pipeline is the one that ran, and that its source files are still there."
    )
    raise ReplayError(msg)


def replay_all(node: Node, arrivals: Arrivals | None, last: int | None) -> DataFrame:
    """Compute all results again that a query has emitted, of a query that carried nothing."""
    tables = as_tables(node, {}, arrivals, last)
    closed = None
    if arrivals is not None and last is not None:
        closed = arrivals.batches[last].watermark_ms * 1000
    capture = WithoutLate(SETS, tables.late, closed)
    built = interpret(tables.node, capture, check=False)
    return built.df.drop(*built.references)


def _kept(rows: DataFrame, wanted: Wanted) -> DataFrame:
    ids = wanted.ids.select(F.col("a").alias("_clew_w_a"), F.col("b").alias("_clew_w_b"))
    ids = F.broadcast(ids) if wanted.count <= _MOST_BROADCAST else ids
    same = (named(ID_A) == F.col("_clew_w_a")) & (named(ID_B) == F.col("_clew_w_b"))
    return rows.join(ids, same).drop("_clew_w_a", "_clew_w_b")


def _narrowed(node: Node, values: Sequence[Mapping[str, Any]]) -> Column:
    """Say in terms of the result's columns which rows are wanted.

    Values that may come out a little different, such as sums of floating-point numbers, are left
    out.
    """
    each = [_all(_equalities(node.schema, one)) for one in values]
    return reduce(lambda x, y: x | y, each)


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(lambda x, y: x & y, conditions, F.lit(True))


def _equalities(schema: T.StructType, values: Mapping[str, Any]) -> Iterable[Column]:
    """Compare the columns whose values come out the same again; windows are in the span already."""
    for field in schema.fields:
        if field.name not in values or not isinstance(field.dataType, _SETTLED):
            continue
        value = values[field.name]
        if isinstance(value, dt.datetime) and isinstance(field.dataType, T.TimestampType):
            value = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        column = named(field.name)
        yield column.isNull() if value is None else column == F.lit(value).cast(field.dataType)
