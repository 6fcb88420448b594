"""Vehicle Tracking: cars that drive too fast, and cars that visit a park.

Cars in Beijing report their position every few seconds. These are the two Vehicle Tracking
queries of Ananke's evaluation, where a result of the first has 30 to 160 source rows and one of
the second 25 to 250.

A speed needs two positions, and a group has no order of its own. So `legs` first measures what
a car drives in ten seconds, from the first position to the last one, and `speeding` averages the
legs of two minutes. Lengths are whole centimetres, so that a sum is the same in whatever order
Spark adds. A city is small enough to be flat: a degree has the same length everywhere in it.

As in `linear_road`, Spark runs the filter of `visits` below the watermark: only positions in the
area move it, and the closing position lies there.

Start at `generate` for data, at `speeding` and `visits` for the queries, and at
`expected_speeding` and `expected_visits` for what they must return.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from clew.workloads.expected import Expected, micros_of, span
from domains.gps import (
    AREA_B,
    SCHEMA,
    START,
    Area,
    Stretch,
    VehicleTracking,
    closing_position,
    generate,
    positions,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.workloads.verbs import FrameT

__all__ = [
    "AREA_B",
    "SCHEMA",
    "START",
    "Area",
    "Stretch",
    "VehicleTracking",
    "closing_position",
    "expected_speeding",
    "expected_visits",
    "generate",
    "legs",
    "positions",
    "speeding",
    "visits",
]

_NORTH = 111_195.0  # metres in a degree of latitude
_EAST = 85_300.0  # metres in a degree of longitude, in Beijing
_KMH = 0.036  # a centimetre per second in kilometres per hour


# The queries.


def legs(positions: FrameT) -> FrameT:
    """Measure how far each car drives in each ten seconds.

    A leg goes from the first position of the ten seconds to the last one, in a straight line.
    Ten seconds with one position only are no leg.

    Args:
        positions: Positions with a watermark on `ts`.

    Returns:
        Columns `window`, `car`, `reports` (how many positions), `centimetres` and `seconds`.
    """
    north = (F.max_by("lat", "ts") - F.min_by("lat", "ts")) * _NORTH
    east = (F.max_by("lon", "ts") - F.min_by("lon", "ts")) * _EAST
    seconds = F.unix_seconds(F.max("ts")) - F.unix_seconds(F.min("ts"))
    return (
        positions.groupBy(F.window("ts", "10 seconds"), "car")
        .agg(
            F.count("*").alias("reports"),
            F.floor(F.sqrt(north * north + east * east) * 100).alias("centimetres"),
            seconds.alias("seconds"),
        )
        .filter(F.col("seconds") > 0)
    )


def speeding(positions: FrameT, *, limit: float = 70, delay: str = "30 seconds") -> FrameT:
    """Find cars whose average speed of two minutes is above a limit.

    Windows begin every 30 seconds, so a car that speeds for longer gives a row for each of them.

    Args:
        positions: Positions of cars; a car has one at most at any time.
        limit: The highest average speed, in km/h, that is not reported.
        delay: How late a position may come: the watermark delay.

    Returns:
        Columns `window`, `car`, `reports` (how many positions), `speed` (of the last leg) and
        `average` (of all legs of the window), both in km/h.
    """
    driven = legs(positions.withWatermark("ts", delay)).select(
        F.window_time("window").alias("ts"),
        "car",
        "reports",
        "centimetres",
        "seconds",
        (F.col("centimetres") * _KMH / F.col("seconds")).alias("speed"),
    )
    return (
        driven.groupBy(F.window("ts", "120 seconds", "30 seconds"), "car")
        .agg(
            F.sum("reports").alias("reports"),
            F.max_by("speed", "ts").alias("speed"),
            (F.sum("centimetres") * _KMH / F.sum("seconds")).alias("average"),
        )
        .filter(F.col("average") > limit)
        .select("window", "car", "reports", "speed", "average")
    )


def visits(
    positions: FrameT, *, area: Area = AREA_B, more_than: int = 9, delay: str = "30 seconds"
) -> FrameT:
    """Find cars with many positions in an area.

    Windows are 15 minutes long and begin every 5 minutes.

    Args:
        positions: Positions of cars.
        area: The area.
        more_than: A car with this many positions in the area does not visit it yet.
        delay: How late a position may come: the watermark delay.

    Returns:
        Columns `window`, `car` and `reports` (how many positions in the area).
    """
    inside = F.col("lat").between(area.south, area.north) & F.col("lon").between(
        area.west, area.east
    )
    return (
        positions.withWatermark("ts", delay)
        .filter(inside)
        .groupBy(F.window("ts", "15 minutes", "5 minutes"), "car")
        .agg(F.count("*").alias("reports"))
        .filter(F.col("reports") > more_than)
        .select("window", "car", "reports")
    )


# What the queries must return. Nothing here is shared with the queries or the generator but the
# lengths of degrees and the area.


def expected_speeding(table: pa.Table, *, limit: float = 70) -> list[Expected]:
    """Work out the rows of `speeding` and what each traces to.

    Args:
        table: The positions.
        limit: As for the query.

    Returns:
        The results by window and car; the source is called `positions`.

    Examples:
        >>> table = positions(cars=1, speeding=1, visits=0, decoys=0, fast=(2, 2), seed=3)
        >>> fastest = max(expected_speeding(table), key=lambda hit: hit.values["average"])
        >>> int(fastest.values["average"]), fastest.values["reports"], fastest.size
        (94, 32, 32)
    """
    windows: dict[tuple[int, int], list[_Leg]] = defaultdict(list)
    for (start, car), leg in sorted(_legs(table).items()):
        latest = start - start % 30_000_000
        for back in range(4):
            windows[latest - back * 30_000_000, car].append(leg)
    found = []
    for (start, car), driven in sorted(windows.items()):
        average = sum(leg.length for leg in driven) * _KMH / sum(leg.seconds for leg in driven)
        if average > limit:
            rows = frozenset(row for leg in driven for row in leg.rows)
            values = {"window": span(start, 120_000_000), "car": car, "reports": len(rows)}
            values |= {"speed": driven[-1].length * _KMH / driven[-1].seconds, "average": average}
            found.append(Expected(values, {"positions": rows}))
    return found


def expected_visits(table: pa.Table, *, area: Area = AREA_B, more_than: int = 9) -> list[Expected]:
    """Work out the rows of `visits` and what each traces to.

    Args:
        table: The positions.
        area: As for the query.
        more_than: As for the query.

    Returns:
        The results by window and car; the source is called `positions`.

    Examples:
        >>> table = positions(cars=1, speeding=0, visits=1, decoys=0, seed=3)
        >>> [hit.size for hit in expected_visits(table)]
        [52, 135, 163, 111, 28]
    """
    times = micros_of(table, "ts")
    cars, lats, lons = (table[name].to_pylist() for name in ("car", "lat", "lon"))
    windows: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (lat, lon) in enumerate(zip(lats, lons, strict=True)):
        if area.south <= lat <= area.north and area.west <= lon <= area.east:
            latest = times[row] - times[row] % 300_000_000
            for back in range(3):
                windows[latest - back * 300_000_000, cars[row]].append(row)
    return [
        Expected(
            {"window": span(start, 900_000_000), "car": car, "reports": len(rows)},
            {"positions": frozenset(rows)},
        )
        for (start, car), rows in sorted(windows.items())
        if len(rows) > more_than
    ]


class _Leg(NamedTuple):
    """What a car drove in ten seconds: its length in centimetres, its time and its rows."""

    length: int
    seconds: int
    rows: list[int]


def _legs(table: pa.Table) -> dict[tuple[int, int], _Leg]:
    """Map (beginning of the ten seconds, car) to the leg."""
    times = micros_of(table, "ts")
    cars, lats, lons = (table[name].to_pylist() for name in ("car", "lat", "lon"))
    together: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in sorted(range(len(times)), key=times.__getitem__):
        together[times[row] - times[row] % 10_000_000, cars[row]].append(row)
    found = {}
    for key, rows in together.items():
        first, last = rows[0], rows[-1]
        seconds = times[last] // 1_000_000 - times[first] // 1_000_000
        if seconds:
            up, across = (lats[last] - lats[first]) * _NORTH, (lons[last] - lons[first]) * _EAST
            length = math.floor(math.sqrt(up * up + across * across) * 100)
            found[key] = _Leg(length, seconds, rows)
    return found
