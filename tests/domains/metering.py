"""Hourly meter readings, with blackouts and compensations planted in them.

The readings are a matrix of hours by meters, and every planted fact overwrites cells of it.
Consumption is in whole watt-hours, so that a sum is the same in whatever order Spark adds.
Start at `generate`; `smart_grid` has the queries.
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

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
"""When the generated readings begin: a midnight."""

SCHEMA = "ts timestamp, meter long, consumption long"
"""The readings' columns for `spark.readStream.schema`."""

_ARROW = pa.schema(
    {"ts": pa.timestamp("us", tz="UTC"), "meter": pa.int64(), "consumption": pa.int64()}
)

_STANDBY = 1  # watt-hours: next to nothing, yet not dark
_BORDER = 30_000  # the difference that `anomalies` does not report yet
_HEATING = 25_000  # what a storage heater takes at midnight


@dataclass(frozen=True)
class Blackout:
    """A day on which some meters were made to read 0 all day.

    Attributes:
        day: The day's beginning.
        meters: The dark meters, ascending.
    """

    day: datetime
    meters: tuple[int, ...]


@dataclass(frozen=True)
class Compensation:
    """A meter that reads next to nothing for a day and a lot at the midnight after.

    Attributes:
        meter: The meter.
        day: The beginning of the day with the low readings.
    """

    meter: int
    day: datetime


@dataclass(frozen=True)
class SmartGrid:
    """Generated readings and what was planted in them.

    Attributes:
        table: The readings, in the order in which they arrive.
        blackouts: Days with enough dark meters for an alert.
        compensations: Meters that make up for a day; shown by `anomalies`.
        echoes: The days after a compensation, which begin with it; shown by `anomalies` too.
            A compensation in the last midnight of the data has no echo.
        dim: Decoys: days on which only seven meters are dark.
        flickering: Decoys: meters that read 0 for all hours but one of each blackout and of
            each day with seven dark meters.
        borderline: Decoys: meters whose midnight reading lies just at the threshold.
        heaters: Decoys: meters that take a lot at every midnight.
    """

    table: pa.Table
    blackouts: list[Blackout]
    compensations: list[Compensation]
    echoes: list[Compensation]
    dim: list[Blackout]
    flickering: list[int]
    borderline: list[Compensation]
    heaters: list[int]


def generate(
    *,
    meters: int = 40,
    days: int = 4,
    seed: int = 0,
    blackouts: int = 1,
    dark: int = 8,
    compensations: int = 1,
    decoys: int = 1,
    out_of_order: int = 0,
) -> SmartGrid:
    """Generate hourly readings, with what was planted in them.

    Args:
        meters: How many meters report.
        days: For how many days, 24 readings each.
        seed: The same seed gives the same table.
        blackouts: On how many days `dark` meters read nothing.
        dark: How many meters are dark in a blackout.
        compensations: How many meters compensate, once each.
        decoys: How many there are of each kind of decoy.
        out_of_order: By how many seconds at most a reading's arrival is delayed. No reading
            is late as long as the query's watermark delay is at least this.

    Returns:
        The table and the planted facts.

    Raises:
        ValueError: There are too few meters or days for what is to be planted.

    Examples:
        >>> grid = generate(meters=30, days=3, blackouts=1, seed=7)
        >>> grid.table.num_rows, len(grid.blackouts[0].meters)
        (2160, 8)
    """
    _check(meters, days, blackouts, dark, compensations, decoys)
    rng = np.random.default_rng(seed)
    used = rng.integers(200, 901, size=(24 * days, meters))
    roles = np.split(
        rng.permutation(meters), np.cumsum([compensations, decoys, decoys, decoys]).tolist()
    )
    compensating, flickering, borderline, heating, ordinary = roles
    made_up = _compensate(rng, used, compensating, days)
    bordering = _border(rng, used, borderline, days)
    used[::24, heating] = _HEATING
    dates = rng.permutation(days)[: blackouts + decoys].tolist()
    outages = [
        _darken(rng, used, day, ordinary, dark if i < blackouts else 7)
        for i, day in enumerate(dates)
    ]
    for day in dates:
        _flicker(rng, used, day, flickering)
    return SmartGrid(
        _table(used, out_of_order, rng),
        blackouts=outages[:blackouts],
        compensations=made_up,
        echoes=_echoes(made_up, days),
        dim=outages[blackouts:],
        flickering=flickering.tolist(),
        borderline=bordering,
        heaters=heating.tolist(),
    )


