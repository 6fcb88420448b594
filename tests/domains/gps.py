"""GPS positions of cars in Beijing, with fast drives and visits planted in them.

Each car drives round the city on a ring of its own, so a position is an angle and everything is
computed on whole cars-by-reports matrices. No ring of an ordinary car comes near area B. A car
with something planted is turned along its ring until it is where the plan wants it. Start at
`generate`; `vehicle_tracking` has the queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.workloads.arrival import arrival_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

START = datetime(2024, 1, 1, 8, tzinfo=timezone.utc)
"""When the generated positions begin."""

SCHEMA = "ts timestamp, car long, lat double, lon double"
"""The positions' columns for `spark.readStream.schema`."""


class Area(NamedTuple):
    """A box on the map, in degrees; its edges belong to it."""

    south: float
    north: float
    west: float
    east: float


AREA_B = Area(39.915, 39.922, 116.305, 116.320)
"""The surroundings of Yuyuantan Park."""

_ARROW = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"),
        "car": pa.int64(),
        "lat": pa.float64(),
        "lon": pa.float64(),
    }
)

_CENTRE = (39.9087, 116.3975)  # of all rings: Tiananmen
_NORTH = 111_195  # metres in a degree of latitude
_EAST = 85_300  # metres in a degree of longitude, in Beijing
_LONGEST_GAP = 5  # seconds between two reports of a car: ten seconds always hold two
_MARGIN = 120  # seconds at both ends in which nothing planted begins or ends
_SPRINT = 20  # seconds: too short for a high average
_FASTER = 60  # km/h on top
_SPEEDS = {"brisk": (60, 69), "passing": (36, 50), "parked": (0, 0)}  # km/h
_OTHER_SPEEDS = (30, 50)
_DECOYS = ("sprinting", "brisk", "passing", "parked")


@dataclass(frozen=True)
class Stretch:
    """Some reports in a row in which a car was made to do something.

    Attributes:
        car: The car.
        first: When the first of them is made.
        last: When the last of them is made.
        reports: How many they are.
    """

    car: int
    first: datetime
    last: datetime
    reports: int


@dataclass(frozen=True)
class VehicleTracking:
    """Generated positions and what was planted in them.

    Attributes:
        table: The positions, in the order in which they arrive.
        speeding: Cars that drive 90 to 110 km/h for minutes.
        visits: Cars that stand in area B for minutes. They drive there and away again, so there
            are more of their reports in the area before and after.
        sprinting: Decoys: cars that drive as fast, but for 20 seconds only.
        brisk: Decoys: cars that drive 60 to 69 km/h all the time.
        passing: Decoys: cars that cut a corner of area B.
        parked: Decoys: cars that stand just outside area B all the time.
    """

    table: pa.Table
    speeding: list[Stretch]
    visits: list[Stretch]
    sprinting: list[Stretch]
    brisk: list[int]
    passing: list[int]
    parked: list[int]


