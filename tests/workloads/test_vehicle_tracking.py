"""Speeding cars and visits: what is planted is found, by Spark and by the plain model alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import clew
from clew.testing import all_traces, collect_traces, run_stream, without_zone
from clew.workloads import write_files
from domains import vehicle_tracking

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from clew.testing import Traced
    from clew.workloads import Expected
    from workloads.conftest import Finished

    Rows = list[dict[str, Any]]
    InOrder = Callable[[Sequence[Mapping[str, Any]]], Rows]
    Stream = Callable[[Path, str], DataFrame]
    Finish = Callable[[DataFrame], Finished]

SEED = 8
OUT_OF_ORDER = 30
LAT, LON = 39.9185, 116.3125  # in the middle of area B


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2024-01-01T{clock}").replace(tzinfo=timezone.utc)


def position(clock: str, lat: float = LAT, lon: float = LON, *, car: int = 1) -> Rows:
    return [{"ts": at(clock), "car": car, "lat": lat, "lon": lon}]


def table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=vehicle_tracking.positions(cars=8).schema)


def staying(reports: int, *, lon: float = LON) -> pa.Table:
    return table_of([row for i in range(reports) for row in position(f"08:20:{i:02d}", lon=lon)])


@pytest.fixture(scope="module")
def city() -> vehicle_tracking.VehicleTracking:
    print(f"seed {SEED}")
    return vehicle_tracking.generate(
        cars=20, speeding=3, visits=3, decoys=2, seed=SEED, out_of_order=OUT_OF_ORDER
    )


@pytest.fixture(scope="module")
def folder(
    city: vehicle_tracking.VehicleTracking, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("positions")
    closing = vehicle_tracking.closing_position(city.table)
    write_files(city.table, folder, files=3, closing=closing)
    return folder


# The plain model.


def test_speeds_are_of_legs_from_the_first_to_the_last_position_of_ten_seconds() -> None:
    table = table_of(
        [
            *position("08:01:31", 39.90),
            *position("08:01:34", 39.95),  # on the way, so only counted
            *position("08:01:39", 39.902),  # 222.39 metres in 8 seconds
            *position("08:01:48", 39.904),  # alone in its ten seconds
            *position("08:01:52", 39.905, 116.3145, car=2),
            *position("08:01:50", 39.905),
            *position("08:01:55", 39.905, 116.3135),  # 85.3 metres in 5 seconds
        ]
    )

    hits = vehicle_tracking.expected_speeding(table)

    assert [hit.values for hit in hits] == [
        {
            "window": {"start": at(start), "end": at(end)},
            "car": 1,
            "reports": 5,
            "speed": 8_530 * 0.036 / 5,
            "average": (22_239 + 8_530) * 0.036 / (8 + 5),
        }
        for start, end in (
            ("08:00:00", "08:02:00"),
            ("08:00:30", "08:02:30"),
            ("08:01:00", "08:03:00"),
            ("08:01:30", "08:03:30"),
        )
    ]
    assert [hit.rows for hit in hits] == [{"positions": {0, 1, 2, 5, 6}}] * 4


def test_an_average_just_at_the_limit_is_not_reported() -> None:
    table = table_of([*position("08:00:00", 39.90), *position("08:00:09", 39.902)])
    average = 22_239 * 0.036 / 9

    assert vehicle_tracking.expected_speeding(table, limit=average) == []
    assert len(vehicle_tracking.expected_speeding(table, limit=average - 1e-9)) == 4


def test_ten_positions_in_the_area_are_a_visit_that_traces_to_all_ten() -> None:
    rows = [*staying(10).to_pylist(), *position("08:20:10", 39.93)]

    visits = vehicle_tracking.expected_visits(table_of(rows))

    assert [visit.values for visit in visits] == [
        {"window": {"start": at(start), "end": at(end)}, "car": 1, "reports": 10}
        for start, end in (
            ("08:10:00", "08:25:00"),
            ("08:15:00", "08:30:00"),
            ("08:20:00", "08:35:00"),
        )
    ]
    assert [visit.rows for visit in visits] == [{"positions": set(range(10))}] * 3


def test_nine_positions_are_no_visit() -> None:
    assert vehicle_tracking.expected_visits(staying(9)) == []


def test_the_edge_belongs_to_the_area_and_what_is_past_it_does_not() -> None:
    assert len(vehicle_tracking.expected_visits(staying(10, lon=116.305))) == 3
    assert vehicle_tracking.expected_visits(staying(10, lon=116.304999)) == []


def test_without_any_one_of_its_rows_a_result_changes(
    city: vehicle_tracking.VehicleTracking,
) -> None:
    for expected in (vehicle_tracking.expected_speeding, vehicle_tracking.expected_visits):
        hit = expected(city.table)[0]
        for row in hit.rows["positions"]:
            others = [i for i in range(city.table.num_rows) if i != row]
            left = expected(city.table.take(others))
            assert hit.values not in [other.values for other in left]


# The generator.


def test_every_window_within_a_fast_stretch_is_found_and_none_beside_one(
    city: vehicle_tracking.VehicleTracking,
) -> None:
    two_minutes = timedelta(minutes=2)
    found = {
        (hit.values["car"], hit.values["window"]["start"])
        for hit in vehicle_tracking.expected_speeding(city.table)
    }

    grid = [vehicle_tracking.START + timedelta(seconds=30 * i) for i in range(40)]
    within = {
        (drive.car, start)
        for drive in city.speeding
        for start in grid
        if drive.first <= start and start + two_minutes <= drive.last
    }
    touching = {
        (drive.car, start)
        for drive in city.speeding
        for start in grid
        if drive.first < start + two_minutes and start <= drive.last
    }
    assert within < found < touching
    assert len(city.speeding) == 3


def test_fast_results_have_the_rows_of_two_minutes(city: vehicle_tracking.VehicleTracking) -> None:
    hits = vehicle_tracking.expected_speeding(city.table)

    assert {29 <= hit.size == hit.values["reports"] <= 45 for hit in hits} == {True}
    assert {70 < hit.values["average"] < 110 for hit in hits} == {True}


def test_sprinting_and_brisk_cars_are_fast_and_not_reported(
    city: vehicle_tracking.VehicleTracking,
) -> None:
    slower = vehicle_tracking.expected_speeding(city.table, limit=60)
    found = {hit.values["car"] for hit in vehicle_tracking.expected_speeding(city.table)}
    sprinters = {sprint.car for sprint in city.sprinting}

    assert set(city.brisk) <= {hit.values["car"] for hit in slower}
    assert found.isdisjoint(city.brisk)
    assert found.isdisjoint(sprinters)
    for sprint in city.sprinting:
        leg = [
            hit.values["speed"]
            for hit in vehicle_tracking.expected_speeding(city.table, limit=0)
            if hit.values["car"] == sprint.car
        ]
        assert max(leg) > 70
    assert (len(city.brisk), len(sprinters)) == (2, 2)


def test_each_visit_is_found_with_all_reports_of_its_stay(
    city: vehicle_tracking.VehicleTracking,
) -> None:
    hits = vehicle_tracking.expected_visits(city.table)

    assert {hit.values["car"] for hit in hits} == {visit.car for visit in city.visits}
    for visit in city.visits:
        whole = [
            hit
            for hit in hits
            if hit.values["car"] == visit.car
            and hit.values["window"]["start"] <= visit.first
            and visit.last < hit.values["window"]["end"]
        ]
        stay = {
            i
            for i, row in enumerate(city.table.to_pylist())
            if row["car"] == visit.car and visit.first <= row["ts"] <= visit.last
        }
        assert len(stay) == visit.reports
        assert whole
        assert all(stay <= hit.rows["positions"] for hit in whole)
        places = {(row["lat"], row["lon"]) for row in city.table.take(sorted(stay)).to_pylist()}
        assert len(places) == 1
    assert len(city.visits) == 3


def test_passing_cars_are_in_the_area_and_parked_ones_just_outside(
    city: vehicle_tracking.VehicleTracking,
) -> None:
    wider = vehicle_tracking.AREA_B._replace(north=39.9225)

    here = {hit.values["car"] for hit in vehicle_tracking.expected_visits(city.table, more_than=0)}
    near = {hit.values["car"] for hit in vehicle_tracking.expected_visits(city.table, area=wider)}

    visitors = {visit.car for visit in city.visits}
    assert here == visitors | set(city.passing)
    assert near == visitors | set(city.parked)
    assert (len(city.passing), len(city.parked)) == (2, 2)


def test_the_same_seed_gives_the_same_table_and_another_seed_does_not() -> None:
    table = vehicle_tracking.positions(seed=1, out_of_order=20)

    assert vehicle_tracking.positions(seed=1, out_of_order=20).equals(table)
    assert not vehicle_tracking.positions(seed=2, out_of_order=20).equals(table)


@pytest.mark.parametrize("every", [(2, 5), (1, 1)])
def test_cars_report_as_often_as_asked_and_move_at_their_speed(every: tuple[int, int]) -> None:
    table = vehicle_tracking.positions(
        cars=5, speeding=0, visits=0, decoys=0, minutes=15, every=every, seed=3
    )

    for car in range(5):
        rows = [row for row in table.to_pylist() if row["car"] == car]
        gaps = {int((b["ts"] - a["ts"]).total_seconds()) for a, b in pairwise(rows)}
        assert gaps == set(range(every[0], every[1] + 1))
        assert (rows[0]["ts"] - vehicle_tracking.START).total_seconds() < 5
        assert (rows[-1]["ts"] - vehicle_tracking.START).total_seconds() >= 15 * 60 - 5
        north = {(b["lat"] - a["lat"]) * 111_195 / 5 * 3.6 for a, b in pairwise(rows)}
        assert max(north) < 51


def test_rows_arrive_out_of_order_by_at_most_what_was_asked(
    city: vehicle_tracking.VehicleTracking,
) -> None:
    times = city.table["ts"].to_pylist()
    latest = times[0]
    behind = []
    for time in times:
        latest = max(latest, time)
        behind.append((latest - time).total_seconds())

    assert 15 < max(behind) <= OUT_OF_ORDER


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cars": 7}, r"need 8 cars of their own; got `cars=7`"),
        ({"minutes": 13}, r"10 minutes of one fact need 14; got 13"),
        ({"fast": (1, 5)}, r"`fast` is .* 2 <= fewest <= most; got \(1, 5\)"),
        ({"stay": (3, 2)}, r"`stay` is .* 1 <= fewest <= most; got \(3, 2\)"),
        ({"every": (2, 6)}, r"`every` is .* fewest <= most <= 5; got \(2, 6\)"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vehicle_tracking.generate(**options)


def test_the_closing_position_is_in_the_area_and_past_every_window() -> None:
    table = vehicle_tracking.positions()

    closing = vehicle_tracking.closing_position(table)

    assert len(vehicle_tracking.expected_visits(closing, more_than=0)) == 3
    assert closing["ts"].to_pylist() == [max(table["ts"].to_pylist()) + timedelta(hours=1)]


# Spark.

QUERIES = [
    (vehicle_tracking.speeding, vehicle_tracking.expected_speeding),
    (vehicle_tracking.visits, vehicle_tracking.expected_visits),
]


@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["speeding", "visits"])
def test_results_in_batch_and_stream_are_as_expected(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    city: vehicle_tracking.VehicleTracking,
    folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    expected = in_order([hit.values for hit in truth(city.table)])

    batch = query(spark.read.parquet(str(folder)))
    streamed = finish(query(stream(folder, vehicle_tracking.SCHEMA)))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected


@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["speeding", "visits"])
def test_the_traced_rows_alone_make_the_result_again(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    city: vehicle_tracking.VehicleTracking,
    spark: SparkSession,
) -> None:
    hit = truth(city.table)[0]
    traced = city.table.take(sorted(hit.rows["positions"]))

    again = query(spark.createDataFrame(traced))

    assert hit.values in again.toArrow().to_pylist()


@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["speeding", "visits"])
def test_traces_in_batch_are_as_expected(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    city: vehicle_tracking.VehicleTracking,
    folder: Path,
    spark: SparkSession,
) -> None:
    frame = clew.trace(spark.read.parquet(str(folder)), "positions")

    traces = collect_traces(query(frame))

    assert found(traces) == wanted(truth(city.table), city.table)


@pytest.mark.parametrize("capture", ["sets", "pointers"])
@pytest.mark.parametrize(("query", "truth"), QUERIES, ids=["speeding", "visits"])
def test_traces_of_a_stream_are_as_expected(
    query: Any,
    truth: Callable[[pa.Table], list[Expected]],
    capture: str,
    city: vehicle_tracking.VehicleTracking,
    folder: Path,
    stream: Stream,
    tmp_path: Path,
) -> None:
    frame = query(clew.trace(stream(folder, vehicle_tracking.SCHEMA), "positions"))

    run_stream(frame, tmp_path / "prov", "hits", checkpoint=tmp_path / "chk", capture=capture)
    clew.open(tmp_path / "prov").unfold("hits")

    assert found(all_traces(tmp_path / "prov", "hits")) == wanted(truth(city.table), city.table)


def found(traces: list[Traced]) -> list[Any]:
    """Each result, and the positions behind it: their cars and times."""
    return sorted(
        (
            repr(without_zone(trace.values)),
            sorted((row["car"], without_zone(row["ts"])) for row in trace.sources["positions"]),
        )
        for trace in traces
    )


def wanted(hits: list[Expected], table: pa.Table) -> list[Any]:
    rows = table.select(["car", "ts"]).to_pylist()
    return sorted(
        (
            repr(without_zone(dict(hit.values))),
            sorted((rows[i]["car"], without_zone(rows[i]["ts"])) for i in hit.rows["positions"]),
        )
        for hit in hits
    )