def readings(**options: Any) -> pa.Table:
    """Generate just the table of `generate`, with the same options.

    Examples:
        >>> readings(meters=20, days=3).num_rows
        1440
    """
    return generate(**options).table


def closing_reading(table: pa.Table, *, after: timedelta = timedelta(days=3)) -> pa.Table:
    """Make the reading that closes every window of a table's stream.

    It is of a meter of its own, which is not dark and has no day before.

    Args:
        table: The readings of the stream.
        after: How far past the last reading it lies; more than two days and the delay.

    Returns:
        A table of one row.

    Examples:
        >>> closing_reading(readings()).select(["meter", "consumption"]).to_pylist()
        [{'meter': -1, 'consumption': 1}]
    """
    last = pc.max(table["ts"]).as_py()
    row = {"ts": last + after, "meter": -1, "consumption": _STANDBY}
    return pa.Table.from_pylist([row], schema=_ARROW)


def _check(
    meters: int, days: int, blackouts: int, dark: int, compensations: int, decoys: int
) -> None:
    special = compensations + 3 * decoys
    most_dark = max(dark if blackouts else 0, 7 if decoys else 0)
    if meters < special + most_dark:
        msg = f"the planted facts need {special + most_dark} meters; got `meters={meters}`"
        raise ValueError(msg)
    least = max(blackouts + decoys, 2 if compensations else 1, 3 if decoys else 1)
    if days < least:
        msg = f"the planted facts need {least} days; got `days={days}`"
        raise ValueError(msg)


def _day(day: int) -> datetime:
    return START + timedelta(days=day)


def _compensate(
    rng: np.random.Generator, used: NDArray[np.int64], meters: NDArray[np.int64], days: int
) -> list[Compensation]:
    day = rng.integers(0, max(days - 1, 1), size=len(meters))
    hours = 24 * day[:, None] + np.arange(24)[None, :]
    used[hours, meters[:, None]] = _STANDBY
    used[24 * (day + 1), meters] = rng.integers(40_000, 60_001, size=len(meters))
    return [
        Compensation(meter, _day(date))
        for meter, date in zip(meters.tolist(), day.tolist(), strict=True)
    ]


def _echoes(compensations: list[Compensation], days: int) -> list[Compensation]:
    after = [Compensation(made.meter, made.day + timedelta(days=1)) for made in compensations]
    return [echo for echo in after if echo.day + timedelta(days=1) < _day(days)]


def _border(
    rng: np.random.Generator, used: NDArray[np.int64], meters: NDArray[np.int64], days: int
) -> list[Compensation]:
    """Put two midnights in a row just at the threshold: of the day before, and of the next."""
    day = rng.integers(0, max(days - 2, 1), size=len(meters))
    used[:, meters] = _STANDBY
    used[24 * (day + 1), meters] = 24 * _STANDBY + _BORDER
    used[24 * (day + 2), meters] = (24 + 23) * _STANDBY
    return [
        Compensation(meter, _day(date))
        for meter, date in zip(meters.tolist(), day.tolist(), strict=True)
    ]


def _darken(
    rng: np.random.Generator,
    used: NDArray[np.int64],
    day: int,
    ordinary: NDArray[np.int64],
    dark: int,
) -> Blackout:
    meters = np.sort(rng.choice(ordinary, size=dark, replace=False))
    used[24 * day : 24 * (day + 1), meters] = 0
    return Blackout(_day(day), tuple(meters.tolist()))


def _flicker(
    rng: np.random.Generator, used: NDArray[np.int64], day: int, meters: NDArray[np.int64]
) -> None:
    used[24 * day : 24 * (day + 1), meters] = 0
    used[24 * day + rng.integers(0, 24, size=len(meters)), meters] = _STANDBY


def _table(used: NDArray[np.int64], out_of_order: int, rng: np.random.Generator) -> pa.Table:
    hours, meters = used.shape
    seconds = int(START.timestamp()) + 3_600 * np.repeat(np.arange(hours), meters)
    micros = seconds * 1_000_000
    columns = {
        "ts": micros,
        "meter": np.tile(np.arange(meters), hours),
        "consumption": used.ravel(),
    }
    table = pa.table({name: pa.array(values) for name, values in columns.items()}).cast(_ARROW)
    if not out_of_order:
        return table
    return table.take(pa.array(arrival_order(micros, out_of_order, rng)))
