"""Reduce lines in this process, by the same code that runs inside Spark's tasks.

Partitions, batches and folds are as a test says, so thousands of cases take seconds. What Spark
adds is tested elsewhere.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.prov.local import LocalReducer
from clew.prov.parse import Parser
from clew.prov.reducer import Rule, reduced
from clew.prov.sliding import Sliding
from clew.prov.words import EDGES, FINAL, NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.prov.asked_for import Settings
    from reduce.jobs import Edge


def reduce_here(lines: Sequence[str], settings: Settings, *, batch: int = 10**9) -> list[Edge]:
    """Reduce lines that come in batches; return the edges as they would be stored."""
    final: list[pa.Table] = [FINAL.empty_table()]
    state, latest = EDGES.empty_table(), None
    fresh: list[pa.Table] = []
    for start in range(0, max(len(lines), 1), batch):
        before = latest
        for elements in _partitions(lines[start : start + batch], settings):
            fresh += _local(elements, settings, before)
            times = [t for t in elements["time"].to_pylist() if t is not None]
            latest = max([*times, latest or NO_TIME])
        if sum(map(len, fresh)) >= settings.global_batch and settings.mode != "window":
            rule = Rule(
                settings.single_use, watermark=settings.watermark(latest), flush=settings.flush
            )
            done, state = reduced(pa.concat_tables([state, *fresh]), rule)
            final.append(done)
            fresh = []
    rule = Rule(settings.single_use, end=True, flush=settings.flush)
    if settings.mode == "window":
        sliding = Sliding(settings.window)
        sliding.add(pa.concat_tables([EDGES.empty_table(), *fresh]))
        fresh = [sliding.flush()]
    final.append(reduced(pa.concat_tables([state, *fresh]), rule)[0])
    rows: list[dict[str, Any]] = pa.concat_tables(final).to_pylist()
    return [(row["output"], row["input"]) for row in rows]


def _partitions(lines: Sequence[str], settings: Settings) -> Iterator[pa.Table]:
    parser = Parser(
        settings.job, groups=settings.mode == "grouping", in_order=settings.mode == "window"
    )
    elements = parser.parse(pa.array(lines, pa.string())).elements
    if settings.partitioning == "source":
        yield elements
        return
    column = {"random": "execution"}.get(settings.partitioning, settings.partitioning)
    places = defaultdict[int, list[int]](list)
    for i, (key, own) in enumerate(
        zip(elements[column].to_pylist(), elements["execution"].to_pylist(), strict=True)
    ):
        places[zlib.crc32((key or own).encode()) % (settings.partitions or 2)].append(i)
    for rows in places.values():
        yield elements.take(pa.array(rows))


def _local(elements: pa.Table, settings: Settings, before: int | None) -> Iterator[pa.Table]:
    reducer = LocalReducer(settings, before)
    for start in range(0, len(elements), settings.local_batch):
        yield from reducer.add(elements.slice(start, settings.local_batch))
    yield from reducer.finish()
