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

from clew.again.tables import as_tables
from clew.capture.late import WithoutLate
from clew.capture.sets import SETS
from clew.exceptions import ReplayError
from clew.plan.columns import ID_A, ID_B, named
from clew.plan.node import interpret
from clew.store.collect import put_rows
from clew.store.draft import ids_in, pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from clew.again.cover import Cover
    from clew.again.held import Held
    from clew.again.tables import Tables
    from clew.plan.node import Node
    from clew.sources.arrivals import Arrivals

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
        covers: The parts of each source that are needed.
        values: Their values, if there are few.
    """

    ids: pa.Table
    covers: Mapping[str, Cover]
    values: Sequence[Mapping[str, Any]] = ()


def replay(
    node: Node,
    wanted: Wanted,
    arrivals: Arrivals | None,
    last: int | None,
    draft: Path,
    held: Held | None = None,
) -> None:
    """Compute rows again into a new folder: their ids, and the source rows behind each.

    Args:
        node: The query.
        wanted: The rows.
        arrivals: When the rows of streams came in.
        last: Leave out what came after this batch.
        draft: The folder.
        held: What the query's tables held; None to take them as they are.

    Raises:
        ReplayError: Some of them did not come out again.
    """
    tables = as_tables(node, wanted.covers, arrivals, last, held=held)
    built = interpret(tables.node, WithoutLate(SETS, tables.late), check=False)
    rows = built.df
    attempts = [rows.filter(_narrowed(node, wanted.values)), rows] if wanted.values else [rows]
    ids = pairs(wanted.ids, "a", "b")
    found: set[tuple[int, int]] = set()
    for attempt in attempts:
        kept = _kept(attempt, wanted.ids).select(*[named(c) for c in built.annotation.columns])
        put_rows(kept, draft, few=wanted.ids.num_rows <= MOST_NARROWED)
        found = ids_in(sorted(draft.glob("*.parquet")), ID_A, ID_B)
        if found == ids:
            tables.refuse_changed()
            return
    tables.refuse_changed()
    msg = (
        f"a replay gave {len(found)} of the {len(ids)} rows asked for: the source no longer "
        "holds all rows that the query read, or the query has changed since.\n\n"
        "Check that the pipeline is the one that ran, and that its source files are still there."
    )
    raise ReplayError(msg)


def replay_all(node: Node, arrivals: Arrivals | None, last: int | None) -> tuple[DataFrame, Tables]:
    """Compute all results again that a query has emitted, of a query that carried nothing.

    Returns:
        The results, and what they are computed from, to be looked at again afterwards.
    """
    tables = as_tables(node, {}, arrivals, last)
    closed = None
    if arrivals is not None and last is not None:
        closed = arrivals.batches[last].watermark_ms * 1000
    capture = WithoutLate(SETS, tables.late, closed)
    built = interpret(tables.node, capture, check=False)
    return built.df.drop(*built.references), tables


def _kept(rows: DataFrame, ids: pa.Table) -> DataFrame:
    # A join even for one row: a condition on the id would sink to where windows are made, and Spark
    # 4.3 fails to compile it there. An inner one: a semi join sinks below sessions, to rows that do
    # not know theirs yet.
    wanted = rows.sparkSession.createDataFrame(ids.rename_columns(["_clew_w_a", "_clew_w_b"]))
    wanted = F.broadcast(wanted) if ids.num_rows <= _MOST_BROADCAST else wanted
    return rows.join(wanted, F.expr(f"{ID_A} = _clew_w_a AND {ID_B} = _clew_w_b"))


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
