"""The door to a store: ask it for streams, for rows, for where they came from and went to.

Every question is answered from the batches that are committed when it is asked. A `Provenance` may
be kept open as long as one likes, and may be used from several threads.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from clew.exceptions import RowNotFoundError, StoreError, UnknownStreamError
from clew.query.content import Question, fetch, ids_table, select
from clew.query.find import find, why_not_found
from clew.query.path import paths
from clew.query.row import Content, Row, Rows
from clew.query.scope import plan_route
from clew.query.stream import Stream, describe_stream
from clew.query.trace import Trace
from clew.query.walk import Reached, Walk, walk
from clew.store.edges import EdgeReader
from clew.store.engine import Engine
from clew.store.reader import Store
from clew.store.records import worst

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator

    from clew.model import Exactness
    from clew.query.find import RowLike
    from clew.query.scope import Direction, Route
    from clew.store.records import Batch

_LIMIT = 1000


def open_store(path: str | os.PathLike[str]) -> Provenance:
    """Open a store to ask it questions.

    No Spark is needed, and a query may be writing to the store meanwhile.

    Args:
        path: The folder that was named in `.provenance(path)`.

    Raises:
        NotAStoreError: The path holds no store.
        StoreVersionError: The store has a format that this version does not know.
        StoreError: The store cannot be read.

    Examples:
        >>> prov = open_store("prov/")  # doctest: +SKIP
        >>> prov.backward("stopped", {"car": 7})  # doctest: +SKIP
    """
    return Provenance(Store(path))


class Provenance:
    """A store that answers questions; `clew.open` makes one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._engine = Engine(store.root)
        self._edges = EdgeReader(self._engine)

    @property
    def path(self) -> str:
        """The store's folder."""
        return str(self._store.root)

    def streams(self) -> list[Stream]:
        """List the streams of the store by name, with what is committed of each."""
        snapshot = self._store.snapshot()
        return [describe_stream(snapshot, each) for each in snapshot.streams.values()]

    def rows(
        self,
        stream: str,
        where: str | None = None,
        limit: int | None = _LIMIT,
        order_by: str | None = None,
    ) -> Rows:
        """Find rows of a stream.

        Of a source, the store keeps the rows that contributed to a result. A row that was written
        several times (update mode) is shown once, as last written among the versions that match.

        Args:
            stream: The stream.
            where: A condition over the user's columns, in DuckDB's SQL.
            limit: At most so many rows; None for all. `Rows.total` has the number that match.
            order_by: Expressions to order by, in DuckDB's SQL; by time and id if left out.

        Raises:
            UnknownStreamError: The store has no such stream.
            QueryError: DuckDB does not accept the condition or the order.
        """
        with self._ask(stream) as question:
            return select(question, stream, where, order_by, limit)

    def row(self, stream: str, row: RowLike) -> Row:
        """Return one row with its content.

        Args:
            stream: The stream.
            row: Its id, or anything else that `backward` takes for one row.

        Raises:
            RowNotFoundError: The store has no content of such a row.
            QueryError: It cannot be told which row is meant.
        """
        with self._ask(stream) as question:
            [found] = find(question, stream, row)
            content = fetch(question, stream, ids_table([found]))
            _refuse_unknown(question, content)
            return Rows([content])[0]

    def backward(
        self,
        stream: str,
        row: RowLike | Iterable[RowLike],
        scope: str | Iterable[str] | None = None,
    ) -> Trace:
        """Find the rows that a row was made from.

        Goes through every query in the store, down to the sources that no query fills.

        Args:
            stream: The stream of the row.
            row: The row: a `RowId` or its 32 digits (the value of `clew_id`), the text
                `segment:position` of a source row, a row of an earlier answer, a pyspark `Row` or
                a dict with values of enough columns to tell it apart; or several of these.
            scope: Stop at these streams or named frames, and answer with their rows only.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row; the message names the batches it holds.
            QueryError: It cannot be told which row is meant, or the scope is not on the way.
        """
        return self._trace("backward", stream, row, scope)

    def forward(
        self,
        stream: str,
        row: RowLike | Iterable[RowLike],
        scope: str | Iterable[str] | None = None,
    ) -> Trace:
        """Find the results that a row took part in, so far.

        Goes through every query in the store; the answer holds the rows of each sink on the way.

        Args:
            stream: The stream of the row: a source, a named frame, or a sink that feeds others.
            row: The row, as in `backward`.
            scope: Stop at these streams or named frames, and answer with their rows only.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: No row of the store has these values. Rows of a source that
                contributed to nothing are not kept; asked for by id, they have an empty trace.
            QueryError: It cannot be told which row is meant, or the scope is not on the way.
        """
        return self._trace("forward", stream, row, scope)

    def close(self) -> None:
        """Free what the store holds in memory."""
        self._engine.close()

    def __enter__(self) -> Provenance:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(self._store.snapshot().streams)
        return f"Provenance({self.path}: {names or 'no streams yet'})"

    @contextmanager
    def _ask(self, stream: str) -> Iterator[Question]:
        snapshot = self._store.snapshot()
        if stream not in snapshot.streams:
            raise UnknownStreamError(stream, tuple(snapshot.streams))
        try:
            with self._engine.session() as session:
                yield Question(snapshot, self._engine, self._edges, session)
        except StoreError:
            # What was read before may be out of date as well.
            self._store.forget()
            self._engine.restart()
            raise

    def _trace(
        self,
        direction: Direction,
        stream: str,
        row: RowLike | Iterable[RowLike],
        scope: str | Iterable[str] | None,
    ) -> Trace:
        began = time.perf_counter()
        self._edges.begin()
        with self._ask(stream) as question:
            route = plan_route(question.snapshot, direction, stream, scope)
            start = ids_table(find(question, stream, row))
            walked = walk(question, route, start)
            asked = _start(question, route, stream, start, walked)
            ends = [_end(question, *each) for each in sorted(walked.ends.items())]
            return Trace(
                direction=direction,
                stream=stream,
                start=Rows([asked]),
                rows=Rows(ends),
                path=paths(question.snapshot, walked.passed),
                exactness=_exactness(question, walked),
                gaps=tuple(sorted(walked.gaps)),
                seconds=time.perf_counter() - began,
                scope=_scope(route),
                _tables=tuple(walked.hops),
            )


