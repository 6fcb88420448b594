"""The content of rows: a question and one state of the store, joined by SQL.

A `Question` is answered from one snapshot, so what is committed meanwhile does not show up halfway.
A row that was written several times (a source row in each batch it contributed to, a result in
update mode) is one row here; where its copies differ, the newest counts.
"""

# ruff: noqa: S608 (SQL is put together here from our own text; values travel as parameters)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from clew.exceptions import QueryError
from clew.query.row import Content, Rows
from clew.store.relations import Relation, rows_of
from clew.store.schema import UTC_TIME, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.model import RowId
    from clew.store.engine import Engine, Session
    from clew.store.reader import Snapshot
    from clew.store.records import Batch

_NEWEST = (
    "QUALIFY row_number() OVER "
    "(PARTITION BY r._clew_a, r._clew_b ORDER BY r._clew_version DESC) = 1"
)
_ORDER = "_clew_time NULLS LAST, _clew_a, _clew_b"


@dataclass(frozen=True, slots=True)
class Question:
    """One state of the store, and a cursor to read it with."""

    snapshot: Snapshot
    engine: Engine
    session: Session

    def rows_of(self, stream: str, among: Iterable[Batch] | None = None) -> Relation | None:
        """Select the rows of a stream, of all batches or of some; None if there are none."""
        files = self.snapshot.row_files(stream, among).paths
        return rows_of(self.engine.row_types(files)) if files else None

    def is_numbered(self, stream: str) -> bool:
        """Say whether positions in the stream are numbers that people can read."""
        identity = self.snapshot.streams[stream].identity or {}
        return "hash" not in str(identity.get("position", ""))


def ids_table(ids: Iterable[RowId]) -> pa.Table:
    """Put ids in a table of `stream`, `a` and `b`, each once."""
    rows = list(dict.fromkeys(ids))
    return pa.table(
        {
            "stream": pa.array([each.stream for each in rows], pa.string()),
            "a": pa.array([each.a for each in rows], pa.int64()),
            "b": pa.array([each.b for each in rows], pa.int64()),
        }
    )


def fetch(
    question: Question, stream: str, ids: pa.Table, among: Iterable[Batch] | None = None
) -> Content:
    """Look up the content of rows by id.

    Args:
        question: The state of the store.
        stream: The stream of the rows.
        ids: Their ids, in columns `a` and `b`, each once.
        among: The batches that are likely to hold them all. If they do not, all are searched.

    Returns:
        One row per id, ordered by time and id; `_clew_known` is false where there is no content.
    """
    relation = question.rows_of(stream, among)
    table = _unknown(ids) if relation is None else _join(question, relation, ids)
    if among is not None and not all(table.column("_clew_known").to_pylist()):
        return fetch(question, stream, ids)
    return Content(stream, table, question.is_numbered(stream))


def select(
    question: Question, stream: str, where: str | None, order_by: str | None, limit: int | None
) -> Rows:
    """Find rows by a condition on their columns.

    Raises:
        QueryError: DuckDB does not accept the condition or the order.
    """
    if limit is not None and limit < 1:
        msg = f"`limit` is at least 1, or None for all rows; got {limit}."
        raise QueryError(msg)
    relation = question.rows_of(stream)
    if relation is None:
        none = Content(stream, _unknown(ids_table([])), question.is_numbered(stream))
        return Rows([none])
    chosen = _choose(question, relation, where, order_by, limit)
    total = chosen.column("total")[0].as_py() if chosen.num_rows else 0
    question.session.register("chosen", chosen)
    columns = "".join(f", r.{quote(name)}" for name in relation.columns)
    table = question.session.table(
        f"SELECT r._clew_a, r._clew_b, r._clew_segment, r._clew_time, true AS _clew_known{columns} "
        f"FROM {relation.sql} r JOIN chosen c ON r._clew_a = c._clew_a AND r._clew_b = c._clew_b "
        "AND r._clew_version = c._clew_version ORDER BY c.place",
        relation.params,
    )
    return Rows([Content(stream, table, question.is_numbered(stream))], total)


def _choose(
    question: Question,
    relation: Relation,
    where: str | None,
    order_by: str | None,
    limit: int | None,
) -> pa.Table:
    """Find which version of which rows match, without reading their other columns."""
    # The newlines keep a comment at the end of an expression from hiding what follows it.
    condition = "true" if where is None else where
    order = _ORDER if order_by is None else f"{order_by}\n, {_ORDER}"
    asked = [
        f"{word} {text!r}"
        for word, text in (("the condition", where), ("the order", order_by))
        if text is not None
    ]
    chosen = question.session.user_table(
        "SELECT _clew_a, _clew_b, _clew_version, count(*) OVER () AS total "
        f"FROM (SELECT r.* FROM {relation.sql} r WHERE (\n{condition}\n) {_NEWEST}) r "
        f"ORDER BY {order}\n" + ("" if limit is None else f"LIMIT {limit}"),
        relation.params,
        asked=" or ".join(asked) or "the question",
        columns=list(relation.columns),
    )
    return chosen.append_column("place", pa.array(range(chosen.num_rows), pa.int64()))


def _join(question: Question, relation: Relation, ids: pa.Table) -> pa.Table:
    question.session.register("wanted", ids)
    columns = "".join(f", r.{quote(name)}" for name in relation.columns)
    return question.session.table(
        f"WITH found AS (SELECT r.* FROM {relation.sql} r JOIN wanted w "
        f"ON r._clew_a = w.a AND r._clew_b = w.b {_NEWEST}) "
        "SELECT w.a AS _clew_a, w.b AS _clew_b, r._clew_segment, r._clew_time, "
        f"r._clew_version IS NOT NULL AS _clew_known{columns} "
        "FROM wanted w LEFT JOIN found r ON r._clew_a = w.a AND r._clew_b = w.b "
        "ORDER BY r._clew_time NULLS LAST, w.a, w.b",
        relation.params,
    )


def _unknown(ids: pa.Table) -> pa.Table:
    number = ids.num_rows
    found = pa.table(
        {
            "_clew_a": ids.column("a"),
            "_clew_b": ids.column("b"),
            "_clew_segment": pa.nulls(number, pa.string()),
            "_clew_time": pa.nulls(number, UTC_TIME),
            "_clew_known": pa.array([False] * number, pa.bool_()),
        }
    )
    return found.sort_by([("_clew_a", "ascending"), ("_clew_b", "ascending")])
