"""Choose what the next step of a graph takes in, and say how far the queries then are."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.expiry.horizon import Horizon, Reached
from clew.expiry.parts import new_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from clew.expiry.parts import Part
    from clew.live.graph_state import Definition, State
    from clew.store.reader import Snapshot

MOST_EDGES = 500_000
"""How many edges a step takes at once, unless one unfolding has more: it bounds memory."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a step takes in.

    Attributes:
        snapshot: The store as it was seen.
        parts: What was finished.
        state: How far the graph is with them.
        horizon: What is expired then.
        more: There is more to take.
        timed: Some query has a watermark that counts.
    """

    snapshot: Snapshot
    parts: Sequence[Part]
    state: State
    horizon: Horizon
    more: bool
    timed: bool

    def sources(self) -> dict[str, frozenset[str]]:
        """Name the sources of each query whose results are taken."""
        streams = self.snapshot.streams
        return {p.writer: frozenset(streams[p.writer].sources) for p in self.parts}


def take(
    snapshot: Snapshot,
    definition: Definition,
    state: State,
    now: float,
    computed: Mapping[str, Collection[tuple[str, int]]] | None = None,
) -> Taken:
    """Choose what the next step takes in.

    Args:
        snapshot: The store.
        definition: The graph.
        state: How far it is.
        now: The time, as seconds since 1970.
        computed: Batches with intervals whose edges are in the store.
    """
    members = definition.members(snapshot)
    queues = [
        deque(new_parts(snapshot, q, state.taken.get(q, {}), (computed or {}).get(q, ())))
        for q in members
    ]
    parts: list[Part] = []
    edges = 0
    while any(queues):
        # The query that is furthest behind comes first.
        queue = min(filter(None, queues), key=lambda each: each[0].watermark_ms)
        if parts and edges + queue[0].edges > MOST_EDGES:
            break
        parts.append(queue.popleft())
        edges += parts[-1].edges
    after = _after(snapshot, definition, state, parts, members, now)
    active = [q for q in members if q not in after.idle]
    horizon = Horizon(snapshot, after.reached, active)
    timed = any(_waits(snapshot, query) for query in members)
    return Taken(snapshot, parts, after, horizon, any(queues), timed)


def _after(
    snapshot: Snapshot,
    definition: Definition,
    state: State,
    parts: Sequence[Part],
    members: Sequence[str],
    now: float,
) -> State:
    taken = {query: dict(runs) for query, runs in state.taken.items()}
    reached, moved = dict(state.reached), dict(state.moved)
    gaps, late = dict(state.gaps), dict(state.late)
    for query in members:
        moved.setdefault(query, now)
    for part in parts:
        known = reached.get(part.writer)
        comes_late = known is None or known.run != part.run or part.writer in state.idle
        if comes_late and (state.labels or state.done >= 0) and part.writer not in late:
            late[part.writer] = state.at_us
        taken.setdefault(part.writer, {})[part.run] = part.last
        if known is None or known.run != part.run or part.watermark_ms > known.watermark_ms:
            moved[part.writer] = now
        reached[part.writer] = Reached(part.run, part.last, part.watermark_ms)
        if part.gaps:
            gaps[part.writer] = gaps.get(part.writer, 0) + part.gaps
    idle = (
        tuple(q for q in members if now - moved[q] > definition.idle)
        if definition.idle is not None
        else ()
    )
    after = replace(
        state,
        step=state.step + 1,
        taken=taken,
        reached={q: r for q, r in reached.items() if q in members},
        moved={q: t for q, t in moved.items() if q in members},
        idle=idle,
        late=late,
        gaps=gaps,
    )
    return replace(
        after,
        at_us=max(state.at_us, _clock_us(snapshot, after, members)),
        late=_still_late(snapshot, after),
        repeating=tuple(q for q in members if _repeats(snapshot, q)),
    )


def _clock_us(snapshot: Snapshot, state: State, members: Sequence[str]) -> int:
    """Return the least watermark of the queries in whose state rows wait."""
    marks = []
    for query in members:
        if _waits(snapshot, query) and query not in state.idle:
            reached = state.reached.get(query)
            marks.append(0 if reached is None else reached.watermark_ms * 1000)
    return min(marks, default=0)


def _waits(snapshot: Snapshot, query: str) -> bool:
    """Tell whether rows wait in a query's state."""
    record = snapshot.streams.get(query)
    return record is not None and any(each["waits"] for each in record.bounds.values())


def _repeats(snapshot: Snapshot, query: str) -> bool:
    """Tell whether equal rows of a source are one row to a query, however late they come."""
    record = snapshot.streams.get(query)
    return record is not None and any(
        bound["by_arrival"] and ((snapshot.streams[source].identity or {}).get("kind") == "content")
        for source, bound in record.bounds.items()
    )


def _still_late(snapshot: Snapshot, state: State) -> dict[str, int | None]:
    """Leave out the queries that have come past everything that had expired before them."""
    late: dict[str, int | None] = {}
    for query, until in state.late.items():
        bounds = snapshot.streams[query].bounds.values()
        reached = state.reached.get(query)
        widths = [each["micros"] for each in bounds]
        sure = None not in widths and not any(each["by_arrival"] for each in bounds)
        if (
            not sure
            or until is None
            or reached is None
            or reached.watermark_ms * 1000 - max(widths, default=0) < until
        ):
            late[query] = until
    return late
