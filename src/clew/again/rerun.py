"""Run a query again over chosen source rows.

The rows are those of a trace, those of a period, or those of a period after somebody has added,
removed or changed some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.again.cover import Cover, Span
from clew.again.reach import reach
from clew.again.tables import Tables
from clew.capture.keys import KEYS
from clew.capture.late import WithoutLate
from clew.capture.sets import content
from clew.exceptions import ReplayError
from clew.operators.source import Source
from clew.plan.algebra import LATE
from clew.plan.columns import ID_A, ID_B, id_texts, is_hidden, named, quote
from clew.plan.mask import masking_with
from clew.plan.node import interpret, mask_of, rebuilt
from clew.plan.secret import hashing_with
from clew.sources.identity import KEPT_A, KEPT_B, KEPT_SEGMENT, KeptIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from clew.again.around import Around
    from clew.plan.node import Node, Operator

_KEPT = (KEPT_A, KEPT_B, KEPT_SEGMENT)
_ADDED = "what if"


def suffices(node: Node) -> bool:
    """Tell whether the source rows of a result are enough to make it again.

    They are not where a window could come out of the rows of another: one that overlaps it, before
    another aggregation. Then the period around them is needed.
    """
    near = reach(node, whole=False)
    return near.length == 0 or near.cell is not None


def over_rows(node: Node, rows: Mapping[str, pa.Table]) -> Tables:
    """Put rows in the place of the sources.

    Args:
        node: The query.
        rows: The rows of each source: `_clew_a`, `_clew_b`, `_clew_segment` and the user's columns.

    Raises:
        ReplayError: The content of a source was not kept.
    """
    sources: dict[int, Operator] = {}
    for each in node.walk():
        source = each.operator
        if not isinstance(source, Source):
            continue
        schema, name = source.origin.schema, source.origin.name
        table = rows.get(name)
        missing = [] if table is None else [c for c in schema.names if c not in table.column_names]
        if missing:
            msg = (
                f"the content of `{name}` is not in the trace (it has no `{missing[0]}`), so it "
                "cannot be run again from the trace alone.\n\nRun the period again instead: "
                "`prov.replay(stream, period=(begin, end))`."
            )
            raise ReplayError(msg)
        kept = T.StructType([*schema.fields, *_kept_fields()])
        spark = source.df.sparkSession
        df = spark.createDataFrame([], kept) if table is None else _frame(source, table)
        origin = replace(source.origin, identity=KeptIdentity())
        sources[each.id] = replace(source, origin=origin, df=df)
    return Tables(node.plain.df.sparkSession, rebuilt(node, sources))


@dataclass(frozen=True, slots=True)
class Period:
    """The results between two moments, of a query whose results say when they were.

    Attributes:
        span: The moments.
        where: The results' column that says when, and how far from it their source rows lie.
    """

    span: Span
    where: Around

    def keep(self, rows: DataFrame) -> DataFrame:
        """Keep the results of the period."""
        time = F.col("row").getField(self.where.column)
        micros = F.unix_micros(time.getField("end") if self.where.is_window else time)
        return rows.filter((micros >= self.span.low) & (micros <= self.span.high))

    def covers(self, node: Node) -> dict[str, Cover]:
        """Say which parts of the sources the results of the period need."""
        near = reach(node, whole=True).length
        if near is None:
            return {}
        around = self.where.micros + near
        part = Cover((Span(self.span.low - around, self.span.high + around),))
        return dict.fromkeys(self.where.sources, part)


def changed_by(tables: Tables, what_if: Mapping[str, Callable[[DataFrame], DataFrame]]) -> Tables:
    """Let somebody change the rows of sources.

    Rows keep their ids as long as the hidden columns come along. Rows that are added have none and
    get one of their content; they come in time.

    Raises:
        ReplayError: There is no such source, or a column is gone.
    """
    names = {n.operator.origin.name for n in tables.node.walk() if isinstance(n.operator, Source)}
    for name in what_if:
        if name not in names:
            msg = (
                f"`what_if` changes `{name}`, which is no source of the query; its sources are "
                f"{', '.join(f'`{each}`' for each in sorted(names))}."
            )
            raise ReplayError(msg)
    sources: dict[int, Operator] = {}
    for each in tables.node.walk():
        source = each.operator
        if isinstance(source, Source) and source.origin.name in what_if:
            changed = what_if[source.origin.name](_with_ids(source))
            sources[each.id] = _replaced(source, changed)
    return replace(tables, node=rebuilt(tables.node, sources))


def results_of(tables: Tables, closed_us: int | None = None) -> DataFrame:
    """Compute the results: `a`, `b` and, as a struct in the store's form, `row`."""
    capture = WithoutLate(KEYS, tables.late, closed_us)
    df = interpret(tables.node, capture, check=False).df
    users = [(f.name, f.dataType) for f in df.schema.fields if not is_hidden(f.name)]
    with masking_with(mask_of(tables.node)):
        packed, _ = content(users)
    return df.select(named(ID_A).alias("a"), named(ID_B).alias("b"), F.expr(packed).alias("row"))


