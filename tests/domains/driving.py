"""Frames of cars that look around, with bicycles and pedestrians planted in them.

A car takes ten frames a second. In each its lidar sees the objects on both sides of the road, and
each camera those on one side. They stay the same from frame to frame, so everything is computed
on whole frames-by-objects matrices. What is planted comes in runs: one object, seen by one sensor
in some frames in a row. Start at `generate`; `object_annotation` has the queries.
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
"""When the generated frames begin."""

_SEEN = "array<struct<kind: string, x: double, y: double, object: string>>"

SCHEMA = f"ts timestamp, car long, lidar {_SEEN}, left {_SEEN}, right {_SEEN}"
"""The frames' columns for `spark.readStream.schema`."""

_OBJECT = pa.struct(
    {"kind": pa.string(), "x": pa.float64(), "y": pa.float64(), "object": pa.string()}
)
_ARROW = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"),
        "car": pa.int64(),
        "lidar": pa.list_(_OBJECT),
        "left": pa.list_(_OBJECT),
        "right": pa.list_(_OBJECT),
    }
)

_PERIOD = 100_000  # microseconds between two frames of a car
_AROUND = {"vehicle": 0.6, "obstacle": 0.2, "bicycle": 0.1, "pedestrian": 0.1}
_RANGE = 60  # metres that a car sees ahead and behind
_ENOUGH = 12  # the fewest frames that `bicycles_ahead` reports
_SOON = (3, 15)  # frames between the first sightings by the two cameras
_LATE = (22, 40)  # the same where the sightings are to be more than two seconds apart
_GLIMPSE = 2  # the most frames in which a camera sees a planted object
_RIDES = ("ride", "brief", "beside", "behind")
_CROSSINGS = ("crossing", "slow", "cyclist")


@dataclass(frozen=True)
class Ride:
    """A bicycle that the lidar was made to see in some frames in a row.

    Attributes:
        car: The car that sees it.
        object: The bicycle.
        first: When the first of the frames is taken.
        frames: How many they are.
    """

    car: int
    object: str
    first: datetime
    frames: int


@dataclass(frozen=True)
class Crossing:
    """An object that both cameras were made to see.

    Attributes:
        car: The car that sees it.
        object: The object.
        left: When the left camera sees it.
        right: When the right camera sees it.
    """

    car: int
    object: str
    left: tuple[datetime, ...]
    right: tuple[datetime, ...]


@dataclass(frozen=True)
class ObjectAnnotation:
    """Generated frames and what was planted in them.

    Attributes:
        table: The frames, in the order in which they arrive.
        rides: Bicycles that are in front of a car.
        crossings: Pedestrians whom both cameras see within two seconds.
        brief: Decoys: bicycles in front for 11 frames only.
        beside: Decoys: bicycles ahead, but next to the lane.
        behind: Decoys: bicycles in the lane, but behind.
        slow: Decoys: pedestrians whom both cameras see, more than two seconds apart.
        cyclists: Decoys: bicycles that both cameras see within two seconds.
    """

    table: pa.Table
    rides: list[Ride]
    crossings: list[Crossing]
    brief: list[Ride]
    beside: list[Ride]
    behind: list[Ride]
    slow: list[Crossing]
    cyclists: list[Crossing]


