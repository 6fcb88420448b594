"""Batches whose provenance a store does not hold.

There are three kinds: a batch that says so itself, because its provenance could not be written and
the user had asked to go on; a number that is missing before a batch of a run, which Spark counts
from 0; and one behind the last batch of a run, of which the query's checkpoint says that it was
finished or, where that is not at hand, of which the store itself has rows or edges. Neighbours with
the same reason are one gap.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from clew.exceptions import StoreError
from clew.model import EdgesCome, GapKind
from clew.store.layout import (
    EDGES,
    HEADER,
    ROWS,
    batch_file,
    parse_batch_folder,
    quote_name,
    read_json,
)
from clew.store.records import Gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clew.store.records import Batch


def find_gaps(batches: Sequence[Batch]) -> tuple[Gap, ...]:
    """Find the gaps in the batches of one writer, by run and number."""
    if not batches:
        return ()
    writer = batches[0].writer
    keys = [(each.run, each.number) for each in batches]
    begun = [(run, -1) for run in dict(keys)]  # so that numbers before the first one are missed
    gaps = [
        Gap(writer, run, first, last, GapKind.NOT_COMMITTED)
        for run, first, last in missing_numbers([*begun, *keys])
    ]
    gaps += [
        Gap(writer, each.run, each.number, each.number, _kind(each), each.gap)
        for each in batches
        if each.gap is not None
    ]
    return tuple(_join_neighbours(sorted(gaps)))


def _kind(batch: Batch) -> GapKind:
    return GapKind.PRUNED if batch.is_pruned else GapKind.NOT_WRITTEN


def find_lost(
    root: Path, writer: str, checkpoints: Mapping[str, str | None], batches: Iterable[Batch]
) -> tuple[Gap, ...]:
    """Find batches behind the last that the store holds of each run.

    Args:
        root: The store.
        writer: The writer.
        checkpoints: Where each of its runs keeps its checkpoint; None for a batch query.
        batches: Its committed batches.
    """
    ends = dict.fromkeys(checkpoints, -1)
    for each in batches:
        ends[each.run] = max(each.number, ends.get(each.run, -1))
    gaps = []
    begun: dict[str, int] | None = None
    for run, end in ends.items():
        finished, kind = _last_finished(checkpoints.get(run), run), GapKind.NOT_HERE
        if finished is None or end < 0:
            begun = _last_begun(root, writer) if begun is None else begun
        if finished is None:
            finished, kind = (begun or {}).get(run, -1), GapKind.NOT_ENDED
        elif end < 0 and run not in (begun or {}):
            continue  # all of the run is gone: it was overwritten
        # What was committed since the batches were listed is not lost.
        while finished > end and batch_file(root, writer, run, finished).exists():
            finished -= 1
        if finished > end:
            gaps.append(Gap(writer, run, end + 1, finished, kind))
    return tuple(sorted(gaps))


def _last_finished(checkpoint: str | None, run: str) -> int | None:
    """Read which batch a query finished last; None if its checkpoint is not at hand."""
    if checkpoint is None:
        return None
    place = Path(checkpoint)
    try:
        if read_json(place / HEADER).get("run") != run:
            return None  # another query has its checkpoint there by now
        return max((int(n) for n in os.listdir(place / "commits") if n.isdecimal()), default=-1)  # noqa: PTH208
    except FileNotFoundError:
        return -1 if (place / HEADER).exists() else None
    except (OSError, StoreError, AttributeError):
        return None


def _last_begun(root: Path, writer: str) -> dict[str, int]:
    """Find the last batch of each run that has put rows or edges into the store."""
    last: dict[str, int] = {}
    for kind in (ROWS, EDGES):
        try:
            names = os.listdir(root / kind / quote_name(writer))  # noqa: PTH208
        except OSError:
            continue
        for run, number in filter(None, map(parse_batch_folder, names)):
            last[run] = max(number, last.get(run, -1))
    return last


def find_pending(batches: Sequence[Batch], unfolded: Iterable[Batch]) -> tuple[Gap, ...]:
    """Find the batches of one writer whose rows carry what edges can be made of, and no edges."""
    unfolded = tuple(unfolded)
    noted = {(each.run, each.number): each.gap for each in unfolded if each.gap}
    done: dict[str, list[range]] = {}
    for each in unfolded:
        if each.last is not None:
            done.setdefault(each.run, []).append(range(each.number, each.last + 1))
    gaps = [
        Gap(each.writer, each.run, each.number, each.number, *_why_pending(each, noted))
        for each in batches
        if each.edges_come is not EdgesCome.WITH_THE_BATCH
        and each.sink_rows != 0
        and each.gap is None
        and not any(each.number in some for some in done.get(each.run, ()))
    ]
    return tuple(_join_neighbours(sorted(gaps)))


def _why_pending(batch: Batch, noted: Mapping[tuple[str, int], str]) -> tuple[GapKind, str]:
    """Say why a batch has no edges: as was noted when they could not be computed, or not yet."""
    why = noted.get((batch.run, batch.number))
    if why is not None:
        return GapKind.NOT_COMPUTED, why
    if batch.edges_come is EdgesCome.BEHIND_IT:
        return GapKind.NOT_UNFOLDED, batch.capture
    return GapKind.WHEN_ASKED, batch.capture


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
            and (before.run, before.kind, before.about) == (gap.run, gap.kind, gap.about)
            and before.last + 1 == gap.first
        ):
            joined[-1] = replace(before, last=gap.last)
        else:
            joined.append(gap)
    return joined
