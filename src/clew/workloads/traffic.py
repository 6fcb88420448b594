"""Position reports as in the Linear Road benchmark, with stops and crashes planted in them.

Time is a grid: every car reports once in each half minute, at its own second, so a report is
a cell of a cars-by-steps matrix and everything is computed on whole matrices. Cars drive
(or stand) first and are then moved so that their stops happen where the plan wants them. Start
at `generate`; `linear_road` has the queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.workloads.arrival import arrival_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

START = datetime(2024, 1, 1, 8, tzinfo=timezone.utc)
"""When the generated reports begin."""

SCHEMA = "ts timestamp, car long, speed int, xway int, lane int, dir int, seg int, pos long"
"""The reports' columns for `spark.readStream.schema`."""

_ARROW = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"),
        "car": pa.int64(),
        "speed": pa.int32(),
        "xway": pa.int32(),
        "lane": pa.int32(),
        "dir": pa.int32(),
        "seg": pa.int32(),
        "pos": pa.int64(),
    }
)

_PERIOD = 30  # seconds between the reports of a car
_FEET = 528_000  # an expressway of 100 segments
_SEGMENT = 5_280  # feet in a segment, a mile
_FEET_PER_MPH = 44  # what one mile per hour drives between two reports
_TURN = 4  # how many reports each of two cars stands that stop at one place in turn
_CARS_IN = {"breakdown": 1, "crash": 2, "brief": 1, "creeping": 1, "apart": 2, "near": 2}


@dataclass(frozen=True)
class Stop:
    """A car that was made to report speed 0.

    Attributes:
        car: The car.
        pos: Where it is at its first report of speed 0.
        first: When that report is made.
        reports: How many reports in a row show speed 0.
    """

    car: int
    pos: int
    first: datetime
    reports: int


@dataclass(frozen=True)
class LinearRoad:
    """Generated reports and what was planted in them.

    Each planted fact is a tuple of stops: one stop, or two where two cars belong together.

    Attributes:
        table: The reports, in the order in which they arrive.
        breakdowns: Cars that stand alone.
        crashes: Pairs of cars that stand at one place from the same half minute on.
        brief: Decoys: cars that stand for only three reports.
        creeping: Decoys: cars that report speed 0 but move a foot between reports.
        apart: Decoys: pairs of cars that stand at one place, one after the other.
        near: Decoys: pairs of cars that stand at the same time, a foot apart.
    """

    table: pa.Table
    breakdowns: list[tuple[Stop, ...]]
    crashes: list[tuple[Stop, ...]]
    brief: list[tuple[Stop, ...]]
    creeping: list[tuple[Stop, ...]]
    apart: list[tuple[Stop, ...]]
    near: list[tuple[Stop, ...]]


def generate(
    *,
    cars: int = 50,
    minutes: int = 15,
    seed: int = 0,
    stopped: int = 3,
    accidents: int = 1,
    decoys: int = 1,
    stand: tuple[int, int] = (4, 8),
    out_of_order: int = 0,
) -> LinearRoad:
    """Generate position reports, with what was planted in them.

    Every car reports every 30 seconds, at its own second of the half minute, so each window of
    120 seconds holds four of its reports, and a stop of `k` reports makes `k - 3` rows of
    `stopped_cars`. A car takes part in one planted fact at most.

    Args:
        cars: How many cars drive.
        minutes: For how long.
        seed: The same seed gives the same table.
        stopped: How many cars break down, each at a place of its own.
        accidents: How many pairs of cars crash.
        decoys: How many there are of each kind of decoy.
        stand: The fewest and the most reports for which a stopped car stands.
        out_of_order: By how many seconds at most a report's arrival is delayed. No report is
            late as long as the query's watermark delay is at least this.

    Returns:
        The table and the planted facts.

    Raises:
        ValueError: There are too few cars or minutes for what is to be planted.

    Examples:
        >>> road = generate(cars=20, minutes=10, stopped=2, accidents=1, seed=7)
        >>> road.table.num_rows, len(road.breakdowns), len(road.crashes)
        (400, 2, 1)
    """
    counts = {"breakdown": stopped, "crash": accidents}
    counts |= dict.fromkeys(("brief", "creeping", "apart", "near"), decoys)
    _check(cars, 2 * minutes, counts, stand)
    rng = np.random.default_rng(seed)
    plan = _plan(rng, cars, 2 * minutes, counts, stand)
    second = rng.integers(0, _PERIOD, size=cars)
    table = _drive(rng, plan, second, 2 * minutes)
    if out_of_order:
        micros = table["ts"].cast("int64").to_numpy()
        table = table.take(pa.array(arrival_order(micros, out_of_order, rng)))
    return LinearRoad(
        table,
        breakdowns=plan.facts("breakdown", second),
        crashes=plan.facts("crash", second),
        brief=plan.facts("brief", second),
        creeping=plan.facts("creeping", second),
        apart=plan.facts("apart", second),
        near=plan.facts("near", second),
    )


def reports(**options: Any) -> pa.Table:
    """Generate just the table of `generate`, with the same options.

    Examples:
        >>> reports(cars=10, minutes=5, stopped=0, accidents=0, decoys=0).num_rows
        100
    """
    return generate(**options).table


def closing_report(table: pa.Table, *, after: timedelta = timedelta(hours=1)) -> pa.Table:
    """Make the report that closes every window of a table's stream.

    Its speed is 0, because Spark runs the query's filter below the watermark: a report that
    does not pass the filter does not move the watermark. One report alone stops no car.

    Args:
        table: The reports of the stream.
        after: How far past the last report it lies; more than window and delay together.

    Returns:
        A table of one row.

    Examples:
        >>> closing_report(reports(cars=20)).select(["car", "speed"]).to_pylist()
        [{'car': -1, 'speed': 0}]
    """
    last = pc.max(table["ts"]).as_py()
    row = {"ts": last + after, "car": -1, "speed": 0, "xway": 0, "lane": 0, "dir": 0}
    return pa.Table.from_pylist([row | {"seg": -1, "pos": -1}], schema=_ARROW)


