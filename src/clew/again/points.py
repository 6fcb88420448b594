"""What connection points hold: how far they have come, and what they may forget."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from clew.operators.source import Source
from clew.sources.arrivals import read_arrivals
from clew.sources.identity import KEPT_TIME
from clew.sources.reread import Again
from clew.store.layout import point_folder
from clew.store.said import read_point

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.plan.node import Node
    from clew.sources.arrivals import Arrivals

_NEVER, _FOREVER = -(1 << 63), (1 << 63) - 1
LAST = "last.json"
"""The file of a point that says which batch of its side query it took in last."""


def pointed_sources(node: Node) -> list[Source]:
    """List the sources of a pipeline that have a connection point."""
    found = {
        each.operator.origin.name: each.operator
        for each in node.walk()
        if isinstance(each.operator, Source)
        and isinstance(each.operator.again, Again)
        and each.operator.again.point is not None
    }
    return list(found.values())


def held_up_to(
    spark: SparkSession, node: Node, root: Path, writer: str, checkpoint: str, main: Arrivals
) -> int | None:
    """Return the last batch of the main query whose rows are in all points; None if none is."""
    ready = max(main.batches, default=-1)
    for source in pointed_sources(node):
        name = source.origin.name
        try:
            last = read_point(point_folder(root, writer, name) / LAST)
        except FileNotFoundError:
            return None
        side = read_arrivals(spark, f"{checkpoint}/points/{name}")
        taken = {path for path, batch in side.files.items() if batch <= last}
        missing = [batch for path, batch in main.files.items() if path not in taken]
        ready = min([ready, *[batch - 1 for batch in missing]])
        for place, reached in main.topics.items():
            held = [each for each in side.topics.get(place, ()) if each.batch <= last]
            end = held[-1].end if held else 0
            ready = min([ready, *[each.batch - 1 for each in reached if each.end > end]])
    return ready if ready >= 0 else None


def expire(node: Node, root: Path, writer: str, horizon_us: int) -> int:
    """Drop what points hold from before a moment; return how many folders went.

    A folder goes when all of its rows are older, as the files' footers say.
    """
    gone = 0
    for source in pointed_sources(node):
        for folder in sorted(point_folder(root, writer, source.origin.name).glob("[0-9]*")):
            if _latest(folder) < horizon_us:
                shutil.rmtree(folder)
                gone += 1
    return gone


def _latest(folder: Path) -> int:
    """Read the latest event time in a folder of a point; a time after all others if unknown."""
    latest = _NEVER
    for path in folder.glob("*.parquet"):
        meta = pq.read_metadata(path)
        names = [meta.schema.column(i).path for i in range(meta.num_columns)]
        at = names.index(KEPT_TIME)
        for group in range(meta.num_row_groups):
            stats = meta.row_group(group).column(at).statistics
            if stats is None or not stats.has_min_max or stats.null_count:
                return _FOREVER
            latest = max(latest, stats.max)
    return latest
