"""Which rows can take part in nothing more, given how far each query has come.

A row of a source is expired once it is so for every query that reads the source. Where rows wait in
a query's state, the query's watermark must be beyond the row's event time by more than the bound of
that query. Where a row may take part however late it comes, the query must have read it.

If another query reads the results of one, what it has of a row may wait there as well, and nothing
here says until when. So a row whose reader has readers stays alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.expiry.parts import new_parts
from clew.model import EdgesCome
from clew.store.entity import ENTITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clew.store.reader import Snapshot

_ANY = 1 << 63
_REST_OF_MILLISECOND = 999
"""Microseconds. Spark compares times with the watermark in milliseconds, and a join keeps a row
whose time is within the last one before its bound."""
_LOCATED = ("kafka", "parquet", "file")
"""Identities whose segment says which batch read a row."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a query has come: the last batch that was taken of it.

    Attributes:
        run: Its run.
        batch: The batch.
        watermark_ms: The watermark of that batch.
    """

    run: str
    batch: int
    watermark_ms: int

    def to_dict(self) -> dict[str, Any]:
        """Return the position as plain data that JSON can hold."""
        return {"run": self.run, "batch": self.batch, "watermark_ms": self.watermark_ms}


@dataclass(frozen=True, slots=True)
class Limit:
    """Which rows of a stream are expired.

    Attributes:
        before_us: Those with an event time before this; None if their time does not matter.
        read_by: Queries that must have read a row as well.
        never: None of them is, ever.
    """

    before_us: int | None = None
    read_by: tuple[str, ...] = ()
    never: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """How a query holds rows of a source: what must happen before they are expired for it.

    Attributes:
        query: The query.
        micros: How far its watermark must be beyond a row's event time; None if nothing says.
        watermark_us: How far its watermark is; None if it has none yet.
        waits: Rows wait in its state, so the watermark matters.
        by_arrival: It must have read a row as well.
        why: Why there is no bound, if there is none.
    """

    query: str
    micros: int | None
    watermark_us: int | None
    waits: bool
    by_arrival: bool
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reads:
    """What a query has read: ranges of positions in segments; all of a segment for a file."""

    ranges: Mapping[str, tuple[tuple[int, int], ...]]

    def has(self, segment: str | None, position: int) -> bool:
        """Tell whether the query has read a row; a row without a known segment is taken as not."""
        found = self.ranges.get(segment, ()) if segment is not None else ()
        return any(first <= position < end for first, end in found)

    def covers(self, other: Reads) -> bool:
        """Tell whether everything that another query has read was read here too."""
        return all(
            any(a <= first and end <= b for a, b in self.ranges.get(segment, ()))
            for segment, ranges in other.ranges.items()
            for first, end in ranges
        )


class Horizon:
    """What is expired, seen from one state of the store.

    Args:
        snapshot: The store.
        reached: How far each query has come; a query that is missing has done nothing yet.
        queries: The queries that count.
    """

    def __init__(
        self, snapshot: Snapshot, reached: Mapping[str, Reached], queries: Iterable[str]
    ) -> None:
        self._snapshot = snapshot
        self._reached = reached
        self._queries = tuple(queries)
        self._limits: dict[str, Limit] = {}
        self._reads: dict[str, Reads] = {}

    def readers(self, stream: str) -> tuple[str, ...]:
        """Name the queries that make rows from rows of a stream."""
        streams = self._snapshot.streams
        # Any job may use what another has generated, and its sources do not say so.
        read = ENTITIES if stream in self._snapshot.shared else stream
        return tuple(q for q in self._queries if q in streams and read in streams[q].sources)

    def behind(self, query: str) -> tuple[str, ...]:
        """Name the queries that may still make something of what a query makes, however far off."""
        if query in self._snapshot.shared:
            return ()  # whatever uses what jobs generate reads each of their streams directly
        found: list[str] = []
        ahead = [query]
        while ahead:
            new = [q for q in self._next(ahead.pop()) if q != query and q not in found]
            found += new
            ahead += new
        return tuple(q for q in found if not self._has_ended(q))

    def _next(self, query: str) -> list[str]:
        """Name the queries that read the results of a query, or may do so."""
        own = self._above(query)
        unknown = {
            name
            for name, record in self._snapshot.streams.items()
            if record.kind == "source"
            and (record.identity or {}).get("kind") == "clew"
            and name not in own
        }
        # A source with ids of results, under a name that no query has: it may be of any query.
        return [
            q
            for q in self._queries
            if q in self._snapshot.streams
            and (query in (read := self._snapshot.streams[q].sources) or unknown & set(read))
        ]

    def _above(self, query: str) -> set[str]:
        """Name the streams that a query's rows come from, however far off."""
        found: set[str] = set()
        ahead = [query]
        while ahead:
            record = self._snapshot.streams.get(ahead.pop())
            new = set(() if record is None else record.sources) - found
            found |= new
            ahead += new
        return found

    def limit(self, stream: str) -> Limit:
        """Say which rows of a source are expired."""
        if stream not in self._limits:
            self._limits[stream] = self._limit(stream)
        return self._limits[stream]

    def sink_limit(self, query: str) -> Limit:
        """Say which results of a query have no equal one still to come, by their event time."""
        record = self._snapshot.streams[query]
        widths = [each["micros"] for each in record.bounds.values()]
        if None in widths or any(each["by_arrival"] for each in record.bounds.values()):
            return Limit(never=True)
        return Limit(self._watermark_us(query) - max(widths, default=0))

    def _limit(self, stream: str) -> Limit:
        if any(query not in self._snapshot.streams for query in self._queries):
            return Limit(-_ANY)  # it has not begun, so what it will read is not known
        before, read_by = None, []
        for query in self.readers(stream):
            if self.behind(query):
                return Limit(never=True)
            bound = self._snapshot.streams[query].bounds.get(stream)
            if self._has_ended(query):
                continue
            if bound is None or bound["micros"] is None:
                return Limit(never=True)
            if bound["by_arrival"] and self.repeats(stream):
                return Limit(never=True)
            if bound["waits"] and self._is_timed_by_window(stream):
                return Limit(never=True)
            if bound["waits"]:
                at = self._watermark_us(query) - bound["micros"] - _REST_OF_MILLISECOND
                before = at if before is None else min(before, at)
            if bound["by_arrival"]:
                read_by.append(query)
        return Limit(before, tuple(read_by))

    def holds(self, stream: str) -> tuple[Hold, ...]:
        """Say how each query that may still make something of a stream holds its rows."""
        found = []
        for query in self.readers(stream):
            mark = self._watermark_us(query) or None
            for reader in self.behind(query):
                why = f"it reads what `{query}` makes of it, and until when is not known"
                found.append(Hold(reader, None, mark, waits=True, by_arrival=True, why=(why,)))
            if self._has_ended(query):
                continue
            bound = self._snapshot.streams[query].bounds.get(stream) or {}
            reasons = tuple(bound.get("why") or ())
            if not bound:
                reasons = ("the store does not say for how long it keeps rows",)
            elif bound["by_arrival"] and self.repeats(stream):
                reasons = (
                    *reasons,
                    "equal rows are one row here, so it may come again at any time",
                )
            elif bound["waits"] and self._is_timed_by_window(stream):
                why = f"by which time it reads these results is not known; `{stream}` names none"
                reasons = (*reasons, why)
            found.append(
                Hold(
                    query,
                    None if reasons else bound.get("micros"),
                    mark,
                    bool(bound.get("waits")),
                    bool(bound.get("by_arrival")),
                    reasons,
                )
            )
        return tuple(found)

    def _has_ended(self, query: str) -> bool:
        """Tell whether a query was a batch that is done: it reads nothing more."""
        reached = self._reached.get(query)
        known = self._snapshot.streams[query].checkpoints
        return reached is not None and reached.run in known and known[reached.run] is None

    def repeats(self, stream: str) -> bool:
        """Tell whether equal rows are one row, so that a row may come again at any time."""
        identity = self._snapshot.streams[stream].identity or {}
        return identity.get("kind") == "content"

    def _is_timed_by_window(self, stream: str) -> bool:
        """Tell whether rows have the end of their window for a time; a reader may go by another."""
        return self._snapshot.streams[stream].by_window

    def _watermark_us(self, query: str) -> int:
        reached = self._reached.get(query)
        return 0 if reached is None else reached.watermark_ms * 1000

    def is_read(self, stream: str, writer: str | None, segment: str | None, position: int) -> bool:
        """Tell whether all queries that must have read a row have done so.

        Args:
            stream: The row's source.
            writer: A query that made something of the row, so has read it; None if not known.
            segment: The row's segment.
            position: Its position there.
        """
        identity = (self._snapshot.streams[stream].identity or {}).get("kind")
        for query in self.limit(stream).read_by:
            if query == writer:
                continue
            if identity in _LOCATED:
                if not self.reads(query).has(segment, position):
                    return False
            elif not self._has_caught_up(query, stream):
                return False
        return True

    def reads(self, query: str) -> Reads:
        """Say what a query has read by now."""
        if query not in self._reads:
            self._reads[query] = self._find_reads(query)
        return self._reads[query]

    def _has_caught_up(self, query: str, stream: str) -> bool:
        """Tell whether a query has read all that any other reader of a source has.

        That can be told only of queries with the same sources.
        """
        streams = self._snapshot.streams
        others = [q for q in self.readers(stream) if q != query]
        if any(set(streams[q].bounds) != set(streams[query].bounds) for q in others):
            return False
        return all(self.reads(query).covers(self.reads(q)) for q in others)

    def _find_reads(self, query: str) -> Reads:
        reached = self._reached.get(query)
        if reached is None:
            return Reads({})
        checkpoint = self._snapshot.streams[query].checkpoints.get(reached.run)
        if checkpoint is None:
            return Reads({})
        from clew.sources.arrivals import Offsets, read_arrivals  # it needs Spark, asking does not

        kept = {
            each.number: Offsets(each.watermark_ms, each.offsets)
            for each in self._snapshot.batches.get(query, ())
            if each.run == reached.run and each.offsets
        }
        arrivals = read_arrivals(None, checkpoint, kept)
        ranges: dict[str, tuple[tuple[int, int], ...]] = {
            path: ((-_ANY, _ANY),)
            for path, batch in arrivals.files.items()
            if batch <= reached.batch
        }
        for (topic, partition), stretches in arrivals.topics.items():
            done = [s for s in stretches if s.batch <= reached.batch]
            if done:
                ranges[f"{topic}-{partition}"] = ((done[0].first, done[-1].end),)
        return Reads(ranges)


def horizon_of(snapshot: Snapshot) -> Horizon:
    """Say what is expired for all queries of a store, by what they have finished."""
    queries = [name for name, record in snapshot.streams.items() if record.kind == "sink"]
    reached: dict[str, Reached] = {}
    for query in queries:
        batches = snapshot.batches.get(query, ())
        asked = [each for each in batches if each.edges_come is EdgesCome.WHEN_ASKED]
        computed = {(each.run, each.number) for each in asked}
        for part in new_parts(snapshot, query, {}, computed):
            reached[query] = Reached(part.run, part.last, part.watermark_ms)
    return Horizon(snapshot, reached, queries)
