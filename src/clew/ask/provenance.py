"""The door to a store: ask it for streams, for rows, for where they came from and went to.

Every question is answered from the batches that are committed when it is asked. A `Provenance` may
be kept open as long as one likes, and may be used from several threads.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from clew.ask.answer import answer, lacking_edges
from clew.ask.compare import Comparison, compare
from clew.ask.content import ids_table
from clew.ask.find import find
from clew.ask.listing import Listing
from clew.ask.scope import plan_route
from clew.ask.trace import Trace, one_of
from clew.ask.walk import walk
from clew.exceptions import (
    QueryError,
    ReplayError,
)
from clew.expiry.status import refuse_named
from clew.limits import check_time, under
from clew.store.reader import Store
from clew.upkeep.erase import Erased, erase_content

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import Row as SparkRow
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.ask.expires import Expiry
    from clew.ask.find import RowLike
    from clew.ask.influence import Influence
    from clew.ask.minimize import Minimal
    from clew.ask.outcome import Replay
    from clew.ask.scope import Direction
    from clew.frame.frame import TracedFrame
    from clew.limits import Limits
    from clew.live.graph import LiveGraph
    from clew.live.graph_state import EngineName, Results
    from clew.model import RowId
    from clew.plan.condition import Condition
    from clew.upkeep.prune import By, Pruned


def _not_again(_: Trace, __: str) -> list[Any]:
    msg = "that was not asked for; `clew influence` does it"
    raise ReplayError(msg)


def open_store(
    path: str | os.PathLike[str],
    *,
    pipelines: Mapping[str, TracedFrame] | None = None,
    trust: bool = False,
    limits: Limits | None = None,
) -> Provenance:
    """Open a store to ask it questions.

    No Spark is needed, and a query may be writing to the store meanwhile. Only what was captured
    as pointers or intervals and is not unfolded yet is computed with Spark, from the pipeline that
    made it.

    Args:
        path: The folder that was named in `.provenance(path)`.
        pipelines: Traced frames by the name of the stream that they fill. Those that were written
            in this process are known, and most others are rebuilt from the store.
        trust: Rebuild pipelines that another user's queries stored, too. What is rebuilt is run by
            Spark, so say so only if you would run a program of theirs.
        limits: What one question may take: by default 300 seconds and half of the memory. What is
            computed on purpose (`unfold`, `replay`, `minimize`) is only held to limits named here.

    Raises:
        NotAStoreError: The path holds no store.
        StoreVersionError: The store has a format that this version does not know.
        StoreError: The store cannot be read.

    Examples:
        >>> prov = open_store("prov/")  # doctest: +SKIP
        >>> prov.backward("stopped", {"car": 7})  # doctest: +SKIP
    """
    nodes = {name: frame.node for name, frame in (pipelines or {}).items()}
    return Provenance(Store(path), nodes, trust=trust, limits=limits)


class Provenance(Listing):
    """A store that answers questions; `clew.open` makes one."""

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
        with under(self._limits):
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
        with under(self._limits):
            return self._trace("forward", stream, row, scope, every=intermediate)

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
        with under(self._limits):
            return compare(self.backward(stream, row), self.backward(stream, other))

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
                raise QueryError(_alive(found, self.expiry(stream, found)))
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

    def openlineage(
        self, namespace: str = "clew", *, since_batch: int = 0, every: int = 100
    ) -> list[dict[str, Any]]:
        """Return run events of OpenLineage for every query and run, from the store alone.

        The same store gives the same events. `clew.show.openlineage.write` puts them into a file,
        `clew.show.send.send` sends them to a server.

        Args:
            namespace: The namespace of jobs, and of datasets that no path is known of.
            since_batch: Leave out what is only about batches with smaller numbers.
            every: How many batches one event tells of.

        Raises:
            QueryError: The namespace is empty, or a number is not what it can be.
        """
        from clew.show.openlineage import events

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
        from clew.upkeep.prune import prune

        return prune(self._store, older_than, by=by, streams=streams, dry_run=dry_run)

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
        from clew.live.graph_state import Definition

        said: dict[str, Any] = {
            "queries": None if queries is None else tuple(queries),
            "engine": engine,
            "results": results,
            "content": content,
            "idle": idle,
        }
        given = {key: value for key, value in said.items() if value is not None}
        return open_graph(self._store, self._at_hand, Definition(name=name, **given), given, spark)

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
        self._refuse_unknown(stream)
        from clew.again.retrieve import Selection, retrieve
        from clew.ask.opened import need_spark

        need_spark()
        selection = Selection(where=where, first=first, sample=sample)
        with under(self._working):
            return retrieve(self._store.root, stream, self._versions(stream), selection, progress)

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
        from clew.again.session import stopped_in_time
        from clew.ask.outcome import replay_stream, replay_trace, stream_of

        snapshot = self._store.snapshot()
        if not isinstance(what, Trace):
            batches = snapshot.batches.get(what, ())
            made_by = {each.version for each in batches if each.sink_rows != 0}
            node = self.pipeline(what, made_by.pop() if len(made_by) == 1 else None)
            with under(self._working), stopped_in_time(node.plain.df.sparkSession):
                return replay_stream(snapshot, what, node, period, what_if, tolerance)
        if period is not None or what_if is not None:
            msg = (
                "`period` and `what_if` are about the results of a stream.\n\n"
                'Write `prov.replay("stream", period=..., what_if=...)`.'
            )
            raise QueryError(msg)
        node = self._pipeline_behind(what, stream_of(what))
        with under(self._working), stopped_in_time(node.plain.df.sparkSession):
            return replay_trace(snapshot, what, node, tolerance)

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
        with under(self._limits):
            trace = self.backward(stream, row, self._own_sources(stream))
            return self._influence(trace, column, value, replay=replay)

    def influence_of(
        self, trace: Trace, column: str | None, value: str | None, *, replay: bool
    ) -> Influence:
        """Find the source rows that carry most of a traced result's value; see `influence`."""
        with under(self._limits):
            return self._influence_of(trace, column, value, replay=replay)

    def _influence_of(
        self, trace: Trace, column: str | None, value: str | None, *, replay: bool
    ) -> Influence:
        own = self._own_sources(trace.stream)
        if trace.scope is not None or own is not None or self._has_more_than_sources(trace):
            row = one_of(trace).id
            return self.influence(trace.stream, row, column, value, replay=replay)
        return self._influence(trace, column, value, replay=replay)

    def _has_more_than_sources(self, trace: Trace) -> bool:
        snapshot = self._store.snapshot()
        return any(snapshot.writer(name) is not None for name in trace.rows.streams)

    def _influence(
        self, trace: Trace, column: str | None, value: str | None, *, replay: bool
    ) -> Influence:
        from clew.ask.influence import influence

        without_each = self._without_each if replay else _not_again
        return influence(self._store.root, trace, without_each, column, value)

    def _without_each(self, trace: Trace, column: str) -> list[Any]:
        node = self._pipeline_behind(trace, trace.stream)
        from clew.again.session import stopped_in_time
        from clew.ask.leave_out import without_each

        with stopped_in_time(node.plain.df.sparkSession):
            return without_each(self._store.snapshot(), trace, node, column)

    def minimize(
        self,
        stream: str,
        row: RowLike,
        condition: str | Condition | None = None,
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
            condition: What the result has to meet: your own text in Spark's SQL over its columns,
                or a stranger's that `parse_condition` has read. If left out, it only has to be
                there: the same group, window or pair.
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
        from clew.again.session import stopped_in_time
        from clew.ask.minimize import minimize

        with under(self._working):
            trace = self.backward(stream, row, self._own_sources(stream))
            one_of(trace)
            node = self._pipeline_behind(trace, stream)
            with stopped_in_time(node.plain.df.sparkSession):
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

    def __enter__(self) -> Provenance:
        return self

    def __repr__(self) -> str:
        names = ", ".join(self._store.snapshot().streams)
        return f"Provenance({self.path}: {names or 'no streams yet'})"

    def _repr_html_(self) -> str:
        from clew.show.page import provenance_page

        return provenance_page(self)

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
            check_time()
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


def _alive(row: RowId, expiry: Expiry) -> str:
    """Say why a row is not erased, and what to do."""
    what = (
        f"`{row.text}` of `{row.stream}` is alive: queries may still make results of it, and its "
        f"content would come back with them: {expiry.why}.\n\n"
    )
    if expiry.has_end:
        return (
            f"{what}Wait until they are past it: `erase(..., wait=True)`, or `clew erase --wait`."
        )
    return (
        f"{what}Nothing says when that ends, so waiting (`wait=True`) helps only if the queries "
        "change; `clew status` says which step or query it is."
    )
