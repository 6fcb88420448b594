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

from benchmarks.streams import READINGS, REPORTS, Data, ticks
from pyspark.sql import functions as F

from clew.workloads import linear_road, smart_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.workloads import FrameT

ALL = ("pointers", "intervals", "sets")


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
        quick_captures: What it is traced with in a quick run.
        batches: In how many batches the stream comes.
        state_store: Where Spark keeps state: `memory` or `rocksdb`.
        unfoldings: In how many repetitions pointers are unfolded; None for all.
        shares: Of how many results the rows are retrieved afterwards, with intervals.
    """

    query: str
    data: Data
    rows: int
    quick_rows: int
    make: Callable[[Any], Any]
    captures: tuple[str, ...] = ALL
    quick_captures: tuple[str, ...] = ALL
    batches: int = 1
    state_store: str = "memory"
    unfoldings: int | None = None
    shares: tuple[float, ...] = ()


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


def synthetic(size: int, overlap: int) -> Case:
    """Give each result `size` rows, of which it shares `overlap` percent with the one before."""
    slide = size * (100 - overlap) / 100
    quick = 20_000 if (size, overlap) == (10, 0) else 0
    query = f"synthetic_{size}_{overlap}"
    captures = ("pointers", "sets")
    return Case(query, ticks(20), 200_000, quick, windows(size, slide), captures, captures)


def _millis(rows: float) -> str:
    return f"{round(1_000 * rows)} milliseconds"


def _nested_case(levels: int) -> Case:
    captures = ALL if levels <= 2 else ("pointers", "intervals")
    unfoldings = None if levels == 1 else 1
    quick = 10_000 if levels <= 2 else 0
    name, query = f"nested_{levels}", nested(levels, 1)
    return Case(name, ticks(20), 50_000, quick, query, captures, captures, unfoldings=unfoldings)


def _window_case(rows: int) -> Case:
    captures = ALL if rows <= 1_000 else ("pointers", "intervals")
    quick = 50_000 if rows in (10, 1_000) else 0
    query = windows(rows, rows / 2)
    return Case(f"window_{rows}", ticks(1), 200_000, quick, query, captures, captures)


_REPORTS: dict[str, Any] = {"data": REPORTS, "rows": 2_100_000, "quick_rows": 200_000}
_READINGS: dict[str, Any] = {"data": READINGS, "rows": 2_100_000, "quick_rows": 200_000}
_HEAVY: dict[str, Any] = {"data": REPORTS, "rows": 1_000_000, "quick_rows": 100_000}
_FEW = ("pointers",)

CASES = (
    Case(
        "linear_road_stopped_cars",
        make=linear_road.stopped_cars,
        batches=3,
        **_REPORTS,
    ),
    Case(
        "linear_road_accidents",
        make=linear_road.accidents_from_reports,
        batches=3,
        quick_captures=_FEW,
        **_REPORTS,
    ),
    Case("smart_grid_blackouts", make=smart_grid.blackouts, batches=3, **_READINGS),
    Case(
        "smart_grid_anomalies",
        make=smart_grid.anomalies,
        batches=3,
        quick_captures=_FEW,
        **_READINGS,
    ),
    Case("unfiltered_window_rocksdb", make=fast_cars, batches=2, state_store="rocksdb", **_HEAVY),
    Case("unfiltered_window_memory", make=fast_cars, batches=2, quick_captures=_FEW, **_HEAVY),
    *[_nested_case(levels) for levels in (1, 2, 3, 4)],
    *[_window_case(rows) for rows in (10, 100, 1_000, 10_000)],
    Case(
        "retrieval",
        ticks(20),
        200_000,
        20_000,
        nested(4, 3),
        captures=("intervals",),
        quick_captures=("intervals",),
        shares=(0.05, 1, 10, 100),
    ),
    *[synthetic(size, overlap) for size in (10, 50, 100) for overlap in (0, 25, 75)],
)
"""All queries, in the order in which they are measured."""

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
