"""The content of rows: a question and one state of the store, joined by SQL.

A `Question` is answered from one snapshot, so what is committed meanwhile does not show up halfway.
A row that was written several times (a source row in each batch it contributed to, a result in
update mode) is one row here; where its copies differ, the newest counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from clew.ask.row import HIDDEN, Content, Rows
from clew.ask.where import Choice, order_of, terms_of
from clew.exceptions import QueryError
from clew.store.relations import Relation, rows_of
from clew.store.schema import UTC_TIME, quote
from clew.upkeep.about import state_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.model import RowId
    from clew.store.edges import EdgeReader
    from clew.store.engine import Engine, Session
    from clew.store.reader import Snapshot
    from clew.store.records import Batch

_SORT = ("_clew_time", "_clew_a", "_clew_b")
_ORDER = "_clew_time NULLS LAST, _clew_a, _clew_b"
_ALL = Choice()
_OURS = "r._clew_a, r._clew_b, r._clew_segment, r._clew_time, r._clew_known"


@dataclass(frozen=True, slots=True)
class Question:
    """One state of the store, and a cursor to read it with."""

    snapshot: Snapshot
    engine: Engine
    edges: EdgeReader
    session: Session

    def rows_of(self, stream: str, among: Iterable[Batch] | None = None) -> Relation | None:
        """Select the rows of a stream, of all batches or of some; None if there are none."""
        files = self.snapshot.row_files(stream, among).paths
        return rows_of(self.engine.row_types(files)) if files else None

    def batches_of(self, stream: str, ids: pa.Table) -> set[Batch]:
        """Return the batches that hold edges of rows of a stream towards its sources."""
        writer = self.snapshot.writer(stream)
        files = self.snapshot.edge_files([] if writer is None else [writer])
        found = self.edges.join(self.session, files, "sink", ids)
        return {files.batches[i] for i in found.column("place").unique().to_pylist()}

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
    is_source = question.snapshot.writer(stream) is None
    unlike = 0
    if relation is None:
        table = _unknown(ids)
    else:
        table, unlike = _join(question, relation, ids, alike=is_source)
    if among is not None and not all(table.column("_clew_known").to_pylist()):
        return fetch(question, stream, ids)
    return Content(stream, table, question.is_numbered(stream), unlike)


def places_of(question: Question, stream: str) -> pa.Table:
    """Return the id, segment and time of all rows of a stream, each once, ordered by time."""
    relation = question.rows_of(stream)
    if relation is None:
        return _unknown(ids_table([]))
    return question.session.table(
        f"SELECT DISTINCT ON (_clew_a, _clew_b) {_OURS} FROM {relation.sql} r ORDER BY {_ORDER}",
        relation.params,
    )


def select(
    question: Question,
    stream: str,
    where: str | None,
    order_by: str | None,
    limit: int | None,
    choice: Choice = _ALL,
) -> Rows:
    """Find rows by conditions on their columns.

    Raises:
        QueryError: DuckDB does not accept the condition or the order, or the choice does not fit
            the stream's columns.
    """
    if limit is not None and limit < 1:
        msg = f"`limit` is at least 1, or None for all rows; got {limit}."
        raise QueryError(msg)
    if choice.offset < 0:
        msg = f"`offset` is 0 or more; got {choice.offset}."
        raise QueryError(msg)
    relation = question.rows_of(stream)
    if relation is None:
        none = Content(stream, _unknown(ids_table([])), question.is_numbered(stream))
        return Rows([none], offset=choice.offset)
    chosen = _chosen(question, stream, relation, where, order_by, choice)
    columns = _listed(relation)
    question.session.register("chosen", chosen.slice(choice.offset, limit))
    table = question.session.table(
        f"SELECT {_OURS}{columns} "
        f"FROM {relation.sql} r JOIN chosen c ON r._clew_a = c._clew_a AND r._clew_b = c._clew_b "
        "AND r._clew_version = c._clew_version ORDER BY c._clew_place",
        relation.params,
    )
    content = Content(stream, table, question.is_numbered(stream))
    return Rows([content], chosen.num_rows, choice.offset)


def _chosen(
    question: Question,
    stream: str,
    relation: Relation,
    where: str | None,
    order_by: str | None,
    choice: Choice,
) -> pa.Table:
    """Find the rows that match, in order; a page of the same rows is found at once."""

    def find() -> pa.Table:
        return _newest(question, _match(question, stream, relation, where, order_by, choice))

    if where is not None or order_by is not None:
        return find()  # SQL may give something else each time
    key = (state_of(question.snapshot), stream, repr(replace(choice, offset=0)))
    known = question.engine.remembered.find(key)
    if known is None:
        known = find()
        question.engine.remembered.keep(key, known)
    return known


def _match(
    question: Question,
    stream: str,
    relation: Relation,
    where: str | None,
    order_by: str | None,
    choice: Choice,
) -> pa.Table:
    """Find which versions of which rows match, in order, without their content."""
    terms = terms_of(question, stream, relation, choice)
    order = order_of(stream, relation, choice)
    # The newlines keep a comment at the end of an expression from hiding what follows it.
    conditions = [f"(\n{each}\n)" for each in (where, *terms.conditions) if each is not None]
    order = order if order_by is None else f"{order_by}\n, {order}"
    asked = [
        f"{word} {text!r}"
        for word, text in (("the condition", where), ("the order", order_by))
        if text is not None
    ]
    found = question.session.user_table(
        "SELECT r._clew_a, r._clew_b, r._clew_version "
        f"FROM {relation.sql} r WHERE {' AND '.join(['r._clew_known', *conditions])} "
        f"ORDER BY {order}\n",
        {**relation.params, **terms.params},
        asked=" or ".join(asked) or "the question",
        columns=list(relation.columns),
    )
    return found.append_column("_clew_place", pa.array(np.arange(found.num_rows)))


def _newest(question: Question, rows: pa.Table) -> pa.Table:
    """Keep the newest version of each row, and the order of the rest."""
    if rows.group_by(["_clew_a", "_clew_b"]).aggregate([]).num_rows == rows.num_rows:
        return rows
    question.session.register("versions", rows)
    return question.session.table(
        "SELECT * FROM versions QUALIFY row_number() OVER "
        "(PARTITION BY _clew_a, _clew_b ORDER BY _clew_version DESC, _clew_place) = 1 "
        "ORDER BY _clew_place"
    )


def _unlike(question: Question, rows: pa.Table) -> int:
    """Count the ids under which rows lie that are not the same.

    A source row never changes: where its copies differ, its id is not its own, or its source was
    rewritten between two readings.
    """
    if rows.group_by(["_clew_a", "_clew_b"]).aggregate([]).num_rows == rows.num_rows:
        return 0
    question.session.register("copies", rows)
    found = question.session.table(
        "SELECT count(*) AS n FROM (SELECT _clew_a, _clew_b FROM (SELECT DISTINCT * EXCLUDE "
        "(_clew_version, _clew_segment, _clew_time) FROM copies WHERE _clew_known) "
        "GROUP BY ALL HAVING count(*) > 1)"
    )
    return int(found.column("n")[0].as_py())


def _join(
    question: Question, relation: Relation, ids: pa.Table, *, alike: bool
) -> tuple[pa.Table, int]:
    """Find rows by their ids; also count the ids whose copies differ where they should not."""
    question.session.register("wanted", ids)
    columns = _listed(relation)
    found = question.session.table(
        f"SELECT {_OURS}, r._clew_version{columns} "
        f"FROM {relation.sql} r JOIN wanted w ON r._clew_a = w.a AND r._clew_b = w.b",
        relation.params,
    )
    unlike = _unlike(question, found) if alike else 0
    places = pa.array(range(found.num_rows), pa.int64())
    found = _newest(question, found.append_column("_clew_place", places))
    if found.num_rows == ids.num_rows:
        wanted = [*HIDDEN, *relation.columns]
        return found.select(wanted).sort_by([(name, "ascending") for name in _SORT]), unlike
    question.session.register("found", found)
    table = question.session.table(
        "SELECT w.a AS _clew_a, w.b AS _clew_b, r._clew_segment, r._clew_time, "
        f"coalesce(r._clew_known, false) AS _clew_known{columns} "
        "FROM wanted w LEFT JOIN found r ON r._clew_a = w.a AND r._clew_b = w.b "
        "ORDER BY r._clew_time NULLS LAST, w.a, w.b"
    )
    return table, unlike


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


def _listed(relation: Relation) -> str:
    return "".join(f", r.{quote(name)}" for name in relation.columns)