def generate(
    *,
    cars: int = 4,
    seconds: int = 30,
    seed: int = 0,
    objects: int = 24,
    bicycles: int = 3,
    crossings: int = 3,
    decoys: int = 1,
    ahead: tuple[int, int] = (15, 60),
    out_of_order: int = 0,
) -> ObjectAnnotation:
    """Generate frames, with what was planted in them.

    Nothing but what is planted is in a car's lane, and no camera sees what is on the other side
    of the road. So without decoys and planted facts the queries find nothing. A camera sees a
    planted pedestrian in one frame or two, so a crossing makes one to four rows of `crossings`.

    Args:
        cars: How many cars drive.
        seconds: For how long, ten frames each.
        seed: The same seed gives the same table.
        objects: How many objects there are around each car; a frame takes 70 bytes for each.
        bicycles: How many bicycles ride in front of a car.
        crossings: How many pedestrians cross.
        decoys: How many there are of each kind of decoy.
        ahead: The fewest and the most frames for which a bicycle is in front.
        out_of_order: By how many seconds at most a frame's arrival is delayed. No frame is late
            as long as the query's watermark delay is at least this.

    Returns:
        The table and the planted facts.

    Raises:
        ValueError: There are too few seconds or objects for what is asked for.

    Examples:
        >>> drives = generate(cars=2, seconds=10, bicycles=2, crossings=1, seed=7)
        >>> drives.table.num_rows, len(drives.rides), len(drives.crossings)
        (200, 2, 1)
    """
    _check(cars, 10 * seconds, objects, ahead)
    counts = {"ride": bicycles, "crossing": crossings}
    counts |= dict.fromkeys((*_RIDES[1:], *_CROSSINGS[1:]), decoys)
    rng = np.random.default_rng(seed)
    planted = _plan(rng, cars, 10 * seconds, counts, ahead)
    shift = rng.integers(0, _PERIOD, size=cars)
    names = [f"{car}-{i}" for car in range(cars) for i in range(objects)]
    names += [f"{car}-{objects + i}" for i, car in enumerate(planted.car.tolist())]
    table = _look(rng, planted, names, shift, 10 * seconds, objects)
    if out_of_order:
        micros = table["ts"].cast("int64").to_numpy()
        table = table.take(pa.array(arrival_order(micros, out_of_order, rng)))
    facts = _Facts(planted, names[cars * objects :], shift)
    return ObjectAnnotation(
        table,
        rides=facts.rides("ride"),
        crossings=facts.crossings("crossing"),
        brief=facts.rides("brief"),
        beside=facts.rides("beside"),
        behind=facts.rides("behind"),
        slow=facts.crossings("slow"),
        cyclists=facts.crossings("cyclist"),
    )


def frames(**options: Any) -> pa.Table:
    """Generate just the table of `generate`, with the same options.

    Examples:
        >>> frames(cars=3, seconds=10).num_rows
        300
    """
    return generate(**options).table


def closing_frame(table: pa.Table, *, after: timedelta = timedelta(minutes=1)) -> pa.Table:
    """Make the frame that closes every window of a table's stream.

    Each sensor sees one obstacle in it: Spark drops frames in which there is nothing to explode
    below the watermark, and a frame that is dropped there does not move it.

    Args:
        table: The frames of the stream.
        after: How far past the last frame it lies; more than window and delay together.

    Returns:
        A table of one row.

    Examples:
        >>> closing_frame(frames()).select(["car", "left"]).to_pylist()
        [{'car': -1, 'left': [{'kind': 'obstacle', 'x': 0.0, 'y': 0.0, 'object': 'end'}]}]
    """
    last = pc.max(table["ts"]).as_py()
    seen = [{"kind": "obstacle", "x": 0.0, "y": 0.0, "object": "end"}]
    row = {"ts": last + after, "car": -1, "lidar": seen, "left": seen, "right": seen}
    return pa.Table.from_pylist([row], schema=_ARROW)


@dataclass(frozen=True)
class _Planted:
    """The planted objects, and the runs in which sensors see them.

    `kind` and `car` have an entry per object; the rest has one per run, and `which` says of
    which object.
    """

    kind: NDArray[np.str_]
    car: NDArray[np.int64]
    which: NDArray[np.int64]
    sensor: NDArray[np.str_]
    first: NDArray[np.int64]
    length: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def types(self) -> NDArray[np.str_]:
        """Say what each object is."""
        walks = np.isin(self.kind, ("crossing", "slow"))
        return np.where(walks, "pedestrian", "bicycle")


