"""Questions about what a store holds: its streams, their rows, and whether those still matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from clew.ask.answer import refuse_unknown
from clew.ask.content import fetch, ids_table, places_of, select
from clew.ask.expires import Expiry, expiries
from clew.ask.find import find
from clew.ask.flow import Flow, flow_of
from clew.ask.opened import OpenStore
from clew.ask.recordings import Assertions, Recording, assertions, recordings
from clew.ask.row import Row, Rows
from clew.ask.streams import Streams, describe_stream
from clew.ask.where import Choice, Filter
from clew.expiry.horizon import horizon_of
from clew.expiry.status import expired, refuse_named, status_of
from clew.limits import under
from clew.upkeep.about import About, describe_store
from clew.upkeep.size import Size, measure

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from clew.ask.find import RowLike
    from clew.ask.where import Operator
    from clew.model import Status


_LIMIT = 1000


class Listing(OpenStore):
    """A store that says what is in it."""

    def about(self) -> About:
        """Say what the store is, how much it holds, and which state of it this is.

        Raises:
            NotAStoreError: The store is gone.
            StoreError: A file cannot be read.
        """
        return describe_store(self._store)

    def streams(self) -> Streams:
        """List the streams of the store by name, with what is committed of each."""
        snapshot = self._store.snapshot()
        return Streams(describe_stream(snapshot, each) for each in snapshot.streams.values())

    def flow(self) -> Flow:
        """Return all queries of the store as one flow of sources, steps and sinks."""
        return flow_of(self._store.snapshot())

    def size(self) -> Size:
        """Say how large the store is: bytes, files, rows and edges, by query and by kind."""
        return measure(self._store.snapshot())

    def rows(
        self,
        stream: str,
        where: str | None = None,
        limit: int | None = _LIMIT,
        order_by: str | None = None,
        *,
        filters: Iterable[tuple[str, Operator, Any]] = (),
        since: str | dt.datetime | None = None,
        until: str | dt.datetime | None = None,
        id: str | None = None,
        text: str | None = None,
        sort: str | None = None,
        descending: bool = False,
        offset: int = 0,
    ) -> Rows:
        """Find rows of a stream.

        Of a source, the store keeps the rows that contributed to a result. A row that was written
        several times (update mode) is shown once, as last written among the versions that match.

        Args:
            stream: The stream.
            where: A condition over the user's columns, in DuckDB's SQL.
            limit: At most so many rows; None for all. `Rows.total` has the number that match.
            order_by: Expressions to order by, in DuckDB's SQL; by time and id if left out.
            filters: A column, a comparison (`=`, `!=`, `<`, `<=`, `>`, `>=`, `contains`) and a
                value each; a field of a nested column is named `window.start`. All of them hold.
            since: Only rows with this event time or a later one.
            until: Only rows with this event time or an earlier one.
            id: Only rows whose id begins so, or that stand at `segment:position`.
            text: Only rows with this text in some column, in any case.
            sort: Order by this column.
            descending: Order the other way round.
            offset: Leave out so many rows at the start.

        Raises:
            UnknownStreamError: The store has no such stream.
            QueryError: DuckDB does not accept the condition or the order, there is no such
                column, or a value does not fit its column.
        """
        wanted = Choice(
            tuple(Filter(*each) for each in filters),
            since,
            until,
            id,
            text,
            sort,
            descending,
            offset,
        )
        with self._ask(stream) as question:
            return select(question, stream, where, order_by, limit, wanted)

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
            refuse_unknown(question, content)
            return Rows([content])[0]

    def recordings(self) -> list[Recording]:
        """List the streams whose rows were recorded, with how many there are."""
        return recordings(self._store.root)

    def assertions(self, stream: str, limit: int | None = _LIMIT) -> Assertions:
        """Return the recorded rows of a stream: id, time, sequence number and delay.

        They are there if the query was written with `.provenance(path, assertions=...)`.

        Args:
            stream: A source, a named frame, a result, or the stream behind a step (`"out.3"` for
                step 3 of the query that fills `out`).
            limit: At most so many rows; None for all. `total` has the number of all.

        Raises:
            UnknownStreamError: Nothing is recorded of such a stream.
        """
        with under(self._limits), self._engine.session() as session:
            return assertions(self._store.root, session, stream, limit)

    def status(self, stream: str, row: RowLike | Iterable[RowLike]) -> Status:
        """Say whether a row may still take part in results, or any of several rows.

        Args:
            stream: The stream of the row.
            row: The row, as in `backward`.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row.
            QueryError: It cannot be told which row is meant, or it is inside a query.
        """
        with self._ask(stream) as question:
            refuse_named(question, stream)
            content = fetch(question, stream, ids_table(find(question, stream, row)))
            return status_of(question, [content])

    def expiry(self, stream: str, row: RowLike) -> Expiry:
        """Say whether a row may still take part in results, and until when.

        Args:
            stream: The stream of the row.
            row: The row, as in `backward`.

        Returns:
            The status, the event time that the watermark must pass for the row to be expired, and
            the watermark; or why there is no such time.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row.
            QueryError: It cannot be told which row is meant, or it is inside a query.
        """
        with self._ask(stream) as question:
            refuse_named(question, stream)
            [found] = find(question, stream, row)
            return expiries(question, fetch(question, stream, ids_table([found])))[0]

    def alive(self, stream: str, limit: int | None = _LIMIT) -> Rows:
        """Find the rows of a stream that may still take part in results.

        Of a source, the store keeps the rows that contributed to a result.

        Args:
            stream: The stream.
            limit: At most so many rows; None for all. `Rows.total` has the number there are.

        Raises:
            UnknownStreamError: The store has no such stream.
            QueryError: The stream is a named frame inside a query.
        """
        return self._by_status(stream, limit, is_expired=False)

    def expired(self, stream: str, limit: int | None = _LIMIT) -> Rows:
        """Find the rows of a stream that can take part in nothing more.

        Args:
            stream: The stream.
            limit: At most so many rows; None for all. `Rows.total` has the number there are.

        Raises:
            UnknownStreamError: The store has no such stream.
            QueryError: The stream is a named frame inside a query.
        """
        return self._by_status(stream, limit, is_expired=True)

    def _by_status(self, stream: str, limit: int | None, *, is_expired: bool) -> Rows:
        with self._ask(stream) as question:
            refuse_named(question, stream)
            rows = places_of(question, stream)
            over = expired(horizon_of(question.snapshot), stream, rows)
            found = rows.filter(over if is_expired else pc.invert(over))
            ids = found.select(["_clew_a", "_clew_b"]).rename_columns(["a", "b"])
            return Rows([fetch(question, stream, ids.slice(0, limit))], ids.num_rows)
