"""Batches whose provenance a store does not hold.

There are two kinds: a batch that says so itself, because its provenance could not be written and
the user had asked to go on; and a number that is missing between two batches of one run. Neighbours
with the same reason are one gap.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from clew.store.records import Gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.store.records import Batch

NOT_COMMITTED = "the batch was not committed"
NOT_UNFOLDED = {
    "pointers": "its pointers are not unfolded yet",
    "intervals": "its rows carry intervals, and edges are computed when asked for",
    "keys": "its rows carry keys, and edges are computed when asked for",
}
"""Why a committed batch has no edges yet, by its capture."""

WHEN_ASKED = frozenset({"intervals", "keys"})
"""The captures whose edges are computed row by row, when somebody asks."""


def find_gaps(batches: Sequence[Batch]) -> tuple[Gap, ...]:
    """Find the gaps in the batches of one writer, by run and number."""
    if not batches:
        return ()
    writer = batches[0].writer
    gaps = [
        Gap(writer, run, first, last, NOT_COMMITTED)
        for run, first, last in missing_numbers((each.run, each.number) for each in batches)
    ]
    gaps += [
        Gap(writer, each.run, each.number, each.number, each.gap)
        for each in batches
        if each.gap is not None
    ]
    return tuple(_join_neighbours(sorted(gaps)))


def find_pending(batches: Sequence[Batch], unfolded: Iterable[Batch]) -> tuple[Gap, ...]:
    """Find the batches of one writer whose rows carry what edges can be made of, and no edges."""
    done = {
        (each.run, number)
        for each in unfolded
        if each.last is not None
        for number in range(each.number, each.last + 1)
    }
    gaps = [
        Gap(each.writer, each.run, each.number, each.number, NOT_UNFOLDED[each.capture])
        for each in batches
        if each.capture in NOT_UNFOLDED
        and each.sink_rows != 0
        and each.gap is None
        and (each.run, each.number) not in done
    ]
    return tuple(_join_neighbours(sorted(gaps)))


def missing_numbers(keys: Iterable[tuple[str, int]]) -> list[tuple[str, int, int]]:
    """Find the numbers missing between two batches of a run, as run, first and last.

    Examples:
        >>> missing_numbers([("a", 0), ("a", 1), ("a", 4), ("b", 7)])
        [('a', 2, 3)]
    """
    ordered = sorted(keys)
    return [
        (run, number + 1, following - 1)
        for (run, number), (other, following) in pairwise(ordered)
        if run == other and following > number + 1
    ]


def _join_neighbours(gaps: list[Gap]) -> list[Gap]:
    joined: list[Gap] = []
    for gap in gaps:
        before = joined[-1] if joined else None
        if (
            before is not None
            and (before.run, before.reason) == (gap.run, gap.reason)
            and before.last + 1 == gap.first
        ):
            joined[-1] = Gap(gap.writer, gap.run, before.first, gap.last, gap.reason)
        else:
            joined.append(gap)
    return joined
