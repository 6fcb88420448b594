"""Reduce edges at once, with a sliding window of past ones to find what came too late.

This is the paper's other answer to early elimination, and not an exact one: an edge whose partner
has left both the state and the window finds nothing. Edges are taken in the order they come, a
stretch at a time; the window is looked at for each stretch, so it is never smaller than asked for
and at most an eighth larger.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.prov.reducer import Rule, reduced
from clew.prov.words import EDGES

_STRETCHES = 8


class Sliding:
    """Reduces edges as they come.

    Args:
        window: How many past edges are remembered.
        past: Edges that were remembered before.
        state: What was reduced before.
    """

    def __init__(
        self, window: int, past: pa.Table | None = None, state: pa.Table | None = None
    ) -> None:
        self._window = window
        self._past = EDGES.empty_table() if past is None else past
        self._state = EDGES.empty_table() if state is None else state

    def add(self, edges: pa.Table) -> None:
        """Take in edges, in their order."""
        stretch = max(1, self._window // _STRETCHES)
        for start in range(0, edges.num_rows, stretch):
            new = edges.slice(start, stretch)
            known = pa.concat_tables([self._state, as_helpers(self._past), new])
            _, self._state = reduced(known.combine_chunks(), Rule(eager=True))
            past = pa.concat_tables([self._past, new])
            self._past = past.slice(max(0, past.num_rows - self._window))

    def flush(self) -> pa.Table:
        """Return what was reduced, and begin anew; the window stays."""
        state, self._state = self._state, EDGES.empty_table()
        return state

    @property
    def past(self) -> pa.Table:
        """The edges in the window."""
        return self._past


def as_helpers(edges: pa.Table) -> pa.Table:
    """Mark edges as those that may only help."""
    yes = pa.array(np.ones(edges.num_rows, bool))
    return edges.set_column(EDGES.get_field_index("helper"), EDGES.field("helper"), yes)


def without_helpers(edges: pa.Table) -> pa.Table:
    """Leave out edges that may only help."""
    return edges.filter(pc.invert(edges["helper"]))


def only_helpers(edges: pa.Table) -> pa.Table:
    """Return the edges that may only help, as they were."""
    found = edges.filter(edges["helper"])
    no = pa.array(np.zeros(found.num_rows, bool))
    return found.set_column(EDGES.get_field_index("helper"), EDGES.field("helper"), no)
