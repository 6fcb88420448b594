"""Linear Road: cars that stand still, and accidents.

Each car on an expressway reports its speed and position every 30 seconds. A car has stopped when
four reports in a row show speed 0 at one position; two stopped cars at one position are an
accident. These are GeneaLog's Q1 and Q2: 4 source rows per stopped car, 8 per accident of two.
As there, all cars are on one expressway and a position alone says where a car is.

The one fact to know: Spark moves a filter that does not use the event time below the watermark,
so only reports with speed 0 move the watermark of these queries, and the closing report has
speed 0.

Start at `generate` for data, at `stopped_cars` and `accidents` for the queries, and at
`expected_stopped_cars` and `expected_accidents` for what they must return.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.workloads.expected import Expected, micros_of, span
from clew.workloads.traffic import (
    SCHEMA,
    START,
    LinearRoad,
    Stop,
    closing_report,
    generate,
    reports,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.workloads.verbs import FrameT

__all__ = [
    "SCHEMA",
    "START",
    "LinearRoad",
    "Stop",
    "accidents",
    "accidents_from_reports",
    "closing_report",
    "expected_accidents",
    "expected_stopped_cars",
    "generate",
    "reports",
    "stopped_cars",
]


# The queries.


def stopped_cars(reports: FrameT, *, delay: str = "30 seconds") -> FrameT:
    """Find cars with four reports of speed 0 at one position.

    Windows are 120 seconds long and begin every 30 seconds, so a car that stands for longer
    gives a row for each window that it stands through.

    Args:
        reports: Position reports.
        delay: How late a report may come: the watermark delay.

    Returns:
        Columns `window`, `car`, `n` (reports in the window) and `pos`.
    """
    return (
        reports.withWatermark("ts", delay)
        .filter(F.col("speed") == 0)
        .groupBy(F.window("ts", "120 seconds", "30 seconds"), "car")
        .agg(
            F.count("*").alias("n"),
            F.min("pos").alias("pos"),
            F.max("pos").alias("furthest"),
        )
        .filter((F.col("n") >= 4) & (F.col("pos") == F.col("furthest")))
        .select("window", "car", "n", "pos")
    )


def accidents(stopped: FrameT) -> FrameT:
    """Find positions where two or more cars stand at the same time.

    A stopped car's row carries the last instant of its 120-second window. Windows of 120 seconds
    end every 30 seconds, so each window of 30 seconds here holds the rows of just one of them,
    and each car at most once: the accident of `[E - 30 s, E)` is about the cars that stood
    through `[E - 120 s, E)`, and traces to their reports in it.

    Args:
        stopped: What `stopped_cars` returns.

    Returns:
        Columns `window`, `pos` and `cars` (how many).
    """
    return (
        stopped.groupBy(F.window(F.window_time("window"), "30 seconds"), "pos")
        .agg(F.count("*").alias("cars"))
        .filter(F.col("cars") >= 2)
        .select("window", "pos", "cars")
    )


def accidents_from_reports(reports: FrameT, *, delay: str = "30 seconds") -> FrameT:
    """Find accidents straight from the reports: `accidents` of `stopped_cars`."""
    return accidents(stopped_cars(reports, delay=delay))


# What the queries must return. Nothing here is shared with the queries or the generator.


def expected_stopped_cars(table: pa.Table) -> list[Expected]:
    """Work out the rows of `stopped_cars` and what each traces to.

    Args:
        table: The reports.

    Returns:
        The results by window and car; the source is called `reports`.

    Examples:
        >>> table = reports(cars=5, stopped=1, accidents=0, decoys=0, stand=(4, 4))
        >>> [stop] = expected_stopped_cars(table)
        >>> stop.values["n"], stop.size
        (4, 4)
    """
    found = _standing(table)
    return [
        Expected(
            {"window": span(start, 120_000_000), "car": car, "n": len(rows), "pos": pos},
            {"reports": frozenset(rows)},
        )
        for (start, car), (pos, rows) in sorted(found.items())
    ]


def expected_accidents(table: pa.Table) -> list[Expected]:
    """Work out the rows of `accidents` and what each traces to.

    Args:
        table: The reports, not the stopped cars.

    Returns:
        The results by window and position; the source is called `reports`.

    Examples:
        >>> table = reports(cars=5, stopped=0, accidents=1, decoys=0, stand=(4, 4))
        >>> [accident] = expected_accidents(table)
        >>> accident.values["cars"], accident.size
        (2, 8)
    """
    meeting: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    for (start, _), (pos, rows) in _standing(table).items():
        meeting[start, pos].append(rows)
    return [
        Expected(
            {"window": span(start + 90_000_000, 30_000_000), "pos": pos, "cars": len(cars)},
            {"reports": frozenset(row for rows in cars for row in rows)},
        )
        for (start, pos), cars in sorted(meeting.items())
        if len(cars) >= 2
    ]


def _standing(table: pa.Table) -> dict[tuple[int, int], tuple[int, list[int]]]:
    """Map (window start, car) to the position and reports of a car that stands."""
    times = micros_of(table, "ts")
    cars, speeds, places = (table[name].to_pylist() for name in ("car", "speed", "pos"))
    halted: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, speed in enumerate(speeds):
        if speed == 0:
            latest = times[row] - times[row] % 30_000_000
            for back in range(4):
                halted[latest - back * 30_000_000, cars[row]].append(row)
    return {
        key: (places[rows[0]], rows)
        for key, rows in halted.items()
        if len(rows) >= 4 and len({places[row] for row in rows}) == 1
    }