@dataclass(frozen=True)
class _Facts:
    """The planted objects as a user of the generator wants to see them."""

    planted: _Planted
    names: list[str]
    shift: NDArray[np.int64]

    def rides(self, kind: str) -> list[Ride]:
        """List what was planted for the lidar."""
        found = []
        for run in np.flatnonzero(self.planted.kind[self.planted.which] == kind).tolist():
            times = self._times(run)
            thing = int(self.planted.which[run])
            car = int(self.planted.car[thing])
            found.append(Ride(car, self.names[thing], times[0], len(times)))
        return found

    def crossings(self, kind: str) -> list[Crossing]:
        """List what was planted for the cameras."""
        times: dict[int, dict[str, tuple[datetime, ...]]] = {}
        for run in np.flatnonzero(self.planted.kind[self.planted.which] == kind).tolist():
            seen = times.setdefault(int(self.planted.which[run]), {})
            seen[str(self.planted.sensor[run])] = self._times(run)
        return [
            Crossing(int(self.planted.car[thing]), self.names[thing], seen["left"], seen["right"])
            for thing, seen in times.items()
        ]

    def _times(self, run: int) -> tuple[datetime, ...]:
        first, length = int(self.planted.first[run]), int(self.planted.length[run])
        shift = int(self.shift[self.planted.car[self.planted.which[run]]])
        steps = range(first, first + length)
        return tuple(START + timedelta(microseconds=step * _PERIOD + shift) for step in steps)


def _check(cars: int, steps: int, objects: int, ahead: tuple[int, int]) -> None:
    if cars < 1:
        msg = f"`cars` is 1 or more; got {cars}"
        raise ValueError(msg)
    if objects < 2:
        msg = f"`objects` is 2 or more, one on each side; got {objects}"
        raise ValueError(msg)
    if not _ENOUGH <= ahead[0] <= ahead[1]:
        msg = f"`ahead` is (fewest, most) frames with {_ENOUGH} <= fewest <= most; got {ahead}"
        raise ValueError(msg)
    longest = max(ahead[1], _LATE[1] + _GLIMPSE)
    if steps < longest:
        msg = f"a fact of {longest} frames needs {-(-longest // 10)} seconds; got {steps // 10}"
        raise ValueError(msg)


def _plan(
    rng: np.random.Generator,
    cars: int,
    steps: int,
    counts: dict[str, int],
    ahead: tuple[int, int],
) -> _Planted:
    kind = np.repeat(list(counts), list(counts.values())).astype(np.str_)
    car = rng.integers(0, cars, size=len(kind))
    rides, crossings = (np.flatnonzero(np.isin(kind, some)) for some in (_RIDES, _CROSSINGS))
    runs = zip(
        _ride(rng, kind[rides], rides, steps, ahead),
        _cross(rng, kind[crossings], crossings, steps),
        strict=True,
    )
    return _Planted(kind, car, *(np.concatenate(columns) for columns in runs))


def _ride(
    rng: np.random.Generator,
    kind: NDArray[np.str_],
    which: NDArray[np.intp],
    steps: int,
    ahead: tuple[int, int],
) -> tuple[NDArray[Any], ...]:
    """Make the run of each ride."""
    size = len(kind)
    length = rng.integers(ahead[0], ahead[1] + 1, size=size)
    length[kind == "brief"] = _ENOUGH - 1
    first = rng.integers(0, steps - length + 1)
    x, y = rng.uniform(5, 30, size=size), rng.uniform(-1.5, 1.5, size=size)
    x[kind == "behind"] *= -1
    y[kind == "beside"] = np.copysign(np.abs(y) + 2.5, y)[kind == "beside"]
    return which, np.full(size, "lidar"), first, length, x, y


def _cross(
    rng: np.random.Generator, kind: NDArray[np.str_], which: NDArray[np.intp], steps: int
) -> tuple[NDArray[Any], ...]:
    """Make the two runs of each crossing, one by either camera."""
    size = len(kind)
    apart = rng.integers(_SOON[0], _SOON[1] + 1, size=size)
    late = rng.integers(_LATE[0], _LATE[1] + 1, size=size)
    apart = np.where(kind == "slow", late, apart)
    first = rng.integers(0, steps - apart - _GLIMPSE + 1)
    leftwards = rng.random(size) < 0.5
    return (
        np.concatenate([which, which]),
        np.repeat(["left", "right"], size),
        np.concatenate([first + apart * leftwards, first + apart * ~leftwards]),
        rng.integers(1, _GLIMPSE + 1, size=2 * size),
        rng.uniform(2, 10, size=2 * size),
        rng.uniform(3, 8, size=2 * size) * np.repeat([1, -1], size),
    )


