"""Which source rows are behind each result, by the numbers that the source rows hold themselves.

Each capture's own way from what rows carry to edges, without a store, and with no more of the
source rows' content than the column `rid`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from clew.again.around import around
from clew.again.cover import covers
from clew.again.levels import SINK_A, SINK_B, Unfolding
from clew.again.reach import reach
from clew.again.replay import Wanted, replay
from clew.again.tables import as_tables
from clew.capture.pointers import Pointers
from clew.capture.sets import from_column
from clew.plan.columns import ID_A, ID_B, named
from proof.case import difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from clew.again.cover import Cover, Reach
    from clew.plan.node import Annotated, Node
    from clew.sources.arrivals import Arrivals

Edges = dict[tuple[int, int], frozenset[int]]
TEXT = "_clew_text"
FAILED = (PySparkException, Py4JJavaError)
"""What `toArrow` raises when Spark fails to compute a row."""


def with_sets(rows: DataFrame, text: str) -> list[dict[str, Any]]:
    """Compute rows that carry sets: their text, their id and the numbers of their source rows."""
    ids = rids(rows.columns)
    table = rows.selectExpr(f"{text} AS t", ID_A, ID_B, f"{ids} AS ids").toArrow()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def edges_of(rows: Iterable[Mapping[str, Any]]) -> Edges:
    """Put the edges of such rows together: equal rows may share an id."""
    edges: Edges = {}
    for row in rows:
        key = (row[ID_A], row[ID_B])
        edges[key] = edges.get(key, frozenset()) | frozenset(row["ids"])
    return edges


def with_pointers(node: Node, carried: Annotated, text: str) -> pa.Table:
    """Compute rows that carry pointers: their text, what they carry, a time if it says where."""
    where = around(node)
    own = [] if where is None else [named(where.column)]
    hidden = [named(c) for c in carried.annotation.columns]
    return carried.df.selectExpr(f"{text} AS {TEXT}", "*").select(TEXT, *own, *hidden).toArrow()


def against(traced: list[tuple[str, frozenset[int]]], truth: list[tuple[str, Any]]) -> str:
    """Compare rows and ids with the model, which may leave several choices for a row."""
    if all(len(choices) == 1 for _, choices in truth):
        return difference(((t, *choices) for t, choices in truth), traced)
    taken: dict[int, tuple[str, frozenset[int]]] = {}
    wrong = [row for row in traced if not _given(row, truth, taken, set())]
    return f"not among the choices: {wrong[:3]} of {truth}" if wrong else ""


def _given(
    row: tuple[str, frozenset[int]],
    truth: list[tuple[str, Any]],
    taken: dict[int, tuple[str, frozenset[int]]],
    tried: set[int],
) -> bool:
    """Give a row one of the model's rows of its own, for which others may have to change theirs."""
    for at, (text, choices) in enumerate(truth):
        if at not in tried and text == row[0] and row[1] in choices:
            tried.add(at)
            if at not in taken or _given(taken[at], truth, taken, tried):
                taken[at] = row
                return True
    return False


def same(want: Edges, got: Edges) -> str:
    if want == got:
        return ""
    wrong = {row: (want.get(row), got.get(row)) for row in {*want, *got}}
    shown = [f"{row}: {a} expected, {b} found" for row, (a, b) in wrong.items() if a != b]
    return "\n".join(shown[:5])


def same_replayed(
    spans: pa.Table,
    around: Reach,
    want: Edges,
    known: dict[str, Edges],
    again: Callable[[Mapping[str, Cover]], Edges],
) -> str:
    """Compare what a replay gives; two that would read the same are one."""
    covered = covers([spans], around)
    read = str(sorted(covered.items()))
    if read not in known:
        known[read] = again(covered)
    return same(want, known[read])


def rids(columns: list[str]) -> str:
    """Gather the source rows' own numbers from the hidden columns of `sets`, as SQL."""
    arrays = [f"transform(`{c}`, x -> x.row.rid)" for c in columns if c.startswith(from_column(""))]
    whole = ", ".join(f"coalesce({each}, CAST(array() AS ARRAY<BIGINT>))" for each in arrays)
    return f"concat({whole})"


def unfolded(
    node: Node, rows: pa.Table, carried: Annotated, arrivals: Arrivals | None = None
) -> Edges:
    """Follow the pointers of rows."""
    out: dict[tuple[int, int], set[int]] = {key: set() for key in _ids(rows)}
    if not rows.num_rows:
        return {}
    spark = node.plain.df.sparkSession
    annotation = carried.annotation
    assert isinstance(annotation, Pointers)
    hidden = [c for c in annotation.columns if c not in (ID_A, ID_B)]
    kind = ", ".join(f"`{name}` bigint" for name in (SINK_A, SINK_B, *hidden))
    values = [tuple(row.values()) for row in rows.select([ID_A, ID_B, *hidden]).to_pylist()]
    unfolding = Unfolding(as_tables(node, covers([rows], reach(node, whole=False)), arrivals))
    for found in unfolding.follow(spark.createDataFrame(values, kind), annotation, rows.num_rows):
        edges = found.edges
        if not found.has_content:
            contents = unfolding.rows_of(found.source)
            contents = contents.withColumnsRenamed({"a": "source_a", "b": "source_b"})
            edges = edges.join(contents, ["source_a", "source_b"])
        table = edges.selectExpr(SINK_A, SINK_B, "content.row.rid AS rid").toArrow()
        for edge in table.to_pylist():
            out.setdefault((edge[SINK_A], edge[SINK_B]), set()).add(edge["rid"])
    unfolding.close()
    return {key: frozenset(ids) for key, ids in out.items()}


def spans_of(node: Node, rows: pa.Table) -> pa.Table:
    """Say where the source rows of results lie of which only the columns are known."""
    where = around(node)
    return pa.table({} if where is None else where.spans(rows[where.column]))


def replayed(
    node: Node, rows: pa.Table, covered: Mapping[str, Cover], arrivals: Arrivals | None = None
) -> Edges:
    """Compute rows again over the parts of the sources that cover them."""
    if not rows.num_rows:
        return {}
    ids = rows.select([ID_A, ID_B]).group_by([ID_A, ID_B]).aggregate([])
    wanted = Wanted(ids.rename_columns(["a", "b"]), covered)
    with tempfile.TemporaryDirectory() as folder:
        replay(node, wanted, arrivals, None, Path(folder) / "draft")
        files = [str(f) for f in (Path(folder) / "draft").glob("*.parquet")]
        return _read(files)


def _read(files: list[str]) -> Edges:
    with duckdb.connect() as con:
        table = con.read_parquet(files)
        froms = [c for c in table.columns if c.startswith(from_column(""))]
        arrays = ", ".join(f'[x."row".rid FOR x IN "{c}"]' for c in froms)
        out: dict[tuple[int, int], frozenset[int]] = {}
        for a, b, *parts in table.project(f"{ID_A}, {ID_B}, {arrays}").fetchall():
            own = frozenset(rid for part in parts for rid in part or ())
            out[a, b] = out.get((a, b), frozenset()) | own
        return out


def _ids(rows: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(rows[ID_A].to_pylist(), rows[ID_B].to_pylist(), strict=True)
