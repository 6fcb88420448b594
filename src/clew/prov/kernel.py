"""Take intermediate vertices out of a graph of derivations.

Both reducers, local and global, are this one function over arrays: an edge is a pair of vertex
numbers, derived thing first. A vertex that may go is replaced by the pairs of what was derived from
it with what it was derived from. Paths are followed for all edges at once, one step per round, so
the work is a few sorts for each level of the graph and no Python loop runs over edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Marks = NDArray[np.bool_]

MOST_PAIRS = 1_000_000
"""A vertex stays if taking it out would make more pairs than this out of fewer edges."""
_ROUNDS = 16
"""After so many rounds, paths that were followed before are left out: there may be a cycle."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Edges between numbered vertices; `helper` marks those that may only help to find others."""

    output: Numbers
    input: Numbers
    helper: Marks | None = None

    def __len__(self) -> int:
        return len(self.output)

    def take(self, chosen: NDArray[Any]) -> Pairs:
        """Return some of the edges, by mask or by position."""
        helper = None if self.helper is None else self.helper[chosen]
        return Pairs(self.output[chosen], self.input[chosen], helper)


def degrees(pairs: Pairs, vertices: int) -> tuple[Numbers, Numbers]:
    """Count, for each vertex, the edges that end and those that begin there."""
    into = np.bincount(pairs.input, minlength=vertices)
    out_of = np.bincount(pairs.output, minlength=vertices)
    return into.astype(np.int64), out_of.astype(np.int64)


def eliminate(pairs: Pairs, vertices: int, may_go: Marks) -> Pairs:
    """Take out every vertex that may go and lies between two others.

    Args:
        pairs: The edges; duplicates and edges from a vertex to itself are dropped.
        vertices: How many vertices there are.
        may_go: For each vertex, whether it may be taken out.

    Returns:
        The edges between the vertices that stay, each once: those that were there, and one for each
        path whose inner vertices are all gone.
    """
    pairs = once(pairs.take(pairs.output != pairs.input), vertices)
    into, out_of = degrees(pairs, vertices)
    # Python's own numbers do not overflow, but two counts of edges in memory never come near that.
    small = (into * out_of <= MOST_PAIRS) | (into <= 1) | (out_of <= 1)
    inner = may_go & (into > 0) & (out_of > 0) & small
    if not inner.any():
        return pairs
    from_inner = inner[pairs.output]
    steps = _Steps(pairs.take(from_inner), vertices)
    return _follow(pairs.take(~from_inner), steps, inner, vertices)


def once(pairs: Pairs, vertices: int) -> Pairs:
    """Keep each edge once; it is no helper unless all its copies are."""
    if len(pairs) == 0:
        return pairs
    keys = pairs.output * vertices + pairs.input
    if pairs.helper is None:
        keys = np.unique(keys)
        return Pairs(keys // vertices, keys % vertices)
    keys = np.unique(keys * 2 + pairs.helper)
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] // 2 != keys[:-1] // 2
    keys = keys[first]
    return Pairs(keys // 2 // vertices, keys // 2 % vertices, (keys % 2).astype(bool))


class _Steps:
    """The edges that leave inner vertices, found by vertex."""

    def __init__(self, pairs: Pairs, vertices: int) -> None:
        # The edges come sorted by where they begin.
        self._pairs = pairs
        counts = np.bincount(pairs.output, minlength=vertices)
        self._count = counts.astype(np.int64)
        self._begin = np.cumsum(self._count) - self._count

    def beyond(self, paths: Pairs) -> Pairs:
        """Lengthen each path by one edge, in all ways there are."""
        count = self._count[paths.input]
        which = np.repeat(np.arange(len(paths)), count)
        ends = np.cumsum(count)
        inside = np.arange(len(which)) - np.repeat(ends - count, count)
        edge = self._begin[paths.input][which] + inside
        helper = None
        if paths.helper is not None and self._pairs.helper is not None:
            helper = paths.helper[which] & self._pairs.helper[edge]
        return Pairs(paths.output[which], self._pairs.input[edge], helper)


def _follow(paths: Pairs, steps: _Steps, inner: Marks, vertices: int) -> Pairs:
    done: list[Pairs] = []
    seen = np.zeros(0, np.int64)
    rounds = 0
    while len(paths):
        going = inner[paths.input]
        done.append(paths.take(~going))
        paths = paths.take(going)
        rounds += 1
        if rounds > _ROUNDS:
            keys = paths.output * vertices + paths.input
            fresh = ~np.isin(keys, seen)
            paths, seen = paths.take(fresh), np.union1d(seen, keys)
        paths = once(steps.beyond(paths), vertices)
    found = concat(done)
    return once(found.take(found.output != found.input), vertices)


def concat(parts: list[Pairs]) -> Pairs:
    """Put edges together; those of all parts have helpers, or none have."""
    if not parts:
        return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    helper = None
    if parts[0].helper is not None:
        helper = np.concatenate([p.helper for p in parts if p.helper is not None])
    outputs = np.concatenate([p.output for p in parts])
    return Pairs(outputs, np.concatenate([p.input for p in parts]), helper)
