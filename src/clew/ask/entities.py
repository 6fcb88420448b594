"""Whose row an entity is, while edges are followed.

Jobs are reduced apart from each other and in any order, so an edge of a job says only that its
source is an entity. Here it is looked up, level by level, which job generated that entity: its row
then belongs to that job's stream, and the answer goes on through it. An entity that several jobs
generated has a row in the stream of each. Streams of Spark queries pass through untouched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.store.entity import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.ask.content import Question
    from clew.ask.scope import Route


class Entities:
    """Translates between rows as edges are stored and rows as they are answered with."""

    def __init__(self, question: Question, route: Route) -> None:
        self._question = question
        self._shared = question.snapshot.shared
        self._jobs = sorted(question.snapshot.jobs)
        self._is_backward = route.direction == "backward"
        # Entities that no job generated are no way to a scope that does not name them.
        self._only_owned = route.ends is not None and ENTITIES not in route.ends

    def writers(self, streams: Iterable[str]) -> frozenset[str]:
        """Return the jobs that may have generated the rows asked about, if those are entities."""
        asked = self._is_backward and ENTITIES in self._shared.intersection(streams)
        return frozenset(self._jobs) if asked else frozenset()

    def as_stored(self, rows: pa.Table) -> pa.Table:
        """Return rows under the names that the near side of stored edges has."""
        if not self._shared:
            return rows
        if self._is_backward:
            ours, others = _part(rows, {ENTITIES})
            return pa.concat_tables([others, *self._in_each_job(ours)])
        ours, others = _part(rows, self._shared)
        return pa.concat_tables([others, _once(_named(ours, ENTITIES))])

    def as_owned(self, edges: pa.Table, rows: pa.Table) -> pa.Table:
        """Return stored edges of rows under the names that an answer has for both sides."""
        if not self._shared or not edges.num_rows:
            return edges
        if not self._is_backward:
            return self._rename(edges, "source", _part(rows, self._shared)[0], must=True)
        asked = _part(rows, {ENTITIES})[0]
        if asked.num_rows:
            edges = self._rename(edges, "sink", asked, must=False)
        return self._rename(edges, "source", self._owners(edges), must=self._only_owned)

    def _owners(self, edges: pa.Table) -> pa.Table:
        """Find the entities at the far side that jobs generated, once for each job."""
        ids = edges.select(["source", "source_a", "source_b"]).rename_columns(["stream", "a", "b"])
        far = _once(_part(ids, {ENTITIES})[0])
        if not far.num_rows:
            return far
        question = self._question
        files = question.snapshot.edge_files(self._jobs)
        wanted = pa.concat_tables(self._in_each_job(far))
        found = question.edges.join(question.session, files, "sink", wanted)
        return _once(found.select(["sink", "sink_a", "sink_b"]).rename_columns(ids.column_names))

    def _in_each_job(self, rows: pa.Table) -> list[pa.Table]:
        return [_named(rows, job) for job in self._jobs]

    def _rename(self, edges: pa.Table, side: str, names: pa.Table, *, must: bool) -> pa.Table:
        """Give entities on one side of edges the names of other rows with the same id.

        Args:
            edges: The edges.
            side: The side.
            names: The rows.
            must: Leave out entities that are not among them.
        """
        session = self._question.session
        session.register("stored_edges", edges)
        session.register("owned_rows", names)
        session.register("shared_streams", pa.table({"name": sorted(self._shared)}))
        kept = "WHERE n.stream IS NOT NULL OR s.name IS NULL" if must else ""
        columns = ", ".join(
            f"coalesce(n.stream, e.{side}) AS {side}" if name == side else f"e.{name}"
            for name in edges.column_names
        )
        return session.table(
            f"SELECT {columns} FROM stored_edges e LEFT JOIN shared_streams s ON e.{side} = s.name "
            f"LEFT JOIN owned_rows n ON s.name IS NOT NULL AND e.{side}_a = n.a "
            f"AND e.{side}_b = n.b {kept}"
        )


def _part(rows: pa.Table, streams: set[str] | frozenset[str]) -> tuple[pa.Table, pa.Table]:
    """Part rows into those of some streams and the others."""
    mask = pc.is_in(rows.column("stream"), value_set=pa.array(sorted(streams), pa.string()))
    return rows.filter(mask), rows.filter(pc.invert(mask))


def _named(rows: pa.Table, stream: str) -> pa.Table:
    return rows.set_column(0, "stream", pa.array([stream] * rows.num_rows, pa.string()))


def _once(rows: pa.Table) -> pa.Table:
    return rows.group_by(rows.column_names).aggregate([])
