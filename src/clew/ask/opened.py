"""A store that is open: what questions need to be asked, and to compute what it lacks."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.ask.answer import content_of
from clew.ask.content import Question
from clew.exceptions import (
    ReplayError,
    StoreError,
    UnknownStreamError,
)
from clew.limits import Limits, under
from clew.store.edges import EdgeReader
from clew.store.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from clew.again.which_pipeline import Versions
    from clew.ask.row import Content
    from clew.ask.trace import Trace
    from clew.live.graph import LiveGraph
    from clew.plan.node import Node
    from clew.store.reader import Store


def need_spark() -> None:
    """Check that what is to be computed can be: Spark is installed.

    Raises:
        ReplayError: It is not.
    """
    from clew.again.session import need_spark

    need_spark()


class OpenStore:
    """A store with what it takes to ask it: DuckDB over its files, pipelines to compute with."""

    def __init__(
        self,
        store: Store,
        pipelines: Mapping[str, Node] | None = None,
        *,
        trust: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._trust = trust
        self._limits = limits or Limits()
        # What is computed on purpose, as by `unfold`, takes as long as it takes unless one says so.
        self._working = limits or Limits(seconds=None)
        self._pipelines = dict(pipelines or {})
        self._engine = Engine(store.root, self._limits)
        self._edges = EdgeReader(self._engine)
        self._finders: dict[str, tuple[Node | None, Versions]] = {}
        self._graphs: dict[str, LiveGraph] = {}
        self._following = threading.Lock()
        self._computing = threading.Lock()
        self._is_closed = False

    @property
    def path(self) -> str:
        """The store's folder."""
        return str(self._store.root)

    def pipeline(self, stream: str, version: str | None = None) -> Node:
        """Return the operator graph of the query that fills a stream.

        It is the one that was handed in or that runs in this process; else it is rebuilt from the
        store, with Spark.

        Args:
            stream: The stream.
            version: Which version of the query, as batches name it; the newest if left out.

        Raises:
            UnknownStreamError: The store has no such stream.
            ReplayError: It cannot be rebuilt; the message names the step.
        """
        self._refuse_unknown(stream)
        need_spark()
        versions = self._versions(stream)
        if versions.is_strange:
            return self._bound(stream, self._pipelines[stream])  # whoever uses it says what differs
        return versions.node_of(version or versions.newest)

    def _refuse_unknown(self, stream: str) -> None:
        snapshot = self._store.snapshot()
        if stream not in snapshot.streams:
            raise UnknownStreamError(stream, tuple(snapshot.streams))

    def _pipeline_behind(self, trace: Trace, stream: str) -> Node:
        """Return the pipeline that made the results of a trace.

        Raises:
            ReplayError: There are several, or some rest on what another version had gathered.
        """
        batches = [each for each in trace.batches if each.writer == stream]
        made_by = {each.version for each in batches}
        if len(made_by) > 1:
            msg = (
                f"the results were made by {len(made_by)} versions of the query that fills "
                f"`{stream}`, so no one pipeline makes them again.\n\nAsk for results of one "
                "version at a time."
            )
            raise ReplayError(msg)
        versions = self._versions(stream)
        for run in {each.run for each in batches}:
            changed = versions.over_a_change(run)
            for each in batches:
                if each.run == run and each.number in changed:
                    msg = (
                        f"the results of batch {each.number} of `{stream}` cannot be made again: "
                        f"{changed[each.number]}.\n\nAsk about results of later batches."
                    )
                    raise ReplayError(msg)
        return self.pipeline(stream, next(iter(made_by), None))

    def _bound(self, stream: str, node: Node) -> Node:
        """Let a pipeline hash ids as the store does, and keep what its query keeps."""
        from clew.plan.node import with_secret
        from clew.store.commit import store_secret, stored_mask

        root = self._store.root
        return with_secret(node, store_secret(root), stored_mask(root, stream))

    def _versions(self, stream: str) -> Versions:
        """Return what finds the pipeline for each version of the query that fills a stream."""
        from clew.again.which_pipeline import Versions

        given = self._pipelines.get(stream)
        known = self._finders.get(stream)
        if known is None or known[0] is not given:
            found = Versions(self._store.root, stream, given, trust=self._trust)
            known = self._finders[stream] = (given, found)
        return known[1]

    def _at_hand(self, stream: str) -> Versions | None:
        """Return the same if a pipeline was handed in, runs in this process or was rebuilt."""
        versions = self._versions(stream)
        return versions if versions.has_any else None

    def _rebuilt(self, stream: str) -> Node:
        """Rebuild the pipeline that fills a stream from the store; Spark is started if need be."""
        need_spark()
        return self._versions(stream).rebuild()

    def _look_up(self, stream: str, wanted: Mapping[str, pa.Table | None]) -> None:
        """Compute what the store lacks.

        A pipeline that is not at hand is rebuilt for the rows that a question is about. Where none
        are named, the rows of a whole stream, it is not: to start Spark for that is not what a
        question should do by itself. What cannot be computed stays a gap of the answer, but for
        the stream that was asked about.
        """
        for name, ids in wanted.items():
            if ids is None and self._at_hand(name) is None:
                continue
            try:
                need_spark()
                from clew.again.retrieve import Selection, retrieve

                pairs = None
                if ids is not None:
                    columns = [ids.column(name).to_pylist() for name in "ab"]
                    pairs = list(zip(*columns, strict=True))
                retrieve(self._store.root, name, self._versions(name), Selection(ids=pairs))
            except ReplayError:
                if name == stream or self._at_hand(name) is not None:
                    raise

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

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _ask(self, stream: str) -> Iterator[Question]:
        snapshot = self._store.snapshot()
        if stream not in snapshot.streams:
            raise UnknownStreamError(stream, tuple(snapshot.streams))
        try:
            with under(self._limits), self._engine.session() as session:
                yield Question(snapshot, self._engine, self._edges, session)
        except StoreError:
            # What was read before may be out of date as well.
            self._store.forget()
            self._engine.restart()
            raise
