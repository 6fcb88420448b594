"""Object Annotation: bicycles in front of a car, and pedestrians who cross.

A car takes ten frames a second. A frame has the objects that its lidar, its left and its right
camera found, with kind, position and name, and so takes kilobytes: `x` is metres ahead, `y`
metres to the left. These are the two Object Annotation queries of Ananke's evaluation, where
a result of the first has 15 to 50 source rows and one of the second 2.

A frame has many objects, so both queries explode it first, and a source row may be behind a
result through any of them. Spark drops frames in which there is nothing to explode below the
watermark, so in the closing frame each sensor sees something.

Start at `generate` for data, at `bicycles_ahead` and `crossings` for the queries, and at
`expected_bicycles_ahead` and `expected_crossings` for what they must return.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clew.workloads.expected import Expected, instant, micros_of, span
from domains.driving import (
    SCHEMA,
    START,
    Crossing,
    ObjectAnnotation,
    Ride,
    closing_frame,
    frames,
    generate,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.workloads.verbs import FrameT

__all__ = [
    "SCHEMA",
    "START",
    "Crossing",
    "ObjectAnnotation",
    "Ride",
    "bicycles_ahead",
    "closing_frame",
    "crossings",
    "expected_bicycles_ahead",
    "expected_crossings",
    "frames",
    "generate",
]


# The queries.


def bicycles_ahead(frames: FrameT, *, more_than: int = 11, delay: str = "2 seconds") -> FrameT:
    """Find bicycles that are in front of a car in many frames.

    In front is ahead and less than two metres to either side. Windows are 6 seconds long and
    begin every 2 seconds.

    Args:
        frames: What the sensors see.
        more_than: A bicycle in front in this many frames is not reported yet.
        delay: How late a frame may come: the watermark delay.

    Returns:
        Columns `window`, `car`, `object` (the bicycle) and `frames` (how many).
    """
    in_front = (F.col("seen.x") > 0) & (F.abs(F.col("seen.y")) < 2)
    return (
        frames.withWatermark("ts", delay)
        .select("ts", "car", F.explode("lidar").alias("seen"))
        .filter((F.col("seen.kind") == "bicycle") & in_front)
        .select("ts", "car", F.col("seen.object").alias("object"))
        .groupBy(F.window("ts", "6 seconds", "2 seconds"), "car", "object")
        .agg(F.count("*").alias("frames"))
        .filter(F.col("frames") > more_than)
        .select("window", "car", "object", "frames")
    )


def crossings(frames: FrameT, *, delay: str = "2 seconds") -> FrameT:
    """Find pedestrians whom both cameras of a car see within two seconds.

    There is a row for each pair of a sighting by the left camera and one by the right camera,
    whichever comes first.

    Args:
        frames: What the sensors see.
        delay: How late a frame may come: the watermark delay.

    Returns:
        Columns `car`, `object` (the pedestrian), `left_time` and `right_time`.
    """
    marked = frames.withWatermark("ts", delay)
    soon = (
        (F.col("left_car") == F.col("right_car"))
        & (F.col("left_object") == F.col("right_object"))
        & (F.col("right_time") >= F.col("left_time") - F.expr("INTERVAL 2 SECONDS"))
        & (F.col("right_time") <= F.col("left_time") + F.expr("INTERVAL 2 SECONDS"))
    )
    return (
        _pedestrians(marked, "left")
        .join(_pedestrians(marked, "right"), soon, "inner")
        .select(
            F.col("left_car").alias("car"),
            F.col("left_object").alias("object"),
            "left_time",
            "right_time",
        )
    )


def _pedestrians(frames: FrameT, camera: str) -> FrameT:
    """List whom a camera sees, in columns that say which camera it is."""
    return (
        frames.select("ts", "car", F.explode(camera).alias("seen"))
        .filter(F.col("seen.kind") == "pedestrian")
        .select(
            F.col("ts").alias(f"{camera}_time"),
            F.col("car").alias(f"{camera}_car"),
            F.col("seen.object").alias(f"{camera}_object"),
        )
    )


# What the queries must return. Nothing here is shared with the queries or the generator.


def expected_bicycles_ahead(table: pa.Table, *, more_than: int = 11) -> list[Expected]:
    """Work out the rows of `bicycles_ahead` and what each traces to.

    Args:
        table: The frames.
        more_than: As for the query.

    Returns:
        The results by window, car and bicycle; the source is called `frames`.

    Examples:
        >>> table = frames(cars=1, bicycles=1, crossings=0, decoys=0, ahead=(20, 20), seed=1)
        >>> [hit.size for hit in expected_bicycles_ahead(table)]
        [20, 20, 12]
    """
    times, cars = micros_of(table, "ts"), table["car"].to_pylist()
    windows: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for row, seen in enumerate(table["lidar"].to_pylist()):
        latest = times[row] - times[row] % 2_000_000
        for each in seen:
            if each["kind"] == "bicycle" and each["x"] > 0 and -2 < each["y"] < 2:
                for back in range(3):
                    windows[latest - back * 2_000_000, cars[row], each["object"]].append(row)
    return [
        Expected(
            {
                "window": span(start, 6_000_000),
                "car": car,
                "object": bicycle,
                "frames": len(rows),
            },
            {"frames": frozenset(rows)},
        )
        for (start, car, bicycle), rows in sorted(windows.items())
        if len(rows) > more_than
    ]


def expected_crossings(table: pa.Table) -> list[Expected]:
    """Work out the rows of `crossings` and what each traces to.

    Args:
        table: The frames.

    Returns:
        The results by car, pedestrian and times; the source is called `frames`.

    Examples:
        >>> table = frames(cars=1, bicycles=0, crossings=1, decoys=0, seed=1)
        >>> [hit.size for hit in expected_crossings(table)]
        [2, 2, 2, 2]
    """
    times = micros_of(table, "ts")
    left, right = (_walking(table, camera) for camera in ("left", "right"))
    found = []
    for car, person in sorted(left.keys() & right.keys()):
        for one in sorted(left[car, person], key=times.__getitem__):
            for other in sorted(right[car, person], key=times.__getitem__):
                if abs(times[one] - times[other]) <= 2_000_000:
                    values = {"car": car, "object": person}
                    values |= {"left_time": instant(times[one])}
                    values |= {"right_time": instant(times[other])}
                    found.append(Expected(values, {"frames": frozenset([one, other])}))
    return found


def _walking(table: pa.Table, camera: str) -> dict[tuple[int, str], list[int]]:
    """Map (car, pedestrian) to the frames in which a camera sees them."""
    cars = table["car"].to_pylist()
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, seen in enumerate(table[camera].to_pylist()):
        for each in seen:
            if each["kind"] == "pedestrian":
                found[cars[row], each["object"]].append(row)
    return found