@dataclass(frozen=True)
class _Plan:
    """Which car stands where and when: one entry per car that ever stands.

    `event` numbers the planted facts; the cars of one fact follow each other.
    """

    kind: NDArray[np.str_]
    event: NDArray[np.int64]
    car: NDArray[np.int64]
    first: NDArray[np.int64]
    reports: NDArray[np.int64]
    place: NDArray[np.int64]

    def facts(self, kind: str, second: NDArray[np.int64]) -> list[tuple[Stop, ...]]:
        """List the planted facts of one kind."""
        stops: dict[int, tuple[Stop, ...]] = {}
        for i in np.flatnonzero(self.kind == kind).tolist():
            car = int(self.car[i])
            at = START + timedelta(seconds=int(self.first[i]) * _PERIOD + int(second[car]))
            stop = Stop(car, int(self.place[i]), at, int(self.reports[i]))
            event = int(self.event[i])
            stops[event] = (*stops.get(event, ()), stop)
        return list(stops.values())


def _check(cars: int, steps: int, counts: dict[str, int], stand: tuple[int, int]) -> None:
    needed = sum(count * _CARS_IN[kind] for kind, count in counts.items())
    if needed > cars:
        msg = f"the planted facts need {needed} cars of their own; got `cars={cars}`"
        raise ValueError(msg)
    if not _TURN <= stand[0] <= stand[1]:
        msg = f"`stand` is (fewest, most) reports with {_TURN} <= fewest <= most; got {stand}"
        raise ValueError(msg)
    longest = max(stand[1], 2 * _TURN)
    if steps <= longest:
        msg = f"a stop of {longest} reports needs {longest // 2 + 1} minutes; got {steps // 2}"
        raise ValueError(msg)


def _plan(
    rng: np.random.Generator,
    cars: int,
    steps: int,
    counts: dict[str, int],
    stand: tuple[int, int],
) -> _Plan:
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    event = np.repeat(np.arange(len(kinds)), [_CARS_IN[kind] for kind in kinds])
    kind = np.array(kinds, dtype=np.str_)[event]
    second_car = np.append([False], event[1:] == event[:-1])[: len(event)]
    car = rng.permutation(cars)[: len(event)]
    first = rng.integers(1, steps - max(stand[1], 2 * _TURN) + 1, size=len(kinds))[event]
    length = rng.integers(stand[0], stand[1] + 1, size=len(event))
    # Even feet only, so that a foot further nobody else stands.
    place = 2 * rng.permutation(_FEET // 2)[: len(kinds)][event]
    length[kind == "brief"] = _TURN - 1
    length[kind == "apart"] = _TURN
    first[(kind == "apart") & second_car] += _TURN
    place[(kind == "near") & second_car] += 1
    return _Plan(kind, event, car, first, length, place)


def _drive(
    rng: np.random.Generator, plan: _Plan, second: NDArray[np.int64], steps: int
) -> pa.Table:
    """Let every car drive and stand as planned; rows come in event-time order."""
    cars = len(second)
    lane, heading = _lanes(rng, plan, cars)
    standing = _standing(plan, cars, steps)
    speed = rng.integers(40, 101, size=(cars, steps), dtype=np.int32)
    speed[standing] = 0
    feet = speed.astype(np.int64) * _FEET_PER_MPH
    creeping = np.isin(np.arange(cars), plan.car[plan.kind == "creeping"])
    feet[standing & creeping[:, None]] = 1
    travelled = np.cumsum(feet, axis=1)
    origin = rng.integers(0, _FEET, size=cars)
    # Positions count backwards for the cars that head the other way.
    place = np.where(heading[plan.car] == 1, _FEET - 1 - plan.place, plan.place)
    origin[plan.car] = place - travelled[plan.car, plan.first]
    pos = (origin[:, None] + travelled) % _FEET
    pos = np.where(heading[:, None] == 1, _FEET - 1 - pos, pos)
    order = np.argsort(second, kind="stable")
    seconds = np.arange(steps)[:, None] * _PERIOD + second[order][None, :]
    columns = {
        "ts": (int(START.timestamp()) + seconds.ravel()) * 1_000_000,
        "car": np.tile(order, steps),
        "speed": speed[order].T.ravel(),
        "xway": np.zeros(cars * steps, dtype=np.int32),
        "lane": np.tile(lane[order], steps),
        "dir": np.tile(heading[order], steps),
        "seg": (pos[order].T.ravel() // _SEGMENT).astype(np.int32),
        "pos": pos[order].T.ravel(),
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()}).cast(_ARROW)


def _lanes(
    rng: np.random.Generator, plan: _Plan, cars: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give each car a lane and a direction; cars of one planted fact share them."""
    lane = rng.integers(1, 4, size=cars, dtype=np.int32)
    heading = rng.integers(0, 2, size=cars, dtype=np.int32)
    leader = plan.car[np.searchsorted(plan.event, plan.event)]
    lane[plan.car] = lane[leader]
    heading[plan.car] = heading[leader]
    return lane, heading


def _standing(plan: _Plan, cars: int, steps: int) -> NDArray[np.bool_]:
    """Mark, per car and step, the reports with speed 0."""
    first, last = np.zeros(cars, dtype=np.int64), np.zeros(cars, dtype=np.int64)
    first[plan.car] = plan.first
    last[plan.car] = plan.first + plan.reports
    step = np.arange(steps)[None, :]
    return (step >= first[:, None]) & (step < last[:, None])
