"""What queries have finished since the graph last looked.

A batch is finished once its edges are in the store: at once if its rows carry sets, with the
unfolding that covers it if they point. Batches of one run are taken in their order, so that the
watermark of the last one taken holds for all that is still to come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.model import EdgesCome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from clew.store.reader import Snapshot
    from clew.store.records import Batch


@dataclass(frozen=True, slots=True)
class Part:
    """Batches of a query that are taken at once.

    Attributes:
        writer: The query.
        run: The run that they belong to.
        last: The last of them.
        watermark_ms: The watermark of the last of them.
        sink_files: The files with their own rows.
        edge_files: The files with their edges.
        source_files: The files with the rows of each source.
        sink_rows: How many rows they have.
        edges: How many edges there are, as far as the store says.
        mixed: The files hold edges of other rows as well.
        gaps: How many of the batches have lost their provenance.
    """

    writer: str
    run: str
    last: int
    watermark_ms: int
    sink_files: tuple[str, ...] = ()
    edge_files: tuple[str, ...] = ()
    source_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sink_rows: int = 0
    edges: int = 0
    mixed: bool = False
    gaps: int = 0


def new_parts(
    snapshot: Snapshot,
    writer: str,
    taken: Mapping[str, int],
    computed: Collection[tuple[str, int]] = (),
) -> Iterator[Part]:
    """Yield what is finished of a query and was not taken yet, in order.

    Args:
        snapshot: The store.
        writer: The query.
        taken: The last batch that was taken of each run.
        computed: Batches with intervals whose edges were all computed by now.
    """
    unfolded = snapshot.unfolded.get(writer, ())
    by_run: dict[str, list[Batch]] = {}
    for batch in snapshot.batches.get(writer, ()):
        by_run.setdefault(batch.run, []).append(batch)
    for run, batches in by_run.items():
        # Of an unfolding whose first batches were pruned, a later one may be the next to take.
        covering = {
            number: u
            for u in unfolded
            if u.run == run and u.last is not None
            for number in range(u.number, u.last + 1)
        }
        chosen = [u for u in unfolded if u.run == run and u.last is None]
        waiting = sorted(batches, key=lambda each: each.number)
        waiting = [each for each in waiting if each.number > taken.get(run, -1)]
        while waiting:
            group = _next(writer, waiting, covering, chosen, computed)
            if group is None:
                break
            yield group
            waiting = [each for each in waiting if each.number > group.last]


def _next(
    writer: str,
    waiting: list[Batch],
    covering: Mapping[int, Batch],
    chosen: list[Batch],
    computed: Collection[tuple[str, int]],
) -> Part | None:
    first = waiting[0]
    if first.gap is not None:
        return Part(writer, first.run, first.number, first.watermark_ms, gaps=1)
    if not first.sink_rows:
        return Part(writer, first.run, first.number, first.watermark_ms)
    if first.edges_come is EdgesCome.WITH_THE_BATCH:
        return _part(writer, [first], [first])
    if first.edges_come is EdgesCome.WHEN_ASKED:
        if (first.run, first.number) not in computed:
            return None
        return _part(writer, [first], chosen, mixed=True)
    unfolding = covering.get(first.number)
    if unfolding is None or unfolding.last is None:
        return None
    return _part(writer, [b for b in waiting if b.number <= unfolding.last], [unfolding])


def _part(writer: str, batches: list[Batch], holders: list[Batch], *, mixed: bool = False) -> Part:
    sources: dict[str, tuple[str, ...]] = {}
    for holder in holders:
        for stream, files in holder.row_files.items():
            if stream != writer:
                sources[stream] = (*sources.get(stream, ()), *files)
    return Part(
        writer,
        batches[-1].run,
        batches[-1].number,
        batches[-1].watermark_ms,
        tuple(f for each in batches for f in each.row_files.get(writer, ())),
        tuple(f for each in holders for f in each.edge_files),
        sources,
        sum(each.sink_rows or 0 for each in batches),
        sum(each.edges or 0 for each in holders),
        mixed,
        sum(each.gap is not None for each in batches),
    )
