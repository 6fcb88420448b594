"""The door to a store: ask it for streams, for rows, for where they came from and went to.

Every question is answered from the batches that are committed when it is asked. A `Provenance` may
be kept open as long as one likes, and may be used from several threads.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.exceptions import (
    QueryError,
    ReplayError,
    StoreError,
    UnknownStreamError,
)
from clew.live.horizon import horizon_of
from clew.query.about import About, describe_store
from clew.query.answer import answer, content_of, lacking_edges, refuse_unknown
from clew.query.assertions import Assertions, Recording, assertions, recordings
from clew.query.choose import Choice, Filter
from clew.query.compare import Comparison, compare
from clew.query.content import Question, fetch, ids_table, places_of, select
from clew.query.erase import Erased, erase_content
from clew.query.expiry import Expiry, expiries
from clew.query.find import find
from clew.query.flow import Flow, flow_of
from clew.query.row import Row, Rows
from clew.query.scope import plan_route
from clew.query.size import Size, measure
from clew.query.status import expired, refuse_named, status_of
from clew.query.stream import Streams, describe_stream
from clew.query.trace import Trace, one_of
from clew.query.walk import walk
from clew.store.edges import EdgeReader
from clew.store.engine import Engine
from clew.store.reader import Store

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import Row as SparkRow
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.frame.frame import TracedFrame
    from clew.graph.node import Node
    from clew.live.graph import LiveGraph
    from clew.live.state import EngineName, Results
    from clew.model import Status
    from clew.query.choose import Operator
    from clew.query.find import RowLike
    from clew.query.influence import Influence
    from clew.query.minimize import Minimal
    from clew.query.prune import By, Pruned
    from clew.query.replay import Replay
    from clew.query.row import Content
    from clew.query.scope import Direction

_LIMIT = 1000


def _not_again(_: Trace, __: str) -> list[Any]:
    msg = "that was not asked for; `clew influence` does it"
    raise ReplayError(msg)


def open_store(
    path: str | os.PathLike[str], *, pipelines: Mapping[str, TracedFrame] | None = None
) -> Provenance:
    """Open a store to ask it questions.

    No Spark is needed, and a query may be writing to the store meanwhile. Only what was captured
    as pointers or intervals and is not unfolded yet is computed with Spark, from the pipeline that
    made it.

    Args:
        path: The folder that was named in `.provenance(path)`.
        pipelines: Traced frames by the name of the stream that they fill. Those that were written
            in this process are known, and most others are rebuilt from the store.

    Raises:
        NotAStoreError: The path holds no store.
        StoreVersionError: The store has a format that this version does not know.
        StoreError: The store cannot be read.

    Examples:
        >>> prov = open_store("prov/")  # doctest: +SKIP
        >>> prov.backward("stopped", {"car": 7})  # doctest: +SKIP
    """
    nodes = {name: frame.node for name, frame in (pipelines or {}).items()}
    return Provenance(Store(path), nodes)


class Provenance:
    """A store that answers questions; `clew.open` makes one."""

    def __init__(self, store: Store, pipelines: Mapping[str, Node] | None = None) -> None:
        self._store = store
        self._pipelines = dict(pipelines or {})
        self._engine = Engine(store.root)
        self._edges = EdgeReader(self._engine)
        self._graphs: dict[str, LiveGraph] = {}
        self._following = threading.Lock()
        self._computing = threading.Lock()
        self._is_closed = False

    @property
    def path(self) -> str:
        """The store's folder."""
        return str(self._store.root)

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
        with self._engine.session() as session:
            return assertions(self._store.root, session, stream, limit)

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

    def backward(
        self,
        stream: str,
        row: RowLike | Iterable[RowLike],
        scope: str | Iterable[str] | None = None,
        *,
        intermediate: bool = False,
    ) -> Trace:
        """Find the rows that a row was made from.

        Goes through every query in the store, down to the sources that no query fills.

        Args:
            stream: The stream of the row.
            row: The row: a `RowId` or its 32 digits (the value of `clew_id`), the text
                `segment:position` of a source row, a row of an earlier answer, a pyspark `Row` or
                a dict with values of enough columns to tell it apart; or several of these.
            scope: Stop at these streams or named frames, and answer with their rows only.
            intermediate: Answer with the rows of every stream and named frame on the way.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row; the message names the batches it holds.
            QueryError: It cannot be told which row is meant, or the scope is not on the way.
        """
        return self._trace("backward", stream, row, scope, every=intermediate)

    def forward(
        self,
        stream: str,
        row: RowLike | Iterable[RowLike],
        scope: str | Iterable[str] | None = None,
        *,
        intermediate: bool = False,
    ) -> Trace:
        """Find the results that a row took part in, so far.

        Goes through every query in the store; the answer holds the rows of each sink on the way.

        Args:
            stream: The stream of the row: a source, a named frame, or a sink that feeds others.
            row: The row, as in `backward`.
            scope: Stop at these streams or named frames, and answer with their rows only.
            intermediate: Answer with the rows of every stream and named frame on the way.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: No row of the store has these values. Rows of a source that
                contributed to nothing are not kept; asked for by id, they have an empty trace.
            QueryError: It cannot be told which row is meant, or the scope is not on the way.
        """
        return self._trace("forward", stream, row, scope, every=intermediate)

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

    def compare(self, stream: str, row: RowLike, other: RowLike) -> Comparison:
        """Compare what two rows of a stream were made from.

        Args:
            stream: The stream of both rows.
            row: The one, as in `backward`.
            other: The other.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row.
            QueryError: It cannot be told which rows are meant.
        """
        return compare(self.backward(stream, row), self.backward(stream, other))

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

    def erase(
        self,
        stream: str,
        row: RowLike,
        *,
        wait: bool = False,
        timeout: float | None = None,
        every: float = 1.0,
    ) -> Erased:
        """Take the content of a row out of the store, and say which results it went into.

        Ids, edges and event times stay. The source itself, the sinks of queries and Spark's own
        state are not the store's: erase the row there first.

        Args:
            stream: The stream of the row.
            row: The row, as in `backward`.
            wait: Wait until the row is expired; else a row that is alive is refused.
            timeout: Wait so many seconds at most.
            every: Seconds between two looks.

        Raises:
            RowNotFoundError: The store has no such row.
            QueryError: The row is alive, or not all results it went into are known.
        """
        began = time.monotonic()
        with self._ask(stream) as question:
            refuse_named(question, stream)
            [found] = find(question, stream, row)
        while self.status(stream, found) == "alive":
            waited = time.monotonic() - began
            if not wait or (timeout is not None and waited >= timeout):
                msg = (
                    f"`{found.text}` of `{stream}` is alive: queries may still make results of it, "
                    "and its content would come back with them.\n\nWait until they are past it: "
                    "`erase(..., wait=True)`, or `clew erase --wait`."
                )
                raise QueryError(msg)
            time.sleep(every)
        results = self.forward(stream, found)
        missing = [gap for gap in results.gaps if not gap.is_pruned]
        if missing:
            msg = (
                f"not all results of `{found.text}` are known: missing {missing[0]}.\n\n"
                "Compute them first: `clew unfold`, or `prov.unfold(stream)`."
            )
            raise QueryError(msg)
        copies = erase_content(self._store.snapshot(), found)
        return Erased(found, results, copies)

    def size(self) -> Size:
        """Say how large the store is: bytes, files, rows and edges, by query and by kind."""
        return measure(self._store.snapshot())

    def openlineage(
        self, namespace: str = "clew", *, since_batch: int = 0, every: int = 100
    ) -> list[dict[str, Any]]:
        """Return run events of OpenLineage for every query and run, from the store alone.

        The same store gives the same events. `clew.export.openlineage.write` puts them into a file,
        `clew.export.send.send` sends them to a server.

        Args:
            namespace: The namespace of jobs, and of datasets that no path is known of.
            since_batch: Leave out what is only about batches with smaller numbers.
            every: How many batches one event tells of.

        Raises:
            QueryError: The namespace is empty, or a number is not what it can be.
        """
        from clew.export.openlineage import events

        snapshot = self._store.snapshot()
        return list(events(snapshot, namespace=namespace, since_batch=since_batch, every=every))

    def prune(
        self,
        older_than: str | dt.timedelta | dt.datetime,
        *,
        by: By = "commit",
        streams: str | Iterable[str] | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Take the provenance of old batches out of the store, for good.

        A batch goes as a whole: its edges, the rows that it brought, and what was unfolded or
        recorded of it. Later answers name it as a gap, "pruned on" the date. Queries may run and
        others may ask meanwhile. A pruning that was interrupted is finished by the next.

        Args:
            older_than: How old, as in `"30 days"` or a `timedelta`; or the moment before which.
            by: What counts: `"commit"`, when the batch was committed, or `"event"`, the event time
                of the latest of its results.
            streams: Only the batches of the queries that fill these streams.
            dry_run: Only say what would go.

        Raises:
            UnknownStreamError: The store has no such stream.
            QueryError: A stream is filled by no query, or the age is none.
        """
        from clew.query.prune import prune

        return prune(self._store, older_than, by=by, streams=streams, dry_run=dry_run)

    def _by_status(self, stream: str, limit: int | None, *, is_expired: bool) -> Rows:
        with self._ask(stream) as question:
            refuse_named(question, stream)
            rows = places_of(question, stream)
            over = expired(horizon_of(question.snapshot), stream, rows)
            found = rows.filter(over if is_expired else pc.invert(over))
            ids = found.select(["_clew_a", "_clew_b"]).rename_columns(["a", "b"])
            return Rows([fetch(question, stream, ids.slice(0, limit))], ids.num_rows)

    def graph(
        self,
        queries: Iterable[str] | None = None,
        *,
        name: str = "live",
        engine: EngineName | None = None,
        results: Results | None = None,
        content: bool | None = None,
        idle: float | None = None,
        spark: SparkSession | None = None,
    ) -> LiveGraph:
        """Open a live graph of this store, or begin one.

        It holds a vertex for each result and for each source row that contributed, an edge for
        each contribution, and a label for each row that can take part in nothing more, each
        delivered once. Settings that are left out are as they were when the graph began.

        Args:
            queries: The queries whose results are in it; all of the store if left out.
            name: The graph; a store may have several.
            engine: `"operator"` (at first), which labels rows as early as can be and needs no
                Spark, or `"native"`, which runs on Spark's own operators.
            results: `"unique"` (at first) gives each result a vertex; `"merged"` gives results
                with equal content and event time one.
            content: Let vertices carry the content of their rows; true at first.
            idle: After so many seconds without progress a query no longer holds labels back.
            spark: The session for `"native"`, and to read the graph; the active one if left out.

        Raises:
            UnknownStreamError: A query is not in the store.
            StoreConflictError: The graph was begun with other settings.
        """
        from clew.live.graph import open_graph
        from clew.live.state import Definition

        said: dict[str, Any] = {
            "queries": None if queries is None else tuple(queries),
            "engine": engine,
            "results": results,
            "content": content,
            "idle": idle,
        }
        given = {key: value for key, value in said.items() if value is not None}
        return open_graph(self._store, self._pipeline, Definition(name=name, **given), given, spark)

    def live(
        self,
        queries: Iterable[str] | None = None,
        *,
        every: float = 1.0,
        spark: SparkSession | None = None,
        **settings: Any,
    ) -> DataFrame:
        """Return the live graph as a streaming DataFrame, and let it follow its queries.

        Write it where you like: `prov.live().writeStream.format("kafka")...`. A consumer that is
        slow falls behind on its own; neither the graph nor the queries wait for it.

        Args:
            queries: The queries whose results are in it; all of the store if left out.
            every: Seconds between two looks at what the queries have finished.
            spark: The session; the active one if left out.
            settings: All other settings of `graph`.
        """
        graph = self.graph(queries, spark=spark, **settings)
        with self._following:
            graph = self._graphs.setdefault(graph.name, graph)
        graph.advance()
        return graph.start(every).frame(spark)

    def unfold(
        self,
        stream: str,
        *,
        where: str | None = None,
        first: int | None = None,
        sample: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Compute the provenance of results that carry pointers or intervals, and keep it.

        With intervals only the chosen rows are computed; nothing is done for the others. Pointers
        are unfolded all at once, since one costs as much as all.

        Args:
            stream: The results.
            where: A condition over their columns, in Spark's SQL.
            first: At most so many, the oldest batches first.
            sample: A share between 0 and 1, chosen by row id, so always the same rows.
            progress: Called with the number of rows done and of all chosen.

        Returns:
            How many rows were computed; those known before are not counted.

        Raises:
            UnknownStreamError: The store has no such stream.
            ReplayError: The pipeline is neither known nor stored, or does not give the rows again.
        """
        node = self.pipeline(stream)
        from clew.unfold.retrieve import Selection, retrieve

        selection = Selection(where=where, first=first, sample=sample)
        return retrieve(self._store.root, stream, node, selection, progress)

    def replay(
        self,
        what: Trace | str,
        *,
        period: tuple[str | dt.datetime, str | dt.datetime] | None = None,
        what_if: Mapping[str, Callable[[DataFrame], DataFrame]] | None = None,
        tolerance: float = 1e-9,
    ) -> Replay:
        """Run a query again, and compare what comes out with what it had produced.

        Args:
            what: A trace: its results are made again from the rows in it. Or a stream: its results
                are made again from the sources.
            period: Of a stream, only the results between two moments.
            what_if: For each source to change, a function of a DataFrame of its rows that returns
                the rows as they shall be; differences are then what the change makes. Rows that
                come from the DataFrame keep their ids through its hidden columns, those that are
                added get new ones.
            tolerance: By how much floating-point numbers may differ, relative to their size.

        Raises:
            UnknownStreamError: The store has no such stream.
            ReplayError: The pipeline is neither known nor stored, or not the one that ran, or the
                sources are gone.
            QueryError: The trace does not begin at the sources of one query.
        """
        from clew.query.replay import replay_stream, replay_trace, stream_of

        snapshot = self._store.snapshot()
        if not isinstance(what, Trace):
            node = self.pipeline(what)
            return replay_stream(snapshot, what, node, period, what_if, tolerance)
        if period is not None or what_if is not None:
            msg = (
                "`period` and `what_if` are about the results of a stream.\n\n"
                'Write `prov.replay("stream", period=..., what_if=...)`.'
            )
            raise QueryError(msg)
        return replay_trace(snapshot, what, self.pipeline(stream_of(what)), tolerance)

    def influence(
        self,
        stream: str,
        row: RowLike,
        column: str | None = None,
        value: str | None = None,
        *,
        replay: bool = True,
    ) -> Influence:
        """Find the source rows that carry most of a result's value.

        The influence of a row is the value as it is, less the value without the row. The rows are
        those that the query itself read.

        Args:
            stream: The stream of the result.
            row: The result, as in `backward`.
            column: The column of the result; one that an aggregate makes if left out.
            value: The column of the source rows that is aggregated; by default the pipeline says.
            replay: Run the query again, with Spark, where the rows' own values do not tell.

        Returns:
            The rows with most influence first; or why it cannot be told.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row.
            QueryError: It cannot be told which row is meant, or there is no such column.
        """
        from clew.query.influence import influence

        trace = self.backward(stream, row, self._own_sources(stream))
        without_each = self._without_each if replay else _not_again
        return influence(self._store.root, trace, without_each, column, value)

    def _without_each(self, trace: Trace, column: str) -> list[Any]:
        node = self.pipeline(trace.stream)
        from clew.query.leave_out import without_each

        return without_each(self._store.snapshot(), trace, node, column)

    def minimize(
        self,
        stream: str,
        row: RowLike,
        condition: str | None = None,
        *,
        progress: Callable[[int, int, int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Minimal:
        """Find the smallest cause: the fewest source rows of a result that still produce it.

        The query is run again over ever fewer of the rows that the result was made from. What is
        found cannot lose a single row.

        Args:
            stream: The stream of the result.
            row: The result, as in `backward`.
            condition: What the result has to meet, in Spark's SQL over its columns. If left out,
                it only has to be there: the same group, window or pair.
            progress: Called with the number of tests done, the number of tests known to be needed
                and the size of the smallest set so far.
            stop: Asked between tests; once it says true, the smallest set so far is the answer.

        Raises:
            UnknownStreamError: The store has no such stream.
            RowNotFoundError: The store has no such row.
            ReplayError: The query cannot be run again.
            QueryError: It cannot be told which row is meant; Spark does not accept the condition,
                or the result does not meet it.
        """
        from clew.query.minimize import minimize

        node = self.pipeline(stream)
        trace = self.backward(stream, row, self._own_sources(stream))
        one_of(trace)
        return minimize(self._store.snapshot(), trace, node, condition, progress, stop)

    def _own_sources(self, stream: str) -> list[str] | None:
        """Name the streams that the query itself reads, where an answer would go beyond them."""
        snapshot = self._store.snapshot()
        writer = snapshot.writer(stream)
        own = snapshot.streams[writer].sources if writer is not None else ()
        beyond = [name for name in own if snapshot.writer(name) is not None]
        return list(own) if beyond else None

    def subscribe(
        self,
        stream: str,
        prop: str,
        to: Callable[[SparkRow], None] | str | Mapping[str, str],
        *,
        where: Column | str | None = None,
        checkpoint: str | None = None,
        trigger: Mapping[str, Any] | None = None,
    ) -> StreamingQuery | None:
        """Deliver results of a stream whose property meets a condition, while they are made.

        The pipeline that fills the stream is run beside it, with its properties and without any
        store; the same as `subscribe` on its traced frame.

        Args:
            stream: The stream of the results.
            prop: The property, as declared with `.property(...)`.
            to: A function that is called with each result, the name of a table, or options of
                Spark's Kafka sink.
            where: The condition, over the result's columns and its properties; all if left out.
            checkpoint: Where Spark keeps how far the delivery is.
            trigger: When to deliver, as Spark's `trigger` takes it.

        Returns:
            The running delivery of a stream; None for a table, which is delivered on return.

        Raises:
            UnknownStreamError: The store has no such stream.
            ReplayError: The pipeline is neither known nor stored.
            PropertyError: There is no such property.
        """
        from clew.run.subscribe import subscribe

        node = self.pipeline(stream)
        return subscribe(node, prop, where=where, to=to, checkpoint=checkpoint, trigger=trigger)

    def pipeline(self, stream: str) -> Node:
        """Return the operator graph of the query that fills a stream.

        It is the one that was handed in or that runs in this process; else it is rebuilt from the
        store, with Spark.

        Raises:
            UnknownStreamError: The store has no such stream.
            ReplayError: It cannot be rebuilt; the message names the step.
        """
        snapshot = self._store.snapshot()
        if stream not in snapshot.streams:
            raise UnknownStreamError(stream, tuple(snapshot.streams))
        return self._pipeline(stream) or self._rebuilt(stream)

    def _pipeline(self, stream: str) -> Node | None:
        """Return the pipeline that fills a stream, if it was handed in or runs in this process."""
        from clew.unfold.known import recall

        known = recall(self._store.root, stream)
        return self._pipelines.get(stream) or (known.node if known else None)

    def _rebuilt(self, stream: str) -> Node:
        """Rebuild the pipeline that fills a stream from the store; Spark is started if need be."""
        from clew.run.session import need_spark

        need_spark()
        from clew.run.rebuilt import rebuild

        node = self._pipelines[stream] = rebuild(self._store.root, stream)
        return node

    def _look_up(self, stream: str, wanted: Mapping[str, pa.Table | None]) -> None:
        """Compute what the store lacks.

        A pipeline that is not at hand is rebuilt for the rows that a question is about. Where none
        are named, the rows of a whole stream, it is not: to start Spark for that is not what a
        question should do by itself. What cannot be computed stays a gap of the answer, but for
        the stream that was asked about.
        """
        for name, ids in wanted.items():
            node = self._pipeline(name)
            try:
                node = self._rebuilt(name) if node is None and ids is not None else node
            except ReplayError:
                if name == stream:
                    raise
            if node is None:
                continue
            from clew.unfold.retrieve import Selection, retrieve

            pairs = None
            if ids is not None:
                columns = [ids.column(name).to_pylist() for name in "ab"]
                pairs = list(zip(*columns, strict=True))
            retrieve(self._store.root, name, node, Selection(ids=pairs))

    def _look(self, stream: str, ids: pa.Table) -> Content | None:
        """Look up rows on the way of an earlier answer; None once the store is closed."""
        if self._is_closed:
            return None
        with self._ask(stream) as question:
            return content_of(question, stream, ids)

    def close(self) -> None:
        """Stop following queries, and free what the store holds in memory."""
        self._is_closed = True
        with self._following:
            graphs = list(self._graphs.values())
            self._graphs.clear()
        for graph in graphs:
            graph.stop()
        self._engine.close()

    def __enter__(self) -> Provenance:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(self._store.snapshot().streams)
        return f"Provenance({self.path}: {names or 'no streams yet'})"

    def _repr_html_(self) -> str:
        from clew.notebook import provenance_page

        return provenance_page(self)

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
        *,
        every: bool,
    ) -> Trace:
        began = time.perf_counter()
        asked: set[str] = set()
        while True:
            self._edges.begin()
            with self._ask(stream) as question:
                route = plan_route(question.snapshot, direction, stream, scope, every=every)
                start = ids_table(find(question, stream, row))
                walked = walk(question, route, start)
                lacking = {
                    name: ids
                    for name, ids in lacking_edges(question, direction, stream, walked).items()
                    if name not in asked
                }
                if not lacking:
                    found = answer(question, route, stream, start, walked, began, self._look)
                    return found.asked_of(self)
            asked |= lacking.keys()
            with self._computing:
                self._look_up(stream, lacking)