def _look(
    rng: np.random.Generator,
    planted: _Planted,
    names: list[str],
    shift: NDArray[np.int64],
    steps: int,
    objects: int,
) -> pa.Table:
    """Let every car see what is around it and what is planted; rows come in event-time order."""
    cars = len(shift)
    around = rng.choice(list(_AROUND), p=list(_AROUND.values()), size=cars * objects)
    kinds = pa.array(np.concatenate([around, planted.types()]).tolist(), pa.string())
    things = pa.StructArray.from_arrays([kinds, pa.array(names)], names=["kind", "object"])
    order = np.argsort(shift, kind="stable")
    car, step = np.tile(order, steps), np.repeat(np.arange(steps), cars)
    x, y = _drift(rng, car, step, objects)
    thing = car[:, None] * objects + np.arange(objects)[None, :]
    columns = {
        "ts": pa.array(int(START.timestamp()) * 1_000_000 + step * _PERIOD + shift[car]),
        "car": pa.array(car),
    }
    half = objects // 2
    for sensor, some in (
        ("lidar", slice(None)),
        ("left", slice(half)),
        ("right", slice(half, None)),
    ):
        around_it = _Sightings.of_all(thing[:, some], x[:, some], y[:, some])
        special = _expand(planted, sensor, np.argsort(order), cars * objects)
        columns[sensor] = around_it.with_more(special).to_lists(things, len(car))
    return pa.table(columns).cast(_ARROW)


def _drift(
    rng: np.random.Generator, car: NDArray[np.intp], step: NDArray[np.int64], objects: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute where the objects around a car are in each of its frames: left ones first."""
    cars = len(np.unique(car))
    speed = rng.uniform(-10, 10, size=(cars, objects))
    begin = rng.uniform(0, 2 * _RANGE, size=(cars, objects))
    side = np.where(np.arange(objects) < objects // 2, 1, -1)
    aside = rng.uniform(2.5, 20, size=(cars, objects)) * side
    x = (begin[car] + speed[car] * (step / 10)[:, None]) % (2 * _RANGE) - _RANGE
    return x, aside[car]


@dataclass(frozen=True)
class _Sightings:
    """What one sensor sees: in which frame which object, and where."""

    row: NDArray[np.int64]
    thing: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    @classmethod
    def of_all(
        cls, thing: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> _Sightings:
        """Take matrices with a line for each frame."""
        row = np.repeat(np.arange(len(thing)), thing.shape[1])
        return cls(row, thing.ravel(), x.ravel(), y.ravel())

    def with_more(self, other: _Sightings) -> _Sightings:
        """Add sightings, behind those that a frame has."""
        row = np.concatenate([self.row, other.row])
        order = np.argsort(row, kind="stable")
        return _Sightings(
            row[order],
            np.concatenate([self.thing, other.thing])[order],
            np.concatenate([self.x, other.x])[order],
            np.concatenate([self.y, other.y])[order],
        )

    def to_lists(self, things: pa.StructArray, rows: int) -> pa.ListArray:
        """Make the list of each frame, where the sightings are in the order of the frames."""
        seen = things.take(pa.array(self.thing))
        places = [pa.array(np.round(at, 2)) for at in (self.x, self.y)]
        values = pa.StructArray.from_arrays(
            [seen.field("kind"), *places, seen.field("object")], fields=list(_OBJECT)
        )
        ends = np.cumsum(np.bincount(self.row, minlength=rows))
        return pa.ListArray.from_arrays(pa.array(np.append([0], ends), pa.int32()), values)


def _expand(planted: _Planted, sensor: str, rank: NDArray[np.intp], things: int) -> _Sightings:
    """List the sightings in the runs of one sensor."""
    runs = np.flatnonzero(planted.sensor == sensor)
    length = planted.length[runs]
    run = np.repeat(runs, length)
    within = np.arange(len(run)) - np.repeat(np.cumsum(length) - length, length)
    which = planted.which[run]
    row = (planted.first[run] + within) * len(rank) + rank[planted.car[which]]
    return _Sightings(row, things + which, planted.x[run], planted.y[run])
