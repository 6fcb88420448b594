"""Smart Grid: blackouts, and meters that make up for a day at midnight.

Meters report their consumption every hour. These are GeneaLog's Q3 and Q4.

A reading belongs to the hour, and so to the day, that begins with it. The reading of 00:00 is
the first of its day's 24, not the last of the day before. So an anomaly traces to 25 rows: a
day's 24 readings and the first one of the day after. GeneaLog counts 24, which fits a day that
is held against the midnight it begins with: its rows carry the beginning of their window.

Two facts of Spark shape `anomalies`. A row may have one event-time column only, so the window
gives way to `window_time` before the join. And `window.end` is no event time: bounds on it
give the same results but keep every row in the join's state for ever.

Start at `generate` for data, at `blackouts` and `anomalies` for the queries, and at
`expected_blackouts` and `expected_anomalies` for what they must return.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.workloads.expected import Expected, instant, micros_of, span
from domains.metering import (
    SCHEMA,
    START,
    Blackout,
    Compensation,
    SmartGrid,
    closing_reading,
    generate,
    readings,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.workloads.verbs import FrameT

__all__ = [
    "SCHEMA",
    "START",
    "Blackout",
    "Compensation",
    "SmartGrid",
    "anomalies",
    "blackouts",
    "closing_reading",
    "daily_consumption",
    "expected_anomalies",
    "expected_blackouts",
    "generate",
    "readings",
]


# The queries.


def daily_consumption(readings: FrameT) -> FrameT:
    """Sum up each meter's readings per day (UTC).

    Args:
        readings: Hourly readings with a watermark on `ts`.

    Returns:
        Columns `window`, `meter` and `total`.
    """
    return readings.groupBy(F.window("ts", "1 day"), "meter").agg(
        F.sum("consumption").alias("total")
    )


def blackouts(readings: FrameT, *, more_than: int = 7, delay: str = "1 hour") -> FrameT:
    """Find days on which many meters consumed nothing.

    Args:
        readings: Hourly readings.
        more_than: A day with this many dark meters is still no blackout.
        delay: How late a reading may come: the watermark delay.

    Returns:
        Columns `window` and `dark` (how many meters).
    """
    return (
        daily_consumption(readings.withWatermark("ts", delay))
        .filter(F.col("total") == 0)
        .groupBy(F.window(F.window_time("window"), "1 day"))
        .agg(F.count("*").alias("dark"))
        .filter(F.col("dark") > more_than)
        .select("window", "dark")
    )


def anomalies(readings: FrameT, *, threshold: int = 30_000, delay: str = "1 hour") -> FrameT:
    """Find meters whose midnight reading is far from the day it follows.

    The difference counts in both directions. So a compensation shows twice: for the day it
    makes up for, and for the day that begins with it, as that day's total then stands against an
    ordinary midnight.

    Args:
        readings: Hourly readings.
        threshold: The largest difference, in watt-hours, that is not reported.
        delay: How late a reading may come: the watermark delay.

    Returns:
        Columns `day` (its beginning), `meter`, `total`, `reading` (the midnight after) and
        `difference`.
    """
    marked = readings.withWatermark("ts", delay)
    days = daily_consumption(marked).select(
        F.col("window.start").alias("day"),
        F.window_time("window").alias("day_time"),
        "meter",
        "total",
    )
    midnights = marked.filter(F.unix_seconds(F.col("ts")) % 86_400 < 3_600).select(
        F.col("ts").alias("midnight"),
        F.col("meter").alias("midnight_meter"),
        F.col("consumption").alias("reading"),
    )
    # `day_time` is the day's last microsecond: the hour after it is the next day's first.
    within_the_hour = (
        (F.col("meter") == F.col("midnight_meter"))
        & (F.col("midnight") > F.col("day_time"))
        & (F.col("midnight") <= F.col("day_time") + F.expr("INTERVAL 1 HOUR"))
    )
    return (
        days.join(midnights, within_the_hour, "inner")
        .select(
            "day",
            "meter",
            "total",
            "reading",
            F.abs(F.col("total") - F.col("reading")).alias("difference"),
        )
        .filter(F.col("difference") > threshold)
    )


# What the queries must return. Nothing here is shared with the queries or the generator.


def expected_blackouts(table: pa.Table, *, more_than: int = 7) -> list[Expected]:
    """Work out the rows of `blackouts` and what each traces to.

    Args:
        table: The readings.
        more_than: As for the query.

    Returns:
        The results by day; the source is called `readings`.

    Examples:
        >>> [blackout] = expected_blackouts(readings(blackouts=1, dark=8))
        >>> blackout.values["dark"], blackout.size
        (8, 192)
    """
    used = table["consumption"].to_pylist()
    dark: dict[int, list[list[int]]] = defaultdict(list)
    for (day, _), rows in _by_day(table).items():
        if sum(used[row] for row in rows) == 0:
            dark[day].append(rows)
    return [
        Expected(
            {"window": span(day, 86_400_000_000), "dark": len(meters)},
            {"readings": frozenset(row for rows in meters for row in rows)},
        )
        for day, meters in sorted(dark.items())
        if len(meters) > more_than
    ]


def expected_anomalies(table: pa.Table, *, threshold: int = 30_000) -> list[Expected]:
    """Work out the rows of `anomalies` and what each traces to.

    Args:
        table: The readings.
        threshold: As for the query.

    Returns:
        The results by day and meter; the source is called `readings`.

    Examples:
        >>> [shown] = expected_anomalies(readings(days=2, blackouts=0, compensations=1, decoys=0))
        >>> shown.values["difference"] > 30_000, shown.size
        (True, 25)
    """
    used = table["consumption"].to_pylist()
    times = micros_of(table, "ts")
    days = _by_day(table)
    found = []
    for (day, meter), rows in sorted(days.items()):
        tomorrow = day + 86_400_000_000
        total = sum(used[row] for row in rows)
        for midnight in days.get((tomorrow, meter), []):
            difference = abs(total - used[midnight])
            if times[midnight] < tomorrow + 3_600_000_000 and difference > threshold:
                values = {"day": instant(day), "meter": meter, "total": total}
                values |= {"reading": used[midnight], "difference": difference}
                found.append(Expected(values, {"readings": frozenset([*rows, midnight])}))
    return found


def _by_day(table: pa.Table) -> dict[tuple[int, int], list[int]]:
    """Map (beginning of the day, meter) to the rows of its readings."""
    days: dict[tuple[int, int], list[int]] = defaultdict(list)
    meters = table["meter"].to_pylist()
    for row, time in enumerate(micros_of(table, "ts")):
        days[time - time % 86_400_000_000, meters[row]].append(row)
    return days
