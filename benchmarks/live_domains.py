"""The use cases of the live benchmark: the queries of four domains, two at a time.

The two queries of a domain read one stream and run together, as in Ananke's evaluation. Each query
says in a column when a result happened: at the end of its window or, in a join, with the later of
the two rows. `Domain.fine` is a small stream for provenance latency: four times the bound U of the
domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.streams import REPORTS, SEED, Data
from clew.workloads import linear_road
from domains import object_annotation, smart_grid, vehicle_tracking

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from clew.workloads import FrameT

EVENT_TIME = "happened"


@dataclass(frozen=True)
class Domain:
    """Queries that read one stream, and run together.

    Attributes:
        use_case: Its name in the results.
        data: The stream.
        rows: How many rows, about.
        quick_rows: How many in a quick run.
        batches: In how many batches they come.
        queries: Turn the source, plain or traced, into the results.
        fine: Makes the stream for provenance latency.
        databases: It is measured with databases too.
    """

    use_case: str
    data: Data
    rows: int
    quick_rows: int
    batches: int
    queries: Mapping[str, Callable[[Any], Any]]
    fine: Callable[[], pa.Table]
    databases: bool = False


def _happening(query: Callable[[Any], Any], time: str) -> Callable[[Any], Any]:
    """Add the column that says when a result happened."""

    def with_time(source: FrameT) -> FrameT:
        result: FrameT = query(source).withColumn(EVENT_TIME, F.expr(time))
        return result

    return with_time


def _readings(rows: int) -> tuple[pa.Table, pa.Table]:
    days = 28
    meters = rows // (24 * days)
    special = {"blackouts": 7, "compensations": meters // 25}
    table = smart_grid.readings(meters=meters, days=days, seed=SEED, **special)
    return table, smart_grid.closing_reading(table)


def _positions(rows: int) -> tuple[pa.Table, pa.Table]:
    minutes = 60
    cars = max(40, rows * 7 // (2 * 60 * minutes))
    special = {"speeding": cars // 20, "visits": cars // 20}
    table = vehicle_tracking.positions(cars=cars, minutes=minutes, seed=SEED, **special)
    return table, vehicle_tracking.closing_position(table)


def _frames(rows: int) -> tuple[pa.Table, pa.Table]:
    seconds = 120
    cars = max(1, rows // (10 * seconds))
    special = {"bicycles": 4 * cars, "crossings": 4 * cars}
    table = object_annotation.frames(cars=cars, seconds=seconds, seed=SEED, **special)
    return table, object_annotation.closing_frame(table)


READINGS = Data("live_readings", smart_grid.SCHEMA, _readings)
POSITIONS = Data("positions", vehicle_tracking.SCHEMA, _positions)
FRAMES = Data("frames", object_annotation.SCHEMA, _frames)

DOMAINS = (
    Domain(
        "linear_road",
        REPORTS,
        9_000_000,
        100_000,
        36,
        {
            "stopped": _happening(linear_road.stopped_cars, "window.end"),
            "accidents": _happening(linear_road.accidents_from_reports, "window.end"),
        },
        lambda: linear_road.reports(cars=400, minutes=10, seed=SEED, stopped=40, accidents=10),
    ),
    Domain(
        "smart_grid",
        READINGS,
        5_000_000,
        80_000,
        20,
        {
            "blackouts": _happening(smart_grid.blackouts, "window.end"),
            "anomalies": _happening(smart_grid.anomalies, "day + interval 1 day"),
        },
        lambda: smart_grid.readings(meters=100, days=8, seed=SEED, blackouts=4, compensations=20),
        databases=True,
    ),
    Domain(
        "vehicle_tracking",
        POSITIONS,
        1_800_000,
        60_000,
        30,
        {
            "speeding": _happening(vehicle_tracking.speeding, "window.end"),
            "visits": _happening(vehicle_tracking.visits, "window.end"),
        },
        lambda: vehicle_tracking.positions(cars=60, minutes=60, seed=SEED, speeding=12, visits=12),
    ),
    Domain(
        "object_annotation",
        FRAMES,
        280_000,
        12_000,
        32,
        {
            "bicycles": _happening(object_annotation.bicycles_ahead, "window.end"),
            "crossings": _happening(object_annotation.crossings, "greatest(left_time, right_time)"),
        },
        lambda: object_annotation.frames(cars=10, seconds=24, seed=SEED, bicycles=20, crossings=20),
        databases=True,
    ),
)
"""All use cases, in the order in which they are measured."""
