"""Which streams an answer passes, from the static part of the store alone.

Streams form a graph: a query leads from its sources to its sink, and the sink may be another
query's source. Named frames stand inside a query; an answer goes past them unless the scope names
them. A scope keeps the answer to the rows of some streams, and only ways that lead there are
followed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clew.exceptions import QueryError, UnknownStreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.reader import Snapshot

Direction = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True)
class Route:
    """The streams that an answer may pass.

    Attributes:
        direction: Towards sources or towards results.
        ends: The streams where the answer stops, or None for the natural ends.
        ways: The streams that may be stepped to.
        every: The rows of all of them are in the answer, not those at the ends alone.
    """

    direction: Direction
    ends: frozenset[str] | None
    ways: frozenset[str]
    every: bool = False


def plan_route(
    snapshot: Snapshot,
    direction: Direction,
    start: str,
    scope: str | Iterable[str] | None,
    *,
    every: bool = False,
) -> Route:
    """Find the streams that lie between a stream and the ends of an answer.

    Args:
        snapshot: The state of the store.
        direction: Towards sources or towards results.
        start: The stream to begin with.
        scope: The streams to stop at; the natural ends if left out.
        every: Answer with the rows of all streams and named frames on the way.

    Raises:
        UnknownStreamError: The scope names a stream that the store does not have.
        QueryError: The scope names a stream that does not lie on the way.
    """
    reached = _reach(snapshot, direction, start)
    if scope is None and every:
        return Route(direction, None, reached, every=True)
    if scope is None:
        return Route(direction, None, frozenset(s for s in reached if not snapshot.is_named(s)))
    if every:
        msg = (
            "`scope` keeps the answer to some streams, and `intermediate` asks for all.\n\n"
            "Leave one of them out."
        )
        raise QueryError(msg)
    ends = frozenset([scope] if isinstance(scope, str) else scope)
    for each in sorted(ends):
        if each not in snapshot.streams:
            raise UnknownStreamError(each, tuple(snapshot.streams))
        if each not in reached:
            raise _off_the_way(direction, start, each, reached)
    if not ends:
        msg = "the scope is empty: name at least one stream, or leave it out."
        raise QueryError(msg)
    ways = {
        each
        for each in reached
        if each in ends
        or (not snapshot.is_named(each) and _reach(snapshot, direction, each) & ends)
    }
    return Route(direction, ends, frozenset(ways))


def steps(snapshot: Snapshot, direction: Direction, stream: str) -> frozenset[str]:
    """Return the streams one edge away from a stream."""
    if direction == "backward":
        inputs = snapshot.origins(stream)
        if not snapshot.is_named(stream):
            return inputs
        return frozenset(each for each in inputs if not snapshot.is_named(each))
    writers = snapshot.followers(stream)
    if snapshot.is_named(stream):
        return writers
    named = {each for writer in writers for each in snapshot.inputs(writer)}
    return writers | {each for each in named if snapshot.is_named(each)}


def _reach(snapshot: Snapshot, direction: Direction, start: str) -> frozenset[str]:
    reached: set[str] = set()
    todo = [start]
    while todo:
        new = steps(snapshot, direction, todo.pop()) - reached
        reached |= new
        todo.extend(new)
    return frozenset(reached)


def _off_the_way(
    direction: Direction, start: str, stream: str, reached: frozenset[str]
) -> QueryError:
    way = ", ".join(f"`{each}`" for each in sorted(reached)) or "none"
    return QueryError(
        f"the scope `{stream}` does not lie on the way {direction} from `{start}`.\n\n"
        f"The streams on the way are: {way}."
    )