def stored_results(node: Node, files: Sequence[str]) -> DataFrame:
    """Read the results that a store holds; of a row that was written again, the last."""
    spark = node.plain.df.sparkSession
    if not files:
        return results_of(over_rows(node, {}))
    rows = spark.read.parquet(*files)
    last = F.max_by("row", F.col("_metadata.file_path")).alias("row")
    return rows.groupBy("a", "b").agg(last)


def _kept_fields() -> Iterator[T.StructField]:
    yield T.StructField(KEPT_A, T.LongType())
    yield T.StructField(KEPT_B, T.LongType())
    yield T.StructField(KEPT_SEGMENT, T.StringType())


def _frame(source: Source, table: pa.Table) -> DataFrame:
    hidden = source.origin.mask.hides(source.origin.schema.names)
    if hidden:
        msg = (
            f"the store does not keep `{hidden[0]}` of `{source.origin.name}` as it was (`mask`), "
            "so its rows cannot be run again from the store.\n\nRun the query again from its "
            'sources: `prov.replay("stream")`.'
        )
        raise ReplayError(msg)
    renamed = {"_clew_a": KEPT_A, "_clew_b": KEPT_B, "_clew_segment": KEPT_SEGMENT}
    columns = [*renamed, *source.origin.schema.names]
    given = _in_utc(table.select(columns), source.origin.schema)
    given = given.rename_columns([renamed.get(c, c) for c in columns])
    # Said, not guessed: Spark takes a time without a zone for one in the session's.
    users = [T.StructField(f.name, _nullable(f.dataType)) for f in source.origin.schema.fields]
    schema = T.StructType([*_kept_fields(), *users])
    return source.df.sparkSession.createDataFrame(given, schema)


def _nullable(kind: T.DataType) -> T.DataType:
    """Allow nulls everywhere, since the store does."""
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, _nullable(f.dataType)) for f in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_nullable(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(kind.keyType, _nullable(kind.valueType))
    return kind


def _cast(field: T.StructField) -> Column:
    return named(field.name).cast(field.dataType).alias(field.name)


def _in_utc(table: pa.Table, schema: T.StructType) -> pa.Table:
    """Say of points in time that they are in UTC, which is what the store means."""
    kinds = {f.name: f.dataType for f in schema.fields}
    fields = [f.with_type(_zoned(f.type, kinds.get(f.name))) for f in table.schema]
    return table.cast(pa.schema(fields))


def _zoned(kind: pa.DataType, wanted: T.DataType | None) -> pa.DataType:
    """Give times a zone where Spark has a point in time, and none where it has a wall clock."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC" if isinstance(wanted, T.TimestampType) else None)
    if pa.types.is_struct(kind) and isinstance(wanted, T.StructType):
        inside = {f.name: f.dataType for f in wanted.fields}
        return pa.struct([f.with_type(_zoned(f.type, inside.get(f.name))) for f in kind])
    if pa.types.is_list(kind) and isinstance(wanted, T.ArrayType):
        return pa.list_(_zoned(kind.value_type, wanted.elementType))
    if pa.types.is_map(kind) and isinstance(wanted, T.MapType):
        return pa.map_(kind.key_type, _zoned(kind.item_type, wanted.valueType))
    return kind


def _with_ids(source: Source) -> DataFrame:
    """Give rows their ids as columns, so that they stay when rows are changed."""
    if isinstance(source.origin.identity, KeptIdentity):
        return source.df
    a, b, segment = source.origin.columns()
    own = [f"{a} AS {KEPT_A}", f"{b} AS {KEPT_B}", f"{segment} AS {KEPT_SEGMENT}"]
    late = [LATE] if LATE in source.df.columns else []
    users = [quote(name) for name in source.origin.schema.names]
    return source.df.selectExpr(*users, *own, *late)


def _replaced(source: Source, changed: DataFrame) -> Source:
    schema = source.origin.schema
    missing = [name for name in schema.names if name not in changed.columns]
    if missing:
        msg = (
            f"the rows of `{source.origin.name}` that `what_if` returned have no column "
            f"`{missing[0]}`.\n\nReturn all columns of the source; add rows with "
            "`df.unionByName(more, allowMissingColumns=True)`."
        )
        raise ReplayError(msg)
    users = [_cast(f) for f in schema.fields]
    with hashing_with(source.origin.secret):
        a, b = id_texts([(quote(f.name), f.dataType) for f in schema.fields], finer=True)
    own = {KEPT_A: F.expr(a), KEPT_B: F.expr(b), KEPT_SEGMENT: F.lit(_ADDED)}
    kept = [
        (F.coalesce(named(c), given) if c in changed.columns else given).alias(c)
        for c, given in own.items()
    ]
    late = [named(LATE)] if LATE in changed.columns else []
    if LATE in source.df.columns and not late:
        late = [F.lit(None).cast("bigint").alias(LATE)]
    origin = replace(source.origin, identity=KeptIdentity())
    return replace(source, origin=origin, df=changed.select(*users, *kept, *late))
