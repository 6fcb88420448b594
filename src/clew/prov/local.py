"""The local reducer: one part of a batch, in pieces of the local batch size.

Groups are done with at once. Activities of single statements wait: with a watermark they can go
here once the whole part was seen, if they can have been named neither before this batch nor after
it. That holds only where an execution is never split, which a shuffle makes sure of and a partition
of the source does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from clew.prov.reducer import Rule, reduced, spread
from clew.prov.sliding import Sliding
from clew.prov.words import ACTIVITY, EDGES, NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.prov.asked_for import Settings

MOST_HELD = 2_000_000
"""How many edges of single statements may wait for the end of a part."""


class LocalReducer:
    """Reduces one part of a batch.

    Args:
        settings: What was asked for.
        before: The latest time that was seen before this batch; None if there was none.
    """

    def __init__(self, settings: Settings, before: int | None = None) -> None:
        self._settings = settings
        self._sliding = Sliding(settings.window) if settings.mode == "window" else None
        self._closes = settings.mode == "watermark" and settings.partitioning != "source"
        self._since = NO_TIME if before is None else before + settings.delay_micros
        self._latest = NO_TIME
        self._held: list[pa.Table] = []
        self._count = 0

    def add(self, elements: pa.Table) -> Iterator[pa.Table]:
        """Take in elements, at most a local batch; return what can be handed on."""
        edges = spread(elements)
        if self._sliding is not None:
            self._sliding.add(edges)
            yield self._sliding.flush()
            return
        if self._closes:
            edges = self._hold(edges)
        yield reduced(edges, Rule(single_use=self._settings.single_use))[1]
        if self._count > MOST_HELD:
            self._closes = False
            yield from self._give_up()

    def _hold(self, edges: pa.Table) -> pa.Table:
        """Keep edges with an activity at an end; return the others."""
        if edges.num_rows == 0:
            return edges
        latest = pc.max(edges["output_time"]).as_py()
        self._latest = max(self._latest, latest)
        named = pc.or_(
            pc.starts_with(edges["output"], ACTIVITY), pc.starts_with(edges["input"], ACTIVITY)
        )
        found = edges.filter(named)
        self._held.append(found)
        self._count += found.num_rows
        return edges.filter(pc.invert(named)) if found.num_rows else edges

    def _give_up(self) -> Iterator[pa.Table]:
        held, self._held, self._count = self._held, [], 0
        yield from held

    def finish(self) -> Iterator[pa.Table]:
        """Return what had to wait for the end of the part."""
        held = pa.concat_tables([EDGES.empty_table(), *self._held])
        if held.num_rows == 0:
            return
        until = self._latest - self._settings.delay_micros
        yield reduced(held.combine_chunks(), Rule(activities=(self._since, until)))[1]