def _scope(route: Route) -> tuple[str, ...] | None:
    return None if route.ends is None else tuple(sorted(route.ends))


def _start(question: Question, route: Route, stream: str, start: pa.Table, walked: Walk) -> Content:
    """Look up the rows asked about; refuse a derived row that the store has never seen."""
    if route.direction == "backward" and route.ends is None:
        content = fetch(question, stream, start, walked.first or None)  # all edges were found
    else:
        content = _content(question, stream, start, walked.first)
    if question.snapshot.writer(stream) is not None and walked.lost.num_rows:
        lost = set(zip(*(walked.lost.column(name).to_pylist() for name in "ab"), strict=True))
        _refuse_unknown(question, content, lost)
    return content


def _refuse_unknown(
    question: Question, content: Content, only: set[tuple[int, int]] | None = None
) -> None:
    for row in Rows([content]):
        if not row.known and (only is None or (row.id.a, row.id.b) in only):
            why = why_not_found(question, content.stream)
            raise RowNotFoundError(content.stream, f"`{row.id.text}`", why)


def _end(question: Question, stream: str, reached: Reached) -> Content:
    ids = pa.concat_tables(reached.ids)
    if len(reached.ids) > 1:
        ids = ids.group_by(ids.column_names).aggregate([])
    return _content(question, stream, ids, reached.batches)


def _content(question: Question, stream: str, ids: pa.Table, among: Collection[Batch]) -> Content:
    """Look up the content of rows, first in the batches that are likely to hold it.

    The copies of a source row are equal, so the batches of its edges will do. A derived row may
    have been written again, with other content: every batch with edges of it counts.
    """
    if question.snapshot.writer(stream) is not None:
        among = question.batches_of(stream, ids)
    return fetch(question, stream, ids, among or None)


def _exactness(question: Question, walked: Walk) -> Exactness:
    streams = question.snapshot.streams
    labels: list[str | None] = []
    for sink, source in walked.passed:
        for each in (sink, source):
            record = streams.get(each)
            if record is not None:
                labels += [record.exactness, (record.identity or {}).get("label")]
    return worst(labels)