def generate(
    *,
    cars: int = 30,
    minutes: int = 20,
    seed: int = 0,
    speeding: int = 2,
    visits: int = 2,
    decoys: int = 1,
    every: tuple[int, int] = (2, 5),
    fast: tuple[int, int] = (3, 8),
    stay: tuple[int, int] = (2, 10),
    out_of_order: int = 0,
) -> VehicleTracking:
    """Generate positions, with what was planted in them.

    A car reports at whole seconds, about 34 times in two minutes if not asked otherwise. It takes
    part in one planted fact at most. A visitor needs more than 50 minutes for a round, and only
    then comes through area B again.

    Args:
        cars: How many cars drive.
        minutes: For how long.
        seed: The same seed gives the same table.
        speeding: How many cars speed, once each.
        visits: How many cars visit area B.
        decoys: How many there are of each kind of decoy.
        every: The fewest and the most seconds between two reports of a car; 5 at most.
        fast: The fewest and the most minutes for which a speeding car speeds.
        stay: The fewest and the most minutes for which a visitor stands.
        out_of_order: By how many seconds at most a position's arrival is delayed. No position
            is late as long as the query's watermark delay is at least this.

    Returns:
        The table and the planted facts.

    Raises:
        ValueError: There are too few cars or minutes for what is to be planted.

    Examples:
        >>> traffic = generate(cars=10, speeding=2, visits=1, seed=7)
        >>> traffic.table.num_rows, len(traffic.speeding), len(traffic.visits)
        (3403, 2, 1)
    """
    counts = {"speeding": speeding, "visit": visits, **dict.fromkeys(_DECOYS, decoys)}
    _check(cars, minutes, counts, every, fast, stay)
    rng = np.random.default_rng(seed)
    plan = _plan(rng, cars, 60 * minutes, counts, fast, stay)
    gaps = rng.integers(every[0], every[1] + 1, size=(cars, 60 * minutes // every[0] + 1))
    gaps[:, 0] = rng.integers(0, every[1], size=cars)
    times = np.cumsum(gaps, axis=1)
    table = _table(times, *_drive(rng, plan, times, gaps), 60 * minutes)
    if out_of_order:
        micros = table["ts"].cast("int64").to_numpy()
        table = table.take(pa.array(arrival_order(micros, out_of_order, rng)))
    return VehicleTracking(
        table,
        speeding=plan.stretches("speeding", times),
        visits=plan.stretches("visit", times),
        sprinting=plan.stretches("sprinting", times),
        brisk=plan.cars("brisk"),
        passing=plan.cars("passing"),
        parked=plan.cars("parked"),
    )


def positions(**options: Any) -> pa.Table:
    """Generate just the table of `generate`, with the same options.

    Examples:
        >>> positions(cars=1, speeding=0, visits=0, decoys=0).column_names
        ['ts', 'car', 'lat', 'lon']
    """
    return generate(**options).table


def closing_position(table: pa.Table, *, after: timedelta = timedelta(hours=1)) -> pa.Table:
    """Make the position that closes every window of a table's stream.

    It lies in area B, because Spark runs the filter of `visits` below the watermark: a position
    that does not pass the filter does not move the watermark. One position alone is no visit and
    has no speed.

    Args:
        table: The positions of the stream.
        after: How far past the last position it lies; more than window and delay together.

    Returns:
        A table of one row.

    Examples:
        >>> closing_position(positions()).select(["car", "lat", "lon"]).to_pylist()
        [{'car': -1, 'lat': 39.915, 'lon': 116.305}]
    """
    last = pc.max(table["ts"]).as_py()
    row = {"ts": last + after, "car": -1, "lat": AREA_B.south, "lon": AREA_B.west}
    return pa.Table.from_pylist([row], schema=_ARROW)


@dataclass(frozen=True)
class _Plan:
    """What each car does: its kind, and from which to which second it does it."""

    kind: NDArray[np.str_]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]

    def cars(self, kind: str) -> list[int]:
        """List the cars of one kind."""
        found: list[int] = np.flatnonzero(self.kind == kind).tolist()
        return found

    def stretches(self, kind: str, times: NDArray[np.int64]) -> list[Stretch]:
        """List the planted facts of one kind."""
        found = []
        for car in self.cars(kind):
            own = times[car]
            seconds = own[(own >= self.begin[car]) & (own < self.end[car])].tolist()
            first, last = (START + timedelta(seconds=s) for s in (seconds[0], seconds[-1]))
            found.append(Stretch(car, first, last, len(seconds)))
        return found


def _check(
    cars: int,
    minutes: int,
    counts: dict[str, int],
    every: tuple[int, int],
    fast: tuple[int, int],
    stay: tuple[int, int],
) -> None:
    needed = sum(counts.values())
    if needed > cars:
        msg = f"the planted facts need {needed} cars of their own; got `cars={cars}`"
        raise ValueError(msg)
    if not 1 <= every[0] <= every[1] <= _LONGEST_GAP:
        msg = f"`every` is (fewest, most) seconds with 1 <= fewest <= most <= {_LONGEST_GAP}; "
        raise ValueError(msg + f"got {every}")
    for name, (fewest, most), least in (("fast", fast, 2), ("stay", stay, 1)):
        if not least <= fewest <= most:
            msg = f"`{name}` is (fewest, most) minutes with {least} <= fewest <= most; "
            raise ValueError(msg + f"got {(fewest, most)}")
    longest = max(fast[1], stay[1])
    if minutes < longest + 2 * _MARGIN // 60:
        msg = f"{longest} minutes of one fact need {longest + 2 * _MARGIN // 60}; got {minutes}"
        raise ValueError(msg)


def _plan(
    rng: np.random.Generator,
    cars: int,
    seconds: int,
    counts: dict[str, int],
    fast: tuple[int, int],
    stay: tuple[int, int],
) -> _Plan:
    kinds = np.repeat(list(counts), list(counts.values()))
    kind = np.full(cars, "ordinary", dtype="<U9")
    kind[rng.permutation(cars)[: len(kinds)]] = kinds
    length = np.zeros(cars, dtype=np.int64)
    for name, (fewest, most) in (("speeding", fast), ("visit", stay)):
        some = kind == name
        length[some] = rng.integers(60 * fewest, 60 * most + 1, size=int(some.sum()))
    length[kind == "sprinting"] = _SPRINT
    begin = rng.integers(_MARGIN, seconds - _MARGIN - length + 1)
    return _Plan(kind, begin, begin + length)


def _drive(
    rng: np.random.Generator, plan: _Plan, times: NDArray[np.int64], gaps: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute latitude and longitude of every car at every report."""
    cars, steps = times.shape
    within = (times >= plan.begin[:, None]) & (times < plan.end[:, None])
    first = np.argmax(times >= plan.begin[:, None], axis=1)
    speeds = np.array([_SPEEDS.get(kind, _OTHER_SPEEDS) for kind in plan.kind.tolist()])
    speed = rng.uniform(speeds[:, :1], speeds[:, 1:], size=(cars, steps))
    speed[within & np.isin(plan.kind, ("speeding", "sprinting"))[:, None]] += _FASTER
    # A visitor still drives up to its first report in the area, and stands from then on.
    later = np.arange(steps)[None, :] > first[:, None]
    speed[within & later & (plan.kind == "visit")[:, None]] = 0
    metres = np.cumsum(speed / 3.6 * gaps, axis=1)
    radius, angle = _rings(rng, plan.kind)
    turned = (metres - metres[np.arange(cars), first][:, None]) / radius[:, None]
    angle = angle[:, None] + rng.choice((-1, 1), size=cars)[:, None] * turned
    lat = _CENTRE[0] + radius[:, None] * np.sin(angle) / _NORTH
    lon = _CENTRE[1] + radius[:, None] * np.cos(angle) / _EAST
    return np.round(lat, 6), np.round(lon, 6)


def _rings(
    rng: np.random.Generator, kind: NDArray[np.str_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give each car a ring, and the angle at which it begins what is planted.

    Area B lies 6.6 to 8 kilometres west of the centre, between the rings of ordinary cars.
    """
    cars = len(kind)
    south = (AREA_B.south - _CENTRE[0]) * _NORTH
    north = (AREA_B.north - _CENTRE[0]) * _NORTH
    east = (_CENTRE[1] - AREA_B.east) * _EAST
    inner = rng.uniform(2_000, 6_000, size=cars)
    radius = np.where(rng.random(cars) < 0.5, inner, rng.uniform(8_600, 15_000, size=cars))
    visit, passing, parked = kind == "visit", kind == "passing", kind == "parked"
    radius[visit] = rng.uniform(6_900, 7_700, size=cars)[visit]
    radius[passing] = rng.uniform(6_652, 6_657, size=cars)[passing]
    radius[parked] = 7_200
    angle = rng.uniform(0, 2 * np.pi, size=cars)
    height = np.zeros(cars)
    height[visit] = rng.uniform(south + 100, north - 100, size=cars)[visit]
    # A ring of a passing car is in the area between its south and its east edge.
    height[passing] = (south + np.sqrt(radius[passing] ** 2 - east**2)) / 2
    height[parked] = north + 30
    placed = visit | passing | parked
    angle[placed] = np.pi - np.arcsin(height[placed] / radius[placed])
    return radius, angle


def _table(
    times: NDArray[np.int64], lat: NDArray[np.float64], lon: NDArray[np.float64], seconds: int
) -> pa.Table:
    """List the reports of all cars in event-time order."""
    car, step = np.nonzero(times < seconds)
    order = np.lexsort((car, times[car, step]))
    car, step = car[order], step[order]
    columns = {
        "ts": (int(START.timestamp()) + times[car, step]) * 1_000_000,
        "car": car,
        "lat": lat[car, step],
        "lon": lon[car, step],
    }
    return pa.table({name: pa.array(values) for name, values in columns.items()}).cast(_ARROW)
