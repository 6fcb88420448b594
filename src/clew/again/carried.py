"""From rows that carry their source rows to edges and contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.sets import from_column
from clew.operators.source import Source
from clew.plan.columns import ID_A, ID_B, JSON, named
from clew.sources.identity import may_repeat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from clew.plan.node import Node

_SAME = "_clew_same"
_EDGE = T.StructType(
    [
        T.StructField("sink", T.StringType()),
        T.StructField("sink_a", T.LongType()),
        T.StructField("sink_b", T.LongType()),
        T.StructField("source", T.StringType()),
        T.StructField("source_a", T.LongType()),
        T.StructField("source_b", T.LongType()),
    ]
)


def sources_of(rows: DataFrame) -> list[str]:
    """List the streams that the rows of a batch may come from."""
    prefix = from_column("")
    return [name.removeprefix(prefix) for name in rows.columns if name.startswith(prefix)]


def source_rows(rows: DataFrame, stream: str, *, apart: bool = False) -> DataFrame:
    """Return the content of the rows of one stream that contributed, each once.

    Args:
        rows: What they contributed to.
        stream: The stream.
        apart: Different rows may have one id: keep them all.
    """
    each = rows.select(F.explode(named(from_column(stream))).alias("e"))
    kind = each.schema["e"].dataType
    has_row = isinstance(kind, T.StructType) and "row" in kind.names
    row = F.col("e.row") if has_row else F.struct(F.lit(None).cast("string").alias("_"))
    found = each.select("e.a", "e.b", "e.segment", "e.time", row.alias("row"))
    return once(found, ["a", "b"], F.col("row"), apart=apart)


def once(rows: DataFrame, ids: list[str], row: Column, *, apart: bool) -> DataFrame:
    """Keep one of the rows that share an id; if that may not be theirs alone, of the equal ones."""
    if not apart:
        return rows.dropDuplicates(ids)
    # As text, since Spark cannot compare every type.
    marked = rows.withColumn(_SAME, F.sha2(F.to_json(row, JSON), 256))
    return marked.dropDuplicates([*ids, _SAME]).drop(_SAME)


def repeating(node: Node) -> frozenset[str]:
    """Name the sources of which different rows may have one id."""
    sources = [n.operator for n in node.walk() if isinstance(n.operator, Source)]
    return frozenset(s.origin.name for s in sources if may_repeat(s.origin.identity, s.df))


def edges_of(rows: DataFrame, writer: str, streams: list[str]) -> DataFrame:
    """Return the edges of a batch: from its rows to all streams, and from named frames on."""
    lists = []
    nested = False
    for stream in streams:
        array = named(from_column(stream))
        kind = rows.schema[from_column(stream)].dataType
        lists.append(_edges(writer, named(ID_A), named(ID_B), stream, array))
        inner = _sources_inside(kind)
        nested = nested or bool(inner)
        lists += [_edges_inside(stream, array, source) for source in inner]
    together = F.concat(*lists) if lists else F.array().cast(T.ArrayType(_EDGE))
    edges = rows.select(F.explode(together).alias("e")).select("e.*")
    # Several rows may come from one row of a named frame; its own edges are then met again.
    return edges.dropDuplicates() if nested else edges


def _sources_inside(kind: T.DataType) -> list[str]:
    element = kind.elementType if isinstance(kind, T.ArrayType) else kind
    if not isinstance(element, T.StructType) or "from" not in element.names:
        return []
    inner = element["from"].dataType
    return list(inner.names) if isinstance(inner, T.StructType) else []


def _edges(sink: str, a: Column, b: Column, source: str, array: Column) -> Column:
    def one(element: Column) -> Column:
        return F.struct(
            F.lit(sink).alias("sink"),
            a.alias("sink_a"),
            b.alias("sink_b"),
            F.lit(source).alias("source"),
            element["a"].alias("source_a"),
            element["b"].alias("source_b"),
        )

    return F.transform(array, one)


def _edges_inside(stream: str, array: Column, source: str) -> Column:
    def of(element: Column) -> Column:
        return _edges(stream, element["a"], element["b"], source, element["from"][source])

    return F.flatten(F.transform(array, of))
