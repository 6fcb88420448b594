"""A store that is open: what questions need to be asked, and to compute what it lacks."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.exceptions import (
    ReplayError,
    StoreError,
    UnknownStreamError,
)
from clew.query.answer import content_of
from clew.query.content import Question
from clew.store.edges import EdgeReader
from clew.store.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from clew.graph.node import Node
    from clew.live.graph import LiveGraph
    from clew.query.row import Content
    from clew.store.reader import Store


class OpenStore:
    """A store with what it takes to ask it: DuckDB over its files, pipelines to compute with."""

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

    def __exit__(self, *_: object) -> None:
        self.close()

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
