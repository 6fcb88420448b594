"""Stopped cars and accidents: what is planted is found, by Spark and by the plain model alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.workloads import linear_road, write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from workloads.conftest import Finished

    Rows = list[dict[str, Any]]
    InOrder = Callable[[Sequence[Mapping[str, Any]]], Rows]
    Stream = Callable[[Path, str], DataFrame]
    Finish = Callable[[DataFrame], Finished]

SEED = 20
OUT_OF_ORDER = 30


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2024-01-01T{clock}").replace(tzinfo=timezone.utc)


def halted(car: int, pos: int, *clocks: str) -> Rows:
    """Reports of speed 0."""
    return [{"ts": at(clock), "car": car, "speed": 0, "pos": pos} for clock in clocks]


def table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=linear_road.reports(cars=20).schema)


@pytest.fixture(scope="module")
def road() -> linear_road.LinearRoad:
    print(f"seed {SEED}")
    return linear_road.generate(
        cars=40, stopped=4, accidents=2, decoys=2, seed=SEED, out_of_order=OUT_OF_ORDER
    )


@pytest.fixture(scope="module")
def folder(road: linear_road.LinearRoad, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    closing = linear_road.closing_report(road.table)
    write_files(road.table, folder, files=3, closing=closing)
    return folder


# The plain model.


def test_four_reports_at_one_place_are_one_stop_and_trace_to_all_four() -> None:
    table = table_of(
        [
            *halted(1, 7, "08:00:01", "08:00:31"),
            {"ts": at("08:00:40"), "car": 2, "speed": 50, "pos": 7},
            *halted(1, 7, "08:01:01", "08:01:31"),
        ]
    )

    [stop] = linear_road.expected_stopped_cars(table)

    assert stop.values == {
        "window": {"start": at("08:00:00"), "end": at("08:02:00")},
        "car": 1,
        "n": 4,
        "pos": 7,
    }
    assert stop.rows == {"reports": {0, 1, 3, 4}}


def test_a_fifth_report_makes_a_second_stop_half_a_minute_later() -> None:
    clocks = ("08:00:01", "08:00:31", "08:01:01", "08:01:31", "08:02:01")

    stops = linear_road.expected_stopped_cars(table_of(halted(1, 7, *clocks)))

    assert [stop.values["window"]["start"] for stop in stops] == [at("08:00:00"), at("08:00:30")]
    assert [stop.rows["reports"] for stop in stops] == [{0, 1, 2, 3}, {1, 2, 3, 4}]


def test_a_report_at_the_end_of_a_window_is_not_in_it() -> None:
    clocks = ("08:00:00", "08:00:30", "08:01:00", "08:02:00")

    assert linear_road.expected_stopped_cars(table_of(halted(1, 7, *clocks))) == []


def test_an_accident_traces_to_the_reports_of_both_cars_in_one_window() -> None:
    clocks = ("08:00:01", "08:00:31", "08:01:01", "08:01:31")
    table = table_of([*halted(1, 7, *clocks), *halted(2, 7, *clocks), *halted(3, 8, *clocks)])

    [accident] = linear_road.expected_accidents(table)

    assert accident.values == {
        "window": {"start": at("08:01:30"), "end": at("08:02:00")},
        "pos": 7,
        "cars": 2,
    }
    assert accident.rows == {"reports": set(range(8))}


def test_without_any_one_of_its_rows_an_accident_is_gone(road: linear_road.LinearRoad) -> None:
    accident = linear_road.expected_accidents(road.table)[0]

    for row in accident.rows["reports"]:
        others = [i for i in range(road.table.num_rows) if i != row]
        left = linear_road.expected_accidents(road.table.take(others))
        assert accident.values not in [other.values for other in left]


# The generator.


def test_each_stop_of_k_reports_is_found_in_k_minus_three_windows(
    road: linear_road.LinearRoad,
) -> None:
    planted = [
        stop
        for facts in (road.breakdowns, road.crashes, road.apart, road.near)
        for fact in facts
        for stop in fact
    ]
    expected = sorted(
        (stop.car, stop.pos, start_of(stop) + timedelta(seconds=30 * i))
        for stop in planted
        for i in range(stop.reports - 3)
    )

    found = linear_road.expected_stopped_cars(road.table)

    assert (
        sorted(
            (stop.values["car"], stop.values["pos"], stop.values["window"]["start"])
            for stop in found
        )
        == expected
    )
    assert {stop.size for stop in found} == {4}
    assert len(planted) == 4 + 2 * 2 + 2 * 2 + 2 * 2


def start_of(stop: linear_road.Stop) -> datetime:
    """The beginning of the half minute in which a stop begins."""
    return stop.first - timedelta(seconds=stop.first.second % 30)


def test_only_the_crashes_are_accidents(road: linear_road.LinearRoad) -> None:
    expected = sorted(
        (one.pos, start_of(one) + timedelta(seconds=90 + 30 * i))
        for one, other in road.crashes
        for i in range(min(one.reports, other.reports) - 3)
    )

    found = linear_road.expected_accidents(road.table)

    assert sorted((hit.values["pos"], hit.values["window"]["start"]) for hit in found) == expected
    assert {(hit.values["cars"], hit.size) for hit in found} == {(2, 8)}
    assert len(road.crashes) == 2


def test_brief_and_creeping_cars_report_speed_0_and_are_not_stopped(
    road: linear_road.LinearRoad,
) -> None:
    decoys = {stop.car: stop.reports for fact in road.brief + road.creeping for (stop,) in [fact]}
    halts = road.table.filter(pa.compute.equal(road.table["speed"], 0))["car"].to_pylist()

    found = {stop.values["car"] for stop in linear_road.expected_stopped_cars(road.table)}

    assert {car: halts.count(car) for car in decoys} == decoys
    assert len(decoys) == 4
    assert found.isdisjoint(decoys)


def test_cars_at_one_place_in_turn_and_cars_a_foot_apart_stand_as_planned(
    road: linear_road.LinearRoad,
) -> None:
    for early, late in road.apart:
        assert early.pos == late.pos
        assert start_of(late) - start_of(early) == timedelta(seconds=30 * early.reports)
    for one, other in road.near:
        assert other.pos == one.pos + 1
        assert start_of(other) == start_of(one)


def test_the_same_seed_gives_the_same_table_and_another_seed_does_not() -> None:
    table = linear_road.reports(seed=1, out_of_order=20)

    assert linear_road.reports(seed=1, out_of_order=20).equals(table)
    assert not linear_road.reports(seed=2, out_of_order=20).equals(table)


def test_every_car_reports_once_in_each_half_minute_and_moves_as_fast_as_it_says() -> None:
    table = linear_road.reports(cars=20, minutes=6, seed=3)

    assert table.num_rows == 20 * 12
    for car in range(20):
        [rows] = [[row for row in table.to_pylist() if row["car"] == car]]
        steps = [int((row["ts"] - linear_road.START).total_seconds()) // 30 for row in rows]
        assert steps == list(range(12))
        assert {row["seg"] - row["pos"] // 5_280 for row in rows} == {0}
        moved = {
            abs(b["pos"] - a["pos"]) - 44 * b["speed"]
            for a, b in pairwise(rows)
            if abs(b["pos"] - a["pos"]) < 264_000
        }
        assert moved <= {0, 1}  # one foot for a car that creeps


def test_rows_arrive_out_of_order_by_at_most_what_was_asked(road: linear_road.LinearRoad) -> None:
    times = road.table["ts"].to_pylist()
    latest = times[0]
    behind = []
    for time in times:
        latest = max(latest, time)
        behind.append((latest - time).total_seconds())

    assert 15 < max(behind) < OUT_OF_ORDER
    assert (
        sorted(times)
        == linear_road.generate(cars=40, stopped=4, accidents=2, decoys=2, seed=SEED)
        .table["ts"]
        .to_pylist()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cars": 4}, r"need 11 cars of their own; got `cars=4`"),
        ({"minutes": 4}, r"a stop of 8 reports needs 5 minutes; got 4"),
        ({"stand": (3, 5)}, r"`stand` is .* 4 <= fewest <= most; got \(3, 5\)"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linear_road.generate(**options)


# The files.


def test_files_hold_the_table_in_order_and_end_with_the_closing_row(tmp_path: Path) -> None:
    table = linear_road.reports(cars=20, minutes=5)
    closing = linear_road.closing_report(table)

    parts = write_files(table, tmp_path, files=3, closing=closing)

    assert [(part.first, part.rows) for part in parts] == [(0, 66), (66, 67), (133, 68)]
    written = pa.concat_tables([pq.read_table(part.path) for part in parts])
    assert written.equals(pa.concat_tables([table, closing]))
    assert sorted(tmp_path.iterdir()) == [part.path for part in parts]
    times = [part.path.stat().st_mtime for part in parts]
    assert times == [times[0], times[0] + 1, times[0] + 2]


def test_a_folder_that_has_files_grows(tmp_path: Path) -> None:
    table = linear_road.reports(cars=20, minutes=5)

    [first] = write_files(table, tmp_path)
    [second] = write_files(table, tmp_path)

    assert [first.path.name, second.path.name] == ["part-00000.parquet", "part-00001.parquet"]
    assert second.path.stat().st_mtime == first.path.stat().st_mtime + 1


def test_more_files_than_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 to the number of rows, 1; got 2"):
        write_files(table_of(halted(1, 7, "08:00:01")), tmp_path, files=2)


def test_the_closing_report_passes_the_filter_and_lies_past_every_window() -> None:
    table = linear_road.reports(cars=20)

    [closing] = linear_road.closing_report(table).to_pylist()

    assert closing["speed"] == 0
    assert closing["ts"] == max(table["ts"].to_pylist()) + timedelta(hours=1)


# Spark.


def test_stopped_cars_in_batch_and_stream_are_as_expected(
    road: linear_road.LinearRoad,
    folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    expected = in_order([stop.values for stop in linear_road.expected_stopped_cars(road.table)])

    batch = linear_road.stopped_cars(spark.read.parquet(str(folder)))
    streamed = finish(linear_road.stopped_cars(stream(folder, linear_road.SCHEMA)))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected


def test_accidents_in_batch_and_stream_are_as_expected(
    road: linear_road.LinearRoad,
    folder: Path,
    spark: SparkSession,
    stream: Stream,
    finish: Finish,
    in_order: InOrder,
) -> None:
    expected = in_order([hit.values for hit in linear_road.expected_accidents(road.table)])

    batch = linear_road.accidents_from_reports(spark.read.parquet(str(folder)))
    streamed = finish(linear_road.accidents_from_reports(stream(folder, linear_road.SCHEMA)))

    assert in_order(batch.toArrow().to_pylist()) == expected
    assert in_order(streamed.rows) == expected


def test_the_traced_rows_alone_make_the_accident_again(
    road: linear_road.LinearRoad, spark: SparkSession
) -> None:
    accident = linear_road.expected_accidents(road.table)[0]
    traced = road.table.take(sorted(accident.rows["reports"]))

    again = linear_road.accidents_from_reports(spark.createDataFrame(traced))

    assert again.toArrow().to_pylist() == [accident.values]
