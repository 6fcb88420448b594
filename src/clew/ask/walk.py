"""From rows along their edges to the ends of an answer, level by level.

Each level is one join of the rows reached so far with the committed edges, whatever their number.
A row is expanded once, so streams that feed each other in a circle come to an end. Beside the
edges, the walk keeps what tells how complete the answer is: rows without edges, and the missing
batches that could have held some.

Entities that jobs used are the one exception to "an edge says which stream its source row belongs
to": which job generated them is found on the way (`clew.ask.entities`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.ask.entities import Entities
from clew.limits import check_depth, check_edges, check_time
from clew.store.edges import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.ask.content import Question
    from clew.ask.scope import Route
    from clew.store.reader import Files
    from clew.store.records import Batch, Gap

_ID = ("stream", "a", "b")


@dataclass(slots=True)
class Reached:
    """Rows of one stream at the ends, and the batches whose edges led there."""

    ids: list[pa.Table] = field(default_factory=list)
    batches: set[Batch] = field(default_factory=set)


@dataclass(slots=True)
class Walk:
    """What a walk found.

    Attributes:
        hops: The edges of each level, each edge once.
        ends: The rows where it ended, by stream.
        passed: The pairs of sink and source stream whose edges it followed, each with the versions
            of the query that made them.
        gaps: Missing batches that could have held edges.
        first: The batches that hold the edges of the rows asked about.
        lost: The rows asked about that have no edges.
        batches: All batches that hold edges of the answer.
    """

    lost: pa.Table
    first: frozenset[Batch] = frozenset()
    hops: list[pa.Table] = field(default_factory=list)
    ends: dict[str, Reached] = field(default_factory=dict)
    passed: dict[tuple[str, str], set[str | None]] = field(default_factory=dict)
    gaps: set[Gap] = field(default_factory=set)
    batches: set[Batch] = field(default_factory=set)

    def add_ends(self, rows: pa.Table, batches: Iterable[Batch]) -> None:
        """Keep rows as ends of the answer."""
        for stream in rows.column("stream").unique().to_pylist():
            reached = self.ends.setdefault(stream, Reached())
            reached.ids.append(_of_streams(rows, {stream}))
            reached.batches.update(batches)


def walk(question: Question, route: Route, start: pa.Table) -> Walk:
    """Follow edges from rows to the ends.

    Args:
        question: The state of the store.
        route: The direction and the streams to pass.
        start: The rows to begin with, in columns `stream`, `a` and `b`, each once.
    """
    walker = _Walker(question, route)
    level = walker.expand(start)
    found = Walk(level.barren, level.batches)
    visited = [start]
    held = 0
    while True:
        found.gaps |= level.gaps
        if not level.edges.num_rows:
            return found
        found.hops.append(level.edges)
        held += level.edges.num_rows
        check_edges(held)
        found.batches |= level.batches
        for pair, versions in level.passed.items():
            found.passed.setdefault(pair, set()).update(versions)
        found.add_ends(_of_streams(level.far, walker.ends), level.batches)
        frontier = walker.minus(_of_streams(level.far, walker.onward), visited)
        if not frontier.num_rows:
            return found
        visited.append(frontier)
        check_depth(len(visited))
        check_time()
        level = walker.expand(frontier)
        if walker.keeps_barren:
            found.add_ends(level.barren, ())


@dataclass(frozen=True, slots=True)
class _Level:
    """The edges of the rows of one level, and the rows at their far side.

    Attributes:
        edges: Each edge once.
        batches: The batches that hold them.
        far: The rows at the far side.
        barren: The rows of the level that have no edges.
        gaps: Missing batches that could have held more edges.
        passed: The pairs of streams of the edges, and the versions of the query that made them.
    """

    edges: pa.Table
    batches: frozenset[Batch]
    far: pa.Table
    barren: pa.Table
    gaps: frozenset[Gap]
    passed: dict[tuple[str, str], set[str | None]]


class _Walker:
    def __init__(self, question: Question, route: Route) -> None:
        self.question = question
        self.route = route
        self.is_backward = route.direction == "backward"
        self.near, self.far = ("sink", "source") if self.is_backward else ("source", "sink")
        # A row that should have been made from something, and whose edges the store does not
        # have, is as far as the answer goes.
        self.keeps_barren = self.is_backward and route.ends is None
        self.entities = Entities(question, route)
        self.ends = self._ends()
        self.onward = self._onward()

    def _ends(self) -> frozenset[str]:
        if self.route.ends is not None:
            return self.route.ends
        if not self.is_backward or self.route.every:
            return self.route.ways
        writer = self.question.snapshot.writer
        return frozenset(each for each in self.route.ways if writer(each) is None)

    def _onward(self) -> frozenset[str]:
        ways = self.route.ways - (self.route.ends or frozenset())
        return frozenset(each for each in ways if self._writers({each}))

    def _writers(self, streams: Iterable[str]) -> frozenset[str]:
        """Return the writers that may hold edges of rows of some streams."""
        snapshot = self.question.snapshot
        if self.is_backward:
            writers = {snapshot.writer(each) for each in streams}
            return frozenset(each for each in writers if each is not None)
        return frozenset[str]().union(*(snapshot.followers(each) for each in streams))

    def expand(self, frontier: pa.Table) -> _Level:
        """Find the edges of all rows of a level, by one join."""
        streams = frontier.column("stream").unique().to_pylist()
        writers = self._writers(streams) | self.entities.writers(streams)
        files = self.question.snapshot.edge_files(writers)
        question = self.question
        known = self.entities.as_stored(frontier)
        raw = question.edges.join(question.session, files, self.near, known, self.route.ways)
        raw = self.entities.as_owned(raw, frontier)
        edges = raw.select(COLUMNS).group_by(list(COLUMNS)).aggregate([])
        edges = edges.sort_by([(name, "ascending") for name in COLUMNS])
        fruitful = _side(edges, self.near)
        barren = frontier.slice(0, 0)
        if fruitful.num_rows < frontier.num_rows:
            barren = self.minus(frontier, [fruitful])
        used = [files.batches[i] for i in raw.column("place").to_pylist()]
        return _Level(
            edges,
            frozenset(used),
            _side(edges, self.far),
            barren,
            frozenset(self._gaps(writers, raw, used, barren)),
            _pairs(raw, files),
        )

    def _gaps(
        self, writers: Iterable[str], raw: pa.Table, used: Sequence[Batch], barren: pa.Table
    ) -> set[Gap]:
        """Find the missing batches that could have held more edges of a level's rows.

        Forward, any batch could: a row may contribute again and again. Backward, a row's edges
        are committed together with the row, so a missing batch matters for rows without edges and
        for rows that were written more than once.
        """
        snapshot = self.question.snapshot
        gaps = {writer: snapshot.gaps(writer) for writer in writers if snapshot.gaps(writer)}
        if self.is_backward and gaps:
            doubtful = set(barren.column("stream").to_pylist()) | self._rewritten(raw, used)
            concerned = {snapshot.writer(each) for each in doubtful}
            gaps = {writer: found for writer, found in gaps.items() if writer in concerned}
        return {gap for found in gaps.values() for gap in found}

    def _rewritten(self, raw: pa.Table, used: Sequence[Batch]) -> set[str]:
        """Return the streams with rows whose edges come from more than one batch."""
        near = [raw.column(name).to_pylist() for name in _columns(self.near)]
        batches: dict[tuple[str, int, int], set[Batch]] = {}
        for *row, batch in zip(*near, used, strict=True):
            batches.setdefault((row[0], row[1], row[2]), set()).add(batch)
        return {row[0] for row, found in batches.items() if len(found) > 1}

    def minus(self, rows: pa.Table, others: Sequence[pa.Table]) -> pa.Table:
        """Return the rows that are in none of the other tables."""
        known = set(rows.column("stream").unique().to_pylist())
        others = [found for each in others if (found := _of_streams(each, known)).num_rows]
        if not others or not rows.num_rows:
            return rows
        self.question.session.register("many", rows)
        self.question.session.register("fewer", pa.concat_tables(others))
        return self.question.session.table(
            "SELECT m.* FROM many m ANTI JOIN fewer f "
            "ON m.stream = f.stream AND m.a = f.a AND m.b = f.b"
        )


def _columns(side: str) -> list[str]:
    return [side, f"{side}_a", f"{side}_b"]


def _side(edges: pa.Table, side: str) -> pa.Table:
    """Return the rows on one side of edges, each once."""
    rows = edges.select(_columns(side)).rename_columns(list(_ID))
    return rows.group_by(list(_ID)).aggregate([])


def _pairs(raw: pa.Table, files: Files) -> dict[tuple[str, str], set[str | None]]:
    columns = ["sink", "source", "place"]
    found: dict[tuple[str, str], set[str | None]] = {}
    for each in raw.select(columns).group_by(columns).aggregate([]).to_pylist():
        version = files.batches[each["place"]].version
        found.setdefault((each["sink"], each["source"]), set()).add(version)
    return found


def _of_streams(rows: pa.Table, streams: Iterable[str]) -> pa.Table:
    chosen = pa.array(sorted(streams), pa.string())
    return rows.filter(pc.is_in(rows.column("stream"), value_set=chosen))
