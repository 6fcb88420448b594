"""The queries of the overhead benchmark.

The four of GeneaLog's evaluation; the heavy case, a sliding window with no filter before it; and
small ones that vary one thing each: how deep aggregations are nested (Ariadne's Figure 14), how
many rows a window holds (its Figures 13 and 15), how many results are asked about (its Figure 20),
and how large and how shared provenance is (Ananke's Figure 16). Each is written once, for a plain
DataFrame and a traced frame alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.streams import READINGS, REPORTS, Data, ticks
from clew.workloads import linear_road
from domains import smart_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.workloads import FrameT

_LAZY = ("pointers", "intervals")
ALL = (*_LAZY, "sets")


@dataclass(frozen=True)
class Case:
    """One query over one stream.

    Attributes:
        query: Its name in the results.
        data: The stream.
        rows: How many rows, about.
        quick_rows: How many in a quick run; 0 leaves the query out.
        make: Turns the source, plain or traced, into the result.
        captures: What it is traced with.
        batches: In how many batches the stream comes.
        state_store: Where Spark keeps state: `memory` or `rocksdb`.
        completions: In how many turns pointers are unfolded, or rows retrieved; None for all.
        shares: The percentages of results whose rows are retrieved afterwards, with intervals.
        small: It varies one thing, and is measured as often as there is time for.
    """

    query: str
    data: Data
    rows: int
    quick_rows: int
    make: Callable[[Any], Any]
    captures: tuple[str, ...] = ALL
    batches: int = 1
    state_store: str = "memory"
    completions: int | None = None
    shares: tuple[float, ...] = ()
    small: bool = False


def fast_cars(reports: FrameT) -> FrameT:
    """Find cars whose four reports in two minutes all show a high speed."""
    return (
        reports.withWatermark("ts", "30 seconds")
        .groupBy(F.window("ts", "120 seconds", "30 seconds"), "car")
        .agg(F.count("*").alias("n"), F.min("speed").alias("slowest"))
        .filter((F.col("n") >= 4) & (F.col("slowest") >= 85))
    )


def windows(rows: float, slide: float) -> Callable[[FrameT], FrameT]:
    """Sum up each key's values over windows of so many rows."""

    def query(source: FrameT) -> FrameT:
        over = F.window("ts", _millis(rows), _millis(slide))
        grouped = source.withWatermark("ts", "0 seconds").groupBy(over, "key")
        return grouped.agg(F.sum("value").alias("value"))

    return query


def nested(levels: int, slide: int) -> Callable[[FrameT], FrameT]:
    """Sum up ten rows of a key, then ten of these sums, and so on.

    Each level has a row for every `slide` rows of the level below, as with Ariadne's windows that
    count rows; so its windows are `slide` times as long.
    """

    def query(source: FrameT) -> FrameT:
        frame = source.withWatermark("ts", "0 seconds")
        for level in range(levels):
            time = F.window_time("window") if level else F.col("ts")
            size, step = 10 * slide**level, slide ** (level + 1)
            over = F.window(time, f"{size} seconds", f"{step} seconds")
            frame = frame.groupBy(over, "key").agg(F.sum("value").alias("value"))
        return frame

    return query


def _millis(rows: float) -> str:
    return f"{round(1_000 * rows)} milliseconds"


def _nested_case(levels: int) -> Case:
    """Ten rows per window and one row from window to window, so ten source rows, 19, 28, 37."""
    captures = {4: _LAZY, 1: ALL}.get(levels, ("pointers",))
    return Case(
        f"nested_{levels}",
        ticks(20),
        rows=6_000,
        quick_rows=0,
        make=nested(levels, 1),
        captures=captures,
        completions=1,
        small=True,
    )


def _window_case(rows: int) -> Case:
    captures = ALL if rows == 100 else ("pointers",)
    return Case(
        f"window_{rows}",
        ticks(1),
        rows=60_000,
        quick_rows=20_000 if rows == 100 else 0,
        make=windows(rows, rows / 2),
        captures=captures,
        completions=1,
        small=True,
    )


def _synthetic_case(size: int, overlap: int) -> Case:
    """Give each result `size` rows, of which it shares `overlap` percent with the one before."""
    return Case(
        f"synthetic_{size}_{overlap}",
        ticks(20),
        rows=50_000,
        quick_rows=20_000 if (size, overlap) == (50, 25) else 0,
        make=windows(size, size * (100 - overlap) / 100),
        captures=("pointers",),
        completions=1,
        small=True,
    )


def _workload(
    query: str, data: Data, make: Callable[[Any], Any], quick_rows: int = 0, batches: int = 8
) -> Case:
    """Take two million rows in several batches: a stream is more than one."""
    return Case(query, data, 2_100_000, quick_rows, make, _LAZY, batches=batches)


WORKLOADS = (
    _workload("smart_grid_blackouts", READINGS, smart_grid.blackouts),
    _workload("smart_grid_anomalies", READINGS, smart_grid.anomalies, batches=5),
    _workload("linear_road_stopped_cars", REPORTS, linear_road.stopped_cars, 100_000),
    _workload("linear_road_accidents", REPORTS, linear_road.accidents_from_reports),
)
UNFILTERED = (
    Case(
        "unfiltered_window_rocksdb",
        REPORTS,
        rows=80_000,
        quick_rows=0,
        make=fast_cars,
        captures=_LAZY,
        batches=2,
        state_store="rocksdb",
    ),
    Case("unfiltered_window_memory", REPORTS, 300_000, 100_000, fast_cars, _LAZY, batches=3),
    Case("unfiltered_window_memory", REPORTS, 80_000, 0, fast_cars, ("sets",)),
)
RETRIEVAL = Case(
    "retrieval",
    ticks(20),
    rows=100_000,
    quick_rows=20_000,
    make=nested(2, 3),
    captures=("intervals",),
    completions=1,
    shares=(0.05, 1, 10, 100),
    small=True,
)
CASES = (
    *WORKLOADS,
    *UNFILTERED,
    *[_nested_case(levels) for levels in (2, 4, 3, 1)],
    *[_window_case(rows) for rows in (100, 10, 1_000, 10_000)],
    RETRIEVAL,
    *[_synthetic_case(size, overlap) for size in (10, 50, 100) for overlap in (0, 25, 75)],
)
"""All queries that are compared, in the order in which they are measured."""

SINGLE_ROW = Case(
    "backward_replay",
    REPORTS,
    6_000_000,
    600_000,
    linear_road.stopped_cars,
    captures=("intervals",),
    batches=3,
)
"""The query whose single rows are traced."""
