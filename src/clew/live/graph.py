"""A live graph: begin it, let it follow its queries, read it as a stream."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.exceptions import ReplayError, StoreConflictError, UnknownStreamError, WriterError
from clew.live.deliver import delivered_files
from clew.live.elements import SPARK_SCHEMA, elements_folder, graph_folder
from clew.live.graph_state import Definition, put_definition, read_definition
from clew.live.native import NativeEngine
from clew.live.operator import OperatorEngine
from clew.live.take import take
from clew.live.verify import verify
from clew.model import EdgesCome
from clew.steps import listen, unlisten
from clew.store.inside import refuse_links
from clew.store.lock import alone
from clew.store.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from clew.again.which_pipeline import Versions
    from clew.live.graph_state import EngineName, State
    from clew.live.verify import Report
    from clew.store.reader import Snapshot, Store

_log = logging.getLogger("clew")
_NEWS = ("batch committed", "unfolding committed")


@dataclass(frozen=True, slots=True)
class Delivered:
    """How many elements were delivered, in how many steps."""

    steps: int = 0
    vertices: int = 0
    edges: int = 0
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Member:
    """How far a graph is with one of its queries.

    Attributes:
        query: The query.
        watermark: The watermark of the last batch that is in the graph; None before the first.
        batch: That batch.
        still_for: Seconds since its watermark last moved.
        idle: It made no progress for so long that it no longer holds labels back.
        left_out: Results that rest on rows which had expired before the query came.
        gaps: Batches whose provenance is missing.
    """

    query: str
    watermark: dt.datetime | None
    batch: int | None
    still_for: float
    idle: bool
    left_out: int
    gaps: int


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """How far a graph is.

    Attributes:
        name: The graph.
        engine: What builds it.
        at: Its event time: the least watermark of its queries; None before the first.
        steps: How many steps were delivered.
        vertices: How many vertices.
        edges: How many edges.
        labels: How many labels.
        alive: How many source vertices have no label yet.
        members: Its queries.
    """

    name: str
    engine: str
    at: dt.datetime | None
    steps: int
    vertices: int
    edges: int
    labels: int
    alive: int
    members: tuple[Member, ...]


class LiveGraph:
    """The graph of what rows did and may still do; `Provenance.graph` makes one.

    Args:
        store: The store.
        definition: What the graph is.
        versions: Finds the pipelines of a query, for results that carry intervals; None if it is
            not known.
        spark: The session; the active one if left out.
    """

    def __init__(
        self,
        store: Store,
        definition: Definition,
        versions: Callable[[str], Versions | None],
        spark: SparkSession | None = None,
    ) -> None:
        self._store = store
        self._definition = definition
        self._versions = versions
        self._spark = spark
        self._engine: OperatorEngine | NativeEngine = (
            OperatorEngine(store.root, definition)
            if definition.engine == "operator"
            else NativeEngine(store.root, definition, spark)
        )
        self._thread: threading.Thread | None = None
        self._news = threading.Event()
        self._is_ending = False
        self._is_settled = False
        self._error: Exception | None = None

    @property
    def name(self) -> str:
        """The name of the graph in the store."""
        return self._definition.name

    @property
    def engine(self) -> EngineName:
        """What builds the graph."""
        return self._definition.engine

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries whose results are in the graph."""
        return self._definition.members(self._store.snapshot())

    def advance(self) -> Delivered:
        """Deliver everything that follows from what the queries have finished by now.

        Raises:
            ReplayError: Results carry intervals, and the pipeline that made them is not known.
        """
        with alone(graph_folder(self._store.root, self.name)):
            self._engine.flush()
            began = self._engine.state()
            more = True
            while more:
                before = self._engine.state()
                computed = self._compute_intervals()
                taken = take(
                    self._store.snapshot(), self._definition, before, time.time(), computed
                )
                if self._is_settled and not taken.parts and taken.state.idle == before.idle:
                    break
                self._engine.step(taken)
                more = taken.more
            self._engine.flush()
            self._is_settled = True
            return _between(began, self._engine.state())

    def start(self, every: float = 1.0) -> LiveGraph:
        """Follow the queries in a thread until `stop` is called.

        The engine `operator` takes what a query in this process finishes at once; to `native`
        many small steps would cost more than they bring.

        Args:
            every: Seconds between two looks at the store.
        """
        if self._thread is not None:
            return self
        self._is_ending = False
        self._engine.start()
        if self._definition.engine == "operator":
            listen(self._hear)
        self._thread = threading.Thread(
            target=self._follow, args=(every,), name=f"clew-live-{self.name}", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Deliver what is finished by now, and stop following.

        Raises:
            ClewError: A step failed; what it would have delivered comes with the next.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_ending = True
            self._news.set()
            thread.join()
            if self._definition.engine == "operator":
                unlisten(self._hear)
            self._engine.stop()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> LiveGraph:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = self._engine.state()
        return (
            f"LiveGraph({self.name}: {state.vertices} vertices, {state.edges} edges, "
            f"{state.labels} labels)"
        )

    def frame(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the elements as a streaming DataFrame, from the first one on.

        Args:
            spark: The session; the active one if left out.

        Raises:
            WriterError: There is no Spark session.
        """
        from pyspark.sql import SparkSession as Session

        spark = spark or self._spark or Session.getActiveSession()
        if spark is None:
            msg = (
                "a live graph is read with Spark, and this process has no session.\n\n"
                "Start one: `SparkSession.builder.getOrCreate()`."
            )
            raise WriterError(msg)
        folder = elements_folder(self._store.root, self.name)
        make_folder(folder)
        reader = spark.readStream.schema(SPARK_SCHEMA).option("recursiveFileLookup", "true")
        return reader.parquet(str(folder))

    def add(self, *queries: str) -> None:
        """Take the results of more queries in, from now on."""
        known = self._definition.queries
        if known is not None:
            self._change(replace(self._definition, queries=(*known, *queries)))

    def remove(self, *queries: str) -> None:
        """Take no more results of some queries in, and no longer wait for them."""
        left = tuple(q for q in self.queries if q not in queries)
        self._change(replace(self._definition, queries=left))

    def _change(self, definition: Definition) -> None:
        with alone(graph_folder(self._store.root, self.name)):
            put_definition(self._store.root, definition)
        self._definition = definition
        self._engine.definition = definition
        self._is_settled = False

    def status(self) -> GraphStatus:
        """Say how far the graph is, and which of its queries holds labels back."""
        state = self._engine.state()
        now = time.time()
        members = []
        for query in self.queries:
            reached = state.reached.get(query)
            has_time = reached is not None and reached.watermark_ms > 0
            members.append(
                Member(
                    query,
                    _time(reached.watermark_ms * 1000) if reached and has_time else None,
                    reached.batch if reached else None,
                    max(0.0, now - state.moved[query]) if query in state.moved else 0.0,
                    query in state.idle,
                    state.left_out.get(query, 0),
                    state.gaps.get(query, 0),
                )
            )
        return GraphStatus(
            self.name,
            self._definition.engine,
            _time(state.at_us) if state.at_us > 0 else None,
            state.step + 1,
            state.vertices,
            state.edges,
            state.labels,
            self._engine.alive(),
            tuple(members),
        )

    def verify(self, *, complete: bool = False) -> Report:
        """Check everything that was delivered against the requirements of a live graph."""
        return verify(delivered_files(self._store.root, self.name), complete=complete)

    def _hear(self, step: str, _: int) -> None:
        if step in _NEWS:
            self._news.set()

    def _follow(self, every: float) -> None:
        while True:
            self._news.wait(every)
            self._news.clear()
            ending = self._is_ending
            try:
                self.advance()
                self._error = None
            except Exception as error:  # noqa: BLE001 (told to whoever stops it)
                # The kind of error only: its text may hold values of rows, which no log should.
                _log.warning("live graph %s: %s", self.name, type(error).__name__)
                self._error = error
            if ending:
                return

    def _compute_intervals(self) -> dict[str, set[tuple[str, int]]]:
        """Compute the edges of results that carry intervals, all of them."""
        snapshot = self._store.snapshot()
        computed: dict[str, set[tuple[str, int]]] = {}
        taken = self._engine.state().taken
        for query in self._definition.members(snapshot):
            every = snapshot.batches.get(query, ())
            batches = [b for b in every if b.edges_come is EdgesCome.WHEN_ASKED]
            if batches and not snapshot.streams[query].keeps_rows:
                msg = (
                    f"the store keeps keys of `{query}` and not what its rows hold, so a live "
                    'graph has no vertices for them.\n\nRun the query with `content="all"`, or '
                    "leave it out: `prov.live([...])` takes the names of the queries to follow."
                )
                raise ReplayError(msg)
            done = taken.get(query, {})
            if not any(b.number > done.get(b.run, -1) and b.sink_rows for b in batches):
                continue
            versions = self._versions(query)
            if versions is None:
                msg = (
                    f"the results of `{query}` carry no edges, and they are computed from the "
                    "pipeline that made them, which this process does not know.\n\n"
                    'Hand it in: `clew.open(path, pipelines={"name": frame})`, or capture '
                    "pointers."
                )
                raise ReplayError(msg)
            from clew.again.retrieve import Selection, retrieve

            retrieve(self._store.root, query, versions, Selection())
            # What could not be computed holds the graph up: it has no edges, and is not without.
            gaps = {
                (gap.run, number)
                for gap in self._store.snapshot().gaps(query)
                if not gap.kind.is_pending
                for number in range(gap.first, gap.last + 1)
            }
            computed[query] = {(b.run, b.number) for b in batches} - gaps
        return computed


def open_graph(
    store: Store,
    versions: Callable[[str], Versions | None],
    wanted: Definition,
    given: Iterable[str],
    spark: SparkSession | None,
) -> LiveGraph:
    """Open a graph of a store, or begin it.

    Args:
        store: The store.
        versions: Finds the pipelines of a query.
        wanted: What the graph should be.
        given: The settings that were named; the others are as they were when it began.
        spark: The session.

    Raises:
        UnknownStreamError: A query is not in the store.
        StoreConflictError: The graph was begun with other settings.
        StoreError: The store has links, through which something else would be written or removed.
    """
    refuse_links(store.root)
    snapshot = store.snapshot()
    known = read_definition(store.root, wanted.name)
    if known is not None:
        for setting in ("engine", "results", "content"):
            if setting in given and getattr(known, setting) != getattr(wanted, setting):
                msg = (
                    f"the live graph `{wanted.name}` was begun with {setting} "
                    f"{getattr(known, setting)!r}, so elements of the two would not fit.\n\n"
                    'Give the new one a name of its own: `graph(name="...")`.'
                )
                raise StoreConflictError(msg)
        changes: dict[str, Any] = {n: getattr(wanted, n) for n in ("queries", "idle") if n in given}
        wanted = replace(known, **changes)
    _check(snapshot, wanted)
    if wanted != known:
        put_definition(store.root, wanted)
    return LiveGraph(store, wanted, versions, spark)


def _check(snapshot: Snapshot, definition: Definition) -> None:
    sinks = [n for n, record in snapshot.streams.items() if record.kind == "sink"]
    for query in definition.queries or ():
        record = snapshot.streams.get(query)
        if record is not None and record.kind != "sink":
            raise UnknownStreamError(query, tuple(sinks))


def _between(before: State, after: State) -> Delivered:
    return Delivered(
        after.step - before.step,
        after.vertices - before.vertices,
        after.edges - before.edges,
        after.labels - before.labels,
    )


def _time(micros: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(microseconds=micros)
